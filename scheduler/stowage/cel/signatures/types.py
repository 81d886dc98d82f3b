"""The static types of expressions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto


class Kind(Enum):
    """What a type is."""

    DYN = auto()
    ANY = auto()
    ERROR = auto()
    NULL = auto()
    PRIMITIVE = auto()
    WELL_KNOWN = auto()
    STRUCT = auto()
    LIST = auto()
    MAP = auto()
    OPAQUE = auto()
    TYPE = auto()
    PARAMETER = auto()
    FUNCTION = auto()


_SHORT_NAMES = {
    "google.protobuf.Any": "any",
    "google.protobuf.Duration": "duration",
    "google.protobuf.Timestamp": "timestamp",
    "null_type": "null",
}


@dataclass(frozen=True, slots=True)
class Type:
    """A type: its kind, its name and the types of its parts."""

    kind: Kind
    name: str
    parameters: tuple[Type, ...] = ()

    def __str__(self) -> str:
        """The type as errors of the checker name it."""
        if not self.parameters:
            return _SHORT_NAMES.get(self.name, self.name)
        return f"{self.name}({', '.join(map(str, self.parameters))})"

    @property
    def full_name(self) -> str:
        """The type as the error about the type of a result names it."""
        if not self.parameters:
            return self.name
        return f"{self.name}({', '.join(each.full_name for each in self.parameters)})"


DYN = Type(Kind.DYN, "dyn")
ANY = Type(Kind.ANY, "google.protobuf.Any")
ERROR = Type(Kind.ERROR, "!error!")
NULL = Type(Kind.NULL, "null_type")
BOOL = Type(Kind.PRIMITIVE, "bool")
INT = Type(Kind.PRIMITIVE, "int")
UINT = Type(Kind.PRIMITIVE, "uint")
DOUBLE = Type(Kind.PRIMITIVE, "double")
STRING = Type(Kind.PRIMITIVE, "string")
BYTES = Type(Kind.PRIMITIVE, "bytes")
DURATION = Type(Kind.WELL_KNOWN, "google.protobuf.Duration")
TIMESTAMP = Type(Kind.WELL_KNOWN, "google.protobuf.Timestamp")
TYPE = Type(Kind.TYPE, "type")
QUANTITY = Type(Kind.STRUCT, "kubernetes.Quantity")
DEVICE = Type(Kind.STRUCT, "kubernetes.DRADevice")


def list_of(element: Type) -> Type:
    """``list(element)``."""
    return Type(Kind.LIST, "list", (element,))


def map_of(key: Type, value: Type) -> Type:
    """``map(key, value)``."""
    return Type(Kind.MAP, "map", (key, value))


def optional_of(content: Type) -> Type:
    """``optional_type(content)``."""
    return Type(Kind.OPAQUE, "optional_type", (content,))


def type_of(what: Type) -> Type:
    """The type of `what` as a value."""
    return Type(Kind.TYPE, "type", (what,))


def struct(name: str) -> Type:
    """An object type of Kubernetes' libraries."""
    return Type(Kind.STRUCT, name)


def parameter(name: str) -> Type:
    """A type variable."""
    return Type(Kind.PARAMETER, name)


def variables_in(what: Type) -> frozenset[str]:
    """The names of the type variables in a type."""
    if what.kind is Kind.PARAMETER:
        return frozenset([what.name])
    return frozenset().union(*map(variables_in, what.parameters))


def renamed(what: Type, names: Mapping[str, Type]) -> Type:
    """The type with its variables replaced."""
    if what.kind is Kind.PARAMETER:
        return names[what.name]
    if not names or not what.parameters:
        return what
    return Type(what.kind, what.name, tuple([renamed(part, names) for part in what.parameters]))


def is_dyn(what: Type) -> bool:
    """Whether the type is checked at run time only."""
    return what.kind in (Kind.DYN, Kind.ANY)


def is_dyn_or_error(what: Type) -> bool:
    """Whether the type is checked at run time only, or its error is already reported."""
    return what.kind in (Kind.DYN, Kind.ANY, Kind.ERROR)


def optional_content(what: Type) -> tuple[Type, bool]:
    """The type in an optional one, and whether it is optional."""
    if what.kind is Kind.OPAQUE and what.name == "optional_type":
        return what.parameters[0], True
    return what, False


def is_equivalent(left: Type, right: Type) -> bool:
    """Whether the types are the same but for the names of type variables."""
    if left.kind is not right.kind or len(left.parameters) != len(right.parameters):
        return False
    if left.kind is not Kind.PARAMETER and left.name != right.name:
        return False
    return all(map(is_equivalent, left.parameters, right.parameters))
