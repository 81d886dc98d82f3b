"""The store: revisions of objects as encoded bytes, and a bounded history of changes.

Objects are dicts without ``kind`` and ``apiVersion`` and are never changed once stored. Each
revision is encoded once; lists, gets and watch events reuse the bytes. One counter numbers all
writes, as etcd's revision does.
"""

import bisect
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Literal, Protocol, TypeVar, cast

from simcluster.store.managed_fields import ManagedFields
from simcluster.store.request_size import check_request_size
from simcluster.store.selectable_fields import field_values
from simcluster.store.stored import Stored, encode, object_key

__all__ = [
    "KEPT",
    "Change",
    "ChangeType",
    "Collection",
    "HistoryLostError",
    "Kept",
    "Range",
    "Store",
    "Stored",
    "encode",
]

Json = dict[str, Any]
ChangeType = Literal["ADDED", "MODIFIED", "DELETED"]
Subscriber = Callable[["Change"], None]


class Kept(Enum):
    """Stands for the managedFields that an object has already."""

    KEPT = "kept"


KEPT: Final = Kept.KEPT
_AFTER_SLASH = chr(ord("/") + 1)


class Change:
    """One write.

    Args:
        type: ADDED, MODIFIED or DELETED.
        current: the object after the write; for DELETED its last state under the deletion's own
            revision.
        previous: the object before the write; ``None`` for ADDED.
    """

    __slots__ = ("_departed", "collection", "current", "frames", "previous", "type")

    def __init__(
        self, collection: str, type_: ChangeType, current: Stored, previous: Stored | None
    ) -> None:
        self.collection = collection
        self.type: ChangeType = type_
        self.current = current
        self.previous = previous
        self.frames: dict[tuple[str, str], bytes] = {}
        self._departed: Stored | None = None

    @property
    def revision(self) -> int:
        """The write's revision."""
        return self.current.revision

    def departed(self) -> Stored:
        """The previous state under this revision, for a selector that the object has left."""
        if self.type == "DELETED" or self.previous is None:
            return self.current
        if self._departed is None:
            before = self.previous
            obj = _with_revision(before.obj, self.revision)
            self._departed = Stored(obj, self.revision, before.fields, before.managed_fields)
        return self._departed


@dataclass(frozen=True, slots=True)
class Backup:
    """All objects at one revision, by collection and key, as a snapshot of etcd has them."""

    revision: int
    objects: Mapping[str, Mapping[str, Stored]]


class HistoryLostError(Exception):
    """The asked revision is older than the kept history.

    Args:
        oldest: the oldest revision a watch could still start from.
    """

    def __init__(self, asked: int, oldest: int) -> None:
        super().__init__(f"too old resource version: {asked} ({oldest})")


def _with_revision(obj: Json, revision: int) -> Json:
    return {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(revision)}}


class Range:
    """Objects of a collection as they were at one revision, in key order.

    Read it before the next write, or pass each write to :meth:`outlive` until it is read.
    """

    def __init__(
        self, keys: list[str], objects: Mapping[str, Stored], past: dict[str, Stored | None]
    ) -> None:
        self._keys = keys
        self._objects = objects
        self._past = past

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[Stored]:
        objects, past = self._objects, self._past
        return (past.get(key) or objects[key] for key in self._keys)

    def outlive(self, change: Change) -> None:
        """Keep the revision that a write replaces."""
        self._past.setdefault(change.current.key, change.previous)


class Index(Protocol):
    """Data derived from the objects of a collection."""

    def add(self, stored: Stored) -> None:
        """Take in a new revision."""

    def drop(self, stored: Stored) -> None:
        """Take out a revision that was replaced or removed."""


AnyIndex = TypeVar("AnyIndex", bound=Index)


