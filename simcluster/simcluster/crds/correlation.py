"""Finds for each part of a changed custom resource the same part before the change."""

from collections.abc import Iterator
from typing import Any, Final

Json = dict[str, Any]


class _Absent:
    """No value before: the object is new, or the part has no identity."""


ABSENT: Final = _Absent()


def old_entry(old: Any, key: str) -> Any:
    """The entry of an object or map before the change."""
    return old.get(key, ABSENT) if isinstance(old, dict) else ABSENT


def old_items(new: list[Any], old: Any, schema: Json) -> Iterator[tuple[Any, Any]]:
    """The items of a list, each with the item before the change, which only map lists tell."""
    before: list[tuple[Json, Any]] = []
    keys = schema.get("x-kubernetes-list-map-keys") or ()
    if isinstance(old, list) and schema.get("x-kubernetes-list-type") == "map":
        before = [(_identity(item, keys), item) for item in old]
    for item in new:
        wanted = _identity(item, keys)
        yield item, next((found for identity, found in before if identity == wanted), ABSENT)


def _identity(item: Any, keys: Any) -> Json:
    return {key: item.get(key) for key in keys} if isinstance(item, dict) else {}
