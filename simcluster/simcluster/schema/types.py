"""The types of the served kinds, resolved on first use.

``types.json`` has those of the client's models, ``alpha_types.json`` those of kinds that the models
lack.
"""

from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import msgspec

from simcluster.schema.go_types import (
    ATOMIC,
    GO_TYPES,
    ListMerge,
    go_type,
    is_pointer,
    list_merge,
)

_PYTHON_TYPES: dict[str, type] = {"string": str, "bool": bool, "int32": int, "int64": int}


class Scalar(NamedTuple):
    """A value without fields.

    Args:
        kind: string, bool, int32, int64, float, any, bytes, Time, MicroTime, Quantity or
            IntOrString.
    """

    kind: str


DEDUCED = Scalar("deduced")
"""A value that no schema describes: server-side apply owns its objects field by field."""


class MapType(NamedTuple):
    """A map from strings to values of one type; server-side apply owns an atomic one as a whole."""

    value: "Type"
    is_atomic: bool = False


class ListType(NamedTuple):
    """A list of values of one type, and how it merges."""

    item: "Type"
    merge: ListMerge = ATOMIC


class Struct:
    """An object with known fields.

    Args:
        name: its Go type, such as ``PodSpec``.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_atomic = name in GO_TYPES.atomic_structs
        self.fields: dict[str, Type] = {}
        self.others: Type | None = None
        """The type of unknown fields that are preserved."""
        self.plain: dict[str, type] = {}
        """The Python type of each field that is a string, a boolean or an integer."""
        self.required: frozenset[str] = frozenset()
        self.kept_empty: frozenset[str] = frozenset()
        """Fields that are written even if they are empty."""
        self.always_written: dict[str, Any] = GO_TYPES.always_written.get(name, {})
        self._go_types: dict[str, str] = {}

    def go_type(self, field: str) -> str:
        """The Go type of a field, as decoding errors name it."""
        return self._go_types.get(field, "") or go_type(self.name, field)

    def fill(self, described: dict[str, str]) -> None:
        """Resolve the fields; done after construction because types refer to each other."""
        self.required = frozenset(key for key, text in described.items() if text.endswith("!"))
        kept = set()
        for field, declared in described.items():
            text = declared.rstrip("!")
            self.fields[field] = _resolve(self.name, field, text)
            self._go_types[field] = go_type(self.name, field, text)
            if field in self.required or is_pointer(self.name, field, text):
                kept.add(field)
        self.kept_empty = frozenset(kept)
        for field, type_ in self.fields.items():
            if isinstance(type_, Scalar) and type_.kind in _PYTHON_TYPES:
                self.plain[field] = _PYTHON_TYPES[type_.kind]


Type = Scalar | MapType | ListType | Struct


@cache
def _described() -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for name in ("types.json", "alpha_types.json"):
        found |= msgspec.json.decode(files("simcluster.schema").joinpath(name).read_bytes())
    return found


_STRUCTS: dict[str, Struct] = {}


def struct_of(name: str) -> Struct | None:
    """The type of a name, such as ``Pod`` or ``events.Event``; ``None`` if it is not known."""
    found = _STRUCTS.get(name)
    if found is None and name in _described():
        found = _STRUCTS[name] = Struct(name)
        found.fill(_described()[name])
    return found


def type_of_kind(group: str, kind: str) -> Struct | None:
    """The type of a built-in kind; a kind that several groups have is qualified by its group."""
    return struct_of(f"{group.partition('.')[0]}.{kind}") or struct_of(kind)


def _resolve(owner: str, field: str, text: str) -> Type:
    if text.startswith("[]"):
        return ListType(_resolve(owner, "", text[2:]), list_merge(owner, field))
    if text.startswith("{}"):
        is_atomic = f"{owner}.{field}" in GO_TYPES.atomic_maps
        return MapType(_resolve(owner, "", text[2:]), is_atomic)
    found: Struct | None = struct_of(text) if text[0].isupper() or "." in text else None
    return found if found is not None else Scalar(text)