class Collection:
    """All objects of one resource, their recent changes and their subscribers."""

    def __init__(self, name: str, history_size: int) -> None:
        self.name = name
        self.subscribers: dict[int, Subscriber] = {}
        self.last_revision = 0
        self._objects: dict[str, Stored] = {}
        self._keys: list[str] = []
        # Keys that were added and removed since the last sort.
        self._added: dict[str, None] = {}
        self._removed: set[str] = set()
        self._history: deque[Change] = deque(maxlen=history_size)
        self._forgotten_revision = 0
        self._in_order: list[Stored] | None = None
        self._indexes: dict[type[Index], Index] = {}

    def index(self, kind: type[AnyIndex]) -> AnyIndex:
        """The index of a class; created on first use and kept up to date."""
        found = self._indexes.get(kind)
        if found is None:
            found = self._indexes[kind] = kind()
            for stored in self:
                found.add(stored)
        return cast("AnyIndex", found)

    def get(self, namespace: str, name: str) -> Stored | None:
        """The current revision of an object, if it exists."""
        return self._objects.get(object_key(namespace, name))

    def items(self, namespace: str | None = None) -> list[Stored]:
        """Objects in key order, of one namespace or of all (``None``)."""
        if namespace is not None:
            return [self._objects[key] for key in self._keys_of(namespace)]
        if self._in_order is None:
            self._in_order = list(map(self._objects.__getitem__, self._ordered_keys()))
        return self._in_order

    def range_at(self, revision: int, namespace: str | None = None, start: str = "") -> Range:
        """Objects from key ``start`` on, as they were at ``revision``.

        Raises:
            HistoryLostError: the changes since then are no longer kept.
        """
        past: dict[str, Stored | None] = {}
        for change in reversed(self.changes_since(revision)):
            if namespace is None or change.current.namespace == namespace:
                past[change.current.key] = change.previous
        keys = self._keys_of(namespace, start)
        absent = {key for key, stored in past.items() if stored is None}
        if absent:
            keys = [key for key in keys if key not in absent]
        gone = [key for key in past.keys() - absent if key >= start and key not in self._objects]
        if gone:
            keys = sorted(keys + gone)
        return Range(keys, self._objects, past)

    def _keys_of(self, namespace: str | None, start: str = "") -> list[str]:
        keys = self._ordered_keys()
        first = bisect.bisect_left(keys, start) if start else 0
        if namespace is None or namespace == "":
            return keys[first:]
        first = max(first, bisect.bisect_left(keys, f"{namespace}/"))
        return keys[first : bisect.bisect_left(keys, f"{namespace}{_AFTER_SLASH}")]

    def _ordered_keys(self) -> list[str]:
        if self._removed:
            self._keys = [key for key in self._keys if key not in self._removed]
            self._removed = set()
        if self._added:
            self._keys += self._added
            self._keys.sort()
            self._added = {}
        return self._keys

    @property
    def by_key(self) -> Mapping[str, Stored]:
        """The objects by key."""
        return self._objects

    def __iter__(self) -> Iterator[Stored]:
        """Objects in no particular order."""
        return iter(self._objects.values())

    def __len__(self) -> int:
        return len(self._objects)

    def put(self, stored: Stored) -> None:
        """Make ``stored`` the current revision of its object."""
        key = stored.key
        for index in self._indexes.values():
            if key in self._objects:
                index.drop(self._objects[key])
            index.add(stored)
        if key not in self._objects:
            if key in self._removed:
                self._removed.discard(key)
            else:
                self._added[key] = None
        self._objects[key] = stored
        self._in_order = None

    def remove(self, stored: Stored) -> None:
        """Remove an object.

        Raises:
            KeyError: the object does not exist.
        """
        key = stored.key
        for index in self._indexes.values():
            index.drop(self._objects[key])
        del self._objects[key]
        if key in self._added:
            del self._added[key]
        else:
            self._removed.add(key)
        self._in_order = None

    def record(self, change: Change) -> None:
        """Append a change to the history and call every subscriber."""
        if len(self._history) == self._history.maxlen:
            self._forgotten_revision = self._history[0].revision
        self._history.append(change)
        self.last_revision = change.revision
        for subscriber in tuple(self.subscribers.values()):
            subscriber(change)

    def go_back(self, objects: Mapping[str, Stored], revision: int) -> None:
        """Replace all objects by those of a backup; subscribers see deletions and additions."""
        now = dict(self._objects)
        for key, stored in now.items():
            if objects.get(key) is not stored:
                self.remove(stored)
                self.record(Change(self.name, "DELETED", stored, stored))
        for key, stored in objects.items():
            if now.get(key) is not stored:
                self.put(stored)
                self.record(Change(self.name, "ADDED", stored, None))
        self._history.clear()
        self._forgotten_revision = self.last_revision = revision

    def forget_changes(self, revision: int) -> None:
        """Drop the changes up to a revision: watches from before the last of them answer 410."""
        while self._history and self._history[0].revision <= revision:
            self._forgotten_revision = self._history.popleft().revision

    def forget_history(self, revision: int) -> None:
        """Watches from before a revision answer 410, changed or not since then."""
        self.forget_changes(revision)
        self._forgotten_revision = max(self._forgotten_revision, revision)

    def changes_since(self, revision: int) -> list[Change]:
        """Changes after ``revision``, oldest first.

        Raises:
            HistoryLostError: some of them are no longer kept.
        """
        if revision < self._forgotten_revision:
            raise HistoryLostError(revision, self._forgotten_revision)
        if revision >= self.last_revision:
            return []
        history = list(self._history)
        start = bisect.bisect_right(history, revision, key=lambda change: change.revision)
        return history[start:]


