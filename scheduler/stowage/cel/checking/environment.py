"""What a selector of kube-scheduler v1.36 may name.

These are the options of ``k8s.io/apiserver/pkg/cel/environment/base.go`` for stored expressions
(all versions, whatever the feature gates) and of
``k8s.io/dynamic-resource-allocation/cel/compile.go``: the standard library of CEL, optional types,
two-variable comprehensions, ``cel.bind``, strings (version 2), sets, lists (version 3), and
Kubernetes' lists, regex, URL, IP, CIDR, quantity, semver, format and authorization libraries. There
is no math and no encoders library.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from stowage.cel.functions import (
    authorization,
    collections,
    conversions,
    kubernetes,
    named_formats,
    operators,
    optionals,
    regexes,
    strings,
    times,
)
from stowage.cel.signatures.functions import Overload, by_function
from stowage.cel.signatures.types import (
    ANY,
    BOOL,
    BYTES,
    DEVICE,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    NULL,
    QUANTITY,
    STRING,
    TIMESTAMP,
    TYPE,
    UINT,
    Type,
    list_of,
    map_of,
    optional_of,
    struct,
    type_of,
)

FUNCTIONS: Mapping[str, list[Overload]] = by_function(
    [
        *operators.FUNCTIONS,
        *conversions.FUNCTIONS,
        *strings.FUNCTIONS,
        *times.FUNCTIONS,
        *optionals.FUNCTIONS,
        *collections.FUNCTIONS,
        *regexes.FUNCTIONS,
        *kubernetes.FUNCTIONS,
        *named_formats.FUNCTIONS,
        *authorization.FUNCTIONS,
    ]
)

_IP, _CIDR = struct("net.IP"), struct("net.CIDR")
TYPE_NAMES: Mapping[str, Type] = {
    "bool": BOOL,
    "bytes": BYTES,
    "double": DOUBLE,
    "google.protobuf.Duration": DURATION,
    "google.protobuf.Timestamp": TIMESTAMP,
    "int": INT,
    "list": list_of(DYN),
    "map": map_of(DYN, DYN),
    "net.CIDR": _CIDR,
    "net.IP": _IP,
    "null_type": NULL,
    "optional_type": optional_of(DYN),
    "string": STRING,
    "type": TYPE,
    "uint": UINT,
}
"""The names that are types. As a value each one has the type of that type."""

DEVICE_FIELDS: Mapping[str, Type] = {
    "driver": STRING,
    "attributes": map_of(STRING, map_of(STRING, ANY)),
    "capacity": map_of(STRING, map_of(STRING, QUANTITY)),
    "allowMultipleAllocations": BOOL,
}

_TYPES_AS_VALUES = {name: type_of(found) for name, found in TYPE_NAMES.items()}


@dataclass(frozen=True)
class Declarations:
    """What an expression may name besides functions and types.

    Attributes:
        variables: their types by name.
        structs: the fields of object types, by the name of the type.
        without: functions that it may not call.
    """

    variables: Mapping[str, Type]
    structs: Mapping[str, Mapping[str, Type]] = field(default_factory=dict)
    without: frozenset[str] = frozenset()

    def type_of_name(self, name: str) -> Type | None:
        """The type of a variable, or of the name of a type as a value; None if it is neither."""
        return self.variables.get(name) or _TYPES_AS_VALUES.get(name)


NEW_FUNCTIONS = frozenset(["includes"])
"""Functions that came with v1.36. The scheduler knows them; its API server lets no new object call
them."""


def device_declarations(without: frozenset[str] = frozenset()) -> Declarations:
    """What a selector may name: ``device``, and all functions but those in `without`."""
    return Declarations({"device": DEVICE}, {DEVICE.name: DEVICE_FIELDS}, without)
