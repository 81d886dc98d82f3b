"""Objects of the API server with assumed changes (``AssumeCache`` of v1.36).

An assumption holds until the watch shows a newer version of the object, whatever its content, or
until the pod that assumed it is unreserved. It is derived from a version that the watch has shown,
or is the answer to a write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, KeysView
from typing import Generic, Protocol, TypeVar

import msgspec

from stowage.api.objects.meta import ObjectMeta
from stowage.state.changes import is_older


class ApiObject(Protocol):
    """An object with metadata."""

    @property
    def metadata(self) -> ObjectMeta:
        """The metadata."""
        ...


T = TypeVar("T", bound=ApiObject)


class Assumption(msgspec.Struct, Generic[T], frozen=True):
    """An object as assumed, and the UID of the pod that assumed it; empty once it is written."""

    object: T
    pod_uid: str


class AssumeCache(Generic[T]):
    """Objects of one kind by ``namespace/name`` or name, as received or as assumed.

    Args:
        on_change: Called with the object before and after; None if there is none.
    """

    __slots__ = ("_assumed", "_on_change", "_seen")

    def __init__(self, on_change: Callable[[T | None, T | None], None]) -> None:
        self._seen: dict[str, T] = {}
        self._assumed: dict[str, Assumption[T]] = {}
        self._on_change = on_change

    def __len__(self) -> int:
        return len(self._seen)

    def __iter__(self) -> Iterator[T]:
        return (self._latest(key, seen) for key, seen in self._seen.items())

    def get(self, key: str) -> T | None:
        """The object, as assumed if there is an assumption."""
        seen = self._seen.get(key)
        return None if seen is None else self._latest(key, seen)

    def get_api_object(self, key: str) -> T | None:
        """The object as last received from the API server."""
        return self._seen.get(key)

    def keys(self) -> KeysView[str]:
        """The keys of all objects."""
        return self._seen.keys()

    def assumption(self, key: str) -> Assumption[T] | None:
        """What is assumed about an object."""
        return self._assumed.get(key)

    def assumptions(self) -> Iterator[tuple[str, Assumption[T]]]:
        """All assumptions, by key."""
        return iter(self._assumed.items())

    def put(self, obj: T) -> tuple[T | None, bool]:
        """Store a received object; (the one received before, whether this one is newer)."""
        key = obj.metadata.namespaced_name
        old = self._seen.get(key)
        version = obj.metadata.resource_version
        if old is not None and old.metadata.uid == obj.metadata.uid:
            known = old.metadata.resource_version
            if is_older(version, known) or version == known != "":
                return old, False
        latest = self.get(key)
        self._seen[key] = obj
        if self._is_outdated(obj):
            return old, True
        self._assumed.pop(key, None)
        self._on_change(latest, obj)
        return old, True

    def drop(self, key: str) -> T | None:
        """Remove a deleted object; returns it as last received."""
        latest = self.get(key)
        self._assumed.pop(key, None)
        old = self._seen.pop(key, None)
        if latest is not None:
            self._on_change(latest, None)
        return old

    def assume(self, obj: T, pod_uid: str) -> None:
        """Assume that an object is changed.

        Raises:
            ValueError: The object is unknown, or `obj` is derived from an older version.
        """
        key = obj.metadata.namespaced_name
        latest = self.get(key)
        if latest is None:
            raise ValueError(f"could not find {type(obj).__name__} {key!r}")
        known, version = latest.metadata.resource_version, obj.metadata.resource_version
        if is_older(version, known):
            text = f"is out of sync (stored: {known}, assume: {version})"
            raise ValueError(f"{type(obj).__name__} {key!r} {text}")
        self._assumed[key] = Assumption(obj, pod_uid)
        self._on_change(latest, obj)

    def restore(self, key: str, pod_uid: str) -> None:
        """Give up what a pod assumed about an object, if anything."""
        assumption = self._assumed.get(key)
        if assumption is not None and assumption.pod_uid == pod_uid:
            del self._assumed[key]
            self._on_change(assumption.object, self._seen[key])

    def mark_written(self, key: str, pod_uid: str) -> None:
        """Mark what a pod assumed about an object as written: it cannot be given up."""
        assumption = self._assumed.get(key)
        if assumption is not None and assumption.pod_uid == pod_uid:
            self._assumed[key] = Assumption(assumption.object, "")

    def _is_outdated(self, seen: T) -> bool:
        """Whether an assumption comes from a later version than the one that the watch shows."""
        assumption = self._assumed.get(seen.metadata.namespaced_name)
        if assumption is None or assumption.object.metadata.uid != seen.metadata.uid:
            return False
        assumed = assumption.object.metadata.resource_version
        return is_older(seen.metadata.resource_version, assumed)

    def _latest(self, key: str, seen: T) -> T:
        assumption = self._assumed.get(key)
        return seen if assumption is None else assumption.object