class Store:
    """Every collection under one revision counter.

    Writes are synchronous and call subscribers before they return; a subscriber must not write.

    Args:
        history_size: changes kept per collection for watches that start in the past.

    Attributes:
        revision: of the last write.
        is_restoring: whether subscribers see the differences of a backup, and no writes.
    """

    def __init__(self, history_size: int = 10_000) -> None:
        self.revision = 1
        self.is_restoring = False
        self._history_size = history_size
        self._forgotten_revision = 0
        self._collections: dict[str, Collection] = {}
        self._next_subscription = 0

    def collection(self, name: str) -> Collection:
        """The collection of a name; created on first use."""
        found = self._collections.get(name)
        if found is None:
            found = self._collections[name] = Collection(name, self._history_size)
            found.forget_history(self._forgotten_revision)
        return found

    def get(self, collection: str, namespace: str, name: str) -> Stored | None:
        """The current revision of an object, if it exists."""
        return self.collection(collection).get(namespace, name)

    def put(
        self, collection: str, obj: Json, managed_fields: ManagedFields | Kept | None = KEPT
    ) -> Stored:
        """Store an object under a new revision; equal content keeps its revision.

        Args:
            collection: of the object.
            obj: the object without its managedFields.
            managed_fields: its managedFields; by default those that it has.

        Raises:
            ApiError: 500, it is too large for etcd.
        """
        target = self.collection(collection)
        metadata = obj["metadata"]
        namespace, name = metadata.get("namespace", ""), metadata["name"]
        previous = target.get(namespace, name)
        if managed_fields is KEPT:
            managed_fields = None if previous is None else previous.managed_fields
        if previous is not None and _is_same(previous, obj, managed_fields):
            return previous
        revision, fields = self.revision + 1, field_values(collection, obj)
        stored = Stored(_with_revision(obj, revision), revision, fields, managed_fields)
        check_request_size(collection, stored)
        self.revision = revision
        target.put(stored)
        kind: ChangeType = "ADDED" if previous is None else "MODIFIED"
        target.record(Change(collection, kind, stored, previous))
        return stored

    def load(self, collection: str, obj: Json) -> None:
        """Store an object of another cluster under its resourceVersion there.

        No subscriber is called and no change is recorded, so this is for the time before the first
        watch; call :meth:`forget_history` afterwards. An object without a usable resourceVersion
        gets the next one.
        """
        target, metadata = self.collection(collection), obj["metadata"]
        text = metadata.get("resourceVersion") or ""
        revision = int(text) if text.isdigit() else self.revision + 1
        if not text.isdigit():
            obj = _with_revision(obj, revision)
        self.revision = max(self.revision, revision)
        target.last_revision = max(target.last_revision, revision)
        target.put(Stored(obj, revision, field_values(collection, obj)))

    def remove(self, collection: str, stored: Stored) -> Stored:
        """Delete an object; returns its last state under the deletion's revision."""
        target = self.collection(collection)
        target.remove(stored)
        self.revision += 1
        obj = _with_revision(stored.obj, self.revision)
        last = Stored(obj, self.revision, stored.fields, stored.managed_fields)
        target.record(Change(collection, "DELETED", last, stored))
        return last

    def back_up(self) -> Backup:
        """All objects as they are now."""
        return Backup(
            self.revision, {name: dict(each.by_key) for name, each in self._collections.items()}
        )

    def restore(self, backup: Backup, bump: int = 0) -> None:
        """Go back to a backup, as etcd does: revisions and all; end all watches before.

        Args:
            backup: of this store.
            bump: added to the backup's revision, as by ``etcdutl snapshot restore --bump-revision
                --mark-compacted``; the objects keep the revisions that they have in the backup.
        """
        self.revision = self._forgotten_revision = backup.revision + bump
        self.is_restoring = True
        for name, collection in self._collections.items():
            collection.go_back(backup.objects.get(name, {}), self.revision)
        self.is_restoring = False

    def subscribe(self, collection: str, subscriber: Subscriber) -> Callable[[], None]:
        """Call ``subscriber`` with each change of a collection; returns the function to stop it."""
        subscribers = self.collection(collection).subscribers
        token = self._next_subscription
        self._next_subscription += 1
        subscribers[token] = subscriber

        def unsubscribe() -> None:
            subscribers.pop(token, None)

        return unsubscribe

    def forget_changes(self, revision: int) -> None:
        """Drop the changes of every collection up to a revision."""
        for collection in self._collections.values():
            collection.forget_changes(revision)

    def forget_history(self) -> None:
        """Every watch and page from before the current revision answers 410."""
        self._forgotten_revision = self.revision
        for collection in self._collections.values():
            collection.forget_history(self._forgotten_revision)


def _is_same(previous: Stored, obj: Json, managed_fields: ManagedFields | None) -> bool:
    if managed_fields is not previous.managed_fields and (
        managed_fields is None
        or previous.managed_fields is None
        or managed_fields.text != previous.managed_fields.text
    ):
        return False
    metadata, before = obj["metadata"], previous.obj
    revision = before["metadata"]["resourceVersion"]
    if metadata.get("resourceVersion") != revision:
        obj = {**obj, "metadata": {**metadata, "resourceVersion": revision}}
    return before == obj
