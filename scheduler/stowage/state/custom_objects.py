"""The objects of the resources that plugins name in their event registrations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

JsonObject = Mapping[str, Any]


class CustomObjects:
    """Objects by resource and by ``namespace/name``, or by name for cluster-wide ones."""

    def __init__(self) -> None:
        self._by_resource: dict[str, dict[str, JsonObject]] = {}

    def of(self, resource: str) -> Mapping[str, JsonObject]:
        """The objects of a resource such as ``foos.v1.example.com``; do not change them."""
        return self._by_resource.get(resource, {})

    def update(self, resource: str, found: JsonObject) -> tuple[bool, JsonObject | None]:
        """Add or update an object; returns whether it is news, and the object before."""
        known = self._by_resource.setdefault(resource, {})
        key = key_of(found["metadata"])
        old = known.get(key)
        if old is not None and _version(old) == _version(found):
            return False, old
        known[key] = found
        return True, old

    def remove(self, resource: str, key: str) -> JsonObject | None:
        """Remove an object; returns it, or None if it was not known."""
        return self._by_resource.get(resource, {}).pop(key, None)

    def remove_all(self, resource: str) -> Iterator[JsonObject]:
        """Remove all objects of a resource."""
        yield from self._by_resource.pop(resource, {}).values()


def key_of(metadata: Mapping[str, Any]) -> str:
    """``namespace/name``, or the name of a cluster-wide object."""
    namespace = metadata.get("namespace")
    return f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])


def _version(found: JsonObject) -> tuple[Any, Any]:
    metadata = found["metadata"]
    return metadata.get("uid"), metadata.get("resourceVersion")
