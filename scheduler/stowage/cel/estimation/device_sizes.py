"""The greatest sizes of the parts of a device, by the limits of ResourceSlices.

``staging/src/k8s.io/dynamic-resource-allocation/cel/compile.go``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from stowage.cel.estimation.sizes import Size
from stowage.cel.estimation.tracked_sizes import ITEMS, KEYS, VALUES, Path

_MAX_ENTRIES = 32
"""Attributes and capacities of one device."""
_MAX_DOMAIN, _MAX_NAME, _MAX_DRIVER, _MAX_VALUE = 63, 32, 63, 64


@dataclass(frozen=True)
class _Declared:
    """The greatest size of values of a type, and the types of their parts.

    Attributes:
        any_name: The type of a field of any name.
    """

    most: int
    fields: Mapping[str, _Declared] = field(default_factory=dict)
    keys: _Declared | None = None
    values: _Declared | None = None
    any_name: _Declared | None = None

    def part(self, name: str) -> _Declared | None:
        if name == KEYS:
            return self.keys
        if name in (ITEMS, VALUES):
            return self.values
        return self.fields.get(name, self.any_name)


_VALUE = _Declared(_MAX_VALUE)
_NAME, _DOMAIN = _Declared(_MAX_NAME), _Declared(_MAX_DOMAIN)
_QUANTITY = _Declared(0)
_ATTRIBUTES = _Declared(_MAX_ENTRIES, keys=_NAME, values=_VALUE, any_name=_VALUE)
_CAPACITIES = _Declared(_MAX_ENTRIES, keys=_NAME, values=_QUANTITY)
_DEVICE = _Declared(
    0,
    {
        "driver": _Declared(_MAX_DRIVER),
        "attributes": _Declared(_MAX_ENTRIES, keys=_DOMAIN, values=_ATTRIBUTES),
        "capacity": _Declared(_MAX_ENTRIES, keys=_DOMAIN, values=_CAPACITIES),
        "allowMultipleAllocations": _Declared(1),
    },
)


def device_size(path: Path) -> Size | None:
    """The size of what a path from ``device`` leads to; None if it is not declared.

    A capacity that is selected by its name is not declared upstream, unlike one behind an index:
    ``device.capacity["d"].memory != quantity("1")`` is too complex.
    """
    if path[:1] != ("device",):
        return None
    found: _Declared | None = _DEVICE
    for name in path[1:]:
        found = found.part(name) if found else None
    return None if found is None else Size(0, found.most)
