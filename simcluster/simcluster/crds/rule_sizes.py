"""The greatest sizes of what a schema describes, by which the costs of its rules are estimated.

Follows ``SchemaDeclType`` of ``apiserver/pkg/cel/common``: what a schema does not limit is as large
as a request can be.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from simcluster.crds.cel_values import escaped, properties_of
from stowage.cel.estimation.sizes import Size
from stowage.cel.estimation.tracked_sizes import ITEMS, KEYS, VALUES, Path

Json = dict[str, Any]

REQUEST_BYTES = 3 * 1024 * 1024
_BYTES_OF_RUNE = 4
_KEY_BYTES = 6
"""A key of two bytes with its quotation marks, the colon and the comma."""


@dataclass(frozen=True)
class DeclaredSize:
    """The sizes of the values of one schema.

    Attributes:
        most: the greatest number of elements, entries or bytes; 0 for values without any.
        least_bytes: the length of the shortest value in JSON.
        fields: those of an object with properties, by their names in expressions.
        key, value: those of a map's or list's entries.
    """

    most: int
    least_bytes: int
    fields: Mapping[str, "DeclaredSize"] = field(default_factory=dict)
    key: "DeclaredSize | None" = None
    value: "DeclaredSize | None" = None

    def part(self, name: str) -> "DeclaredSize | None":
        """The sizes of a part that a path names."""
        if name in {ITEMS, VALUES}:
            return self.value
        return self.key if name == KEYS else self.fields.get(name)

    def at(self, path: Path) -> Size | None:
        """The size of what a path from ``self`` or ``oldSelf`` leads to."""
        if not path:
            return None
        found: DeclaredSize | None = self
        for name in path[1:]:
            found = None if found is None else found.part(name)
        return None if found is None else Size(0, found.most)


_KEY = DeclaredSize(0, 2)
_SCALARS = {
    "boolean": DeclaredSize(0, 4),
    "integer": DeclaredSize(0, 1),
    "number": DeclaredSize(0, 1),
}
_FORMATS = {
    "date": DeclaredSize(12, 12),
    "date-time": DeclaredSize(32, 21),
    "duration": DeclaredSize(32, 3),
}


def declared_size(schema: Json, *, is_resource: bool = False) -> DeclaredSize | None:
    """The sizes of the values of a schema; ``None`` if expressions cannot name them."""
    if schema.get("x-kubernetes-int-or-string"):
        return DeclaredSize(_longest(schema), 1)
    kind: str = schema.get("type") or ""
    sized: dict[str, Callable[[], DeclaredSize | None]] = {
        "array": lambda: _list(schema),
        "object": lambda: _object(schema, is_resource=is_resource),
        "string": lambda: _FORMATS.get(schema.get("format", "")) or _text(schema),
    }
    return sized[kind]() if kind in sized else _SCALARS.get(kind)


def _embedded(schema: Json) -> DeclaredSize | None:
    return declared_size(schema, is_resource=bool(schema.get("x-kubernetes-embedded-resource")))


def _longest(schema: Json) -> int:
    limit: int | None = schema.get("maxLength")
    return REQUEST_BYTES - 2 if limit is None else max(0, limit) * _BYTES_OF_RUNE


def _text(schema: Json) -> DeclaredSize:
    limit, words = schema.get("maxLength"), schema.get("enum")
    if schema.get("format") == "byte" and limit is not None:
        return DeclaredSize(max(0, limit), 2)
    if limit is None and words and schema.get("format") != "byte":
        lengths = [len(word.encode()) for word in words if isinstance(word, str)]
        return DeclaredSize(max(lengths, default=0), 2)
    return DeclaredSize(_longest(schema), 2)


def _list(schema: Json) -> DeclaredSize | None:
    item = _embedded(schema.get("items") or {})
    if item is None:
        return None
    most = _bounded(schema.get("maxItems"), item.least_bytes + 1)
    return DeclaredSize(most, 2, value=item)


def _bounded(limit: int | None, least_bytes: int) -> int:
    """A declared limit, or as many as fit into a request."""
    return (REQUEST_BYTES - 2) // least_bytes if limit is None else max(0, limit)


def _object(schema: Json, *, is_resource: bool) -> DeclaredSize | None:
    others = schema.get("additionalProperties")
    if isinstance(others, dict):
        value = _embedded(others)
        if value is None:
            return None
        most = _bounded(schema.get("maxProperties"), value.least_bytes + _KEY_BYTES)
        return DeclaredSize(most, 2, key=_KEY, value=value)
    fields, least_bytes = {}, 2
    for name, inner in properties_of(schema, is_resource=is_resource).items():
        if (found := _embedded(inner)) is None:
            continue
        if (escape := escaped(name)) is not None:
            fields[escape] = found
        if name in (schema.get("required") or ()) and inner.get("default") is None:
            least_bytes += len(name.encode()) + found.least_bytes + 4
    return DeclaredSize(0, least_bytes, fields)
