"""The memory of the cluster: revisions of objects, their encoded bytes, and a bounded history.

Objects are plain dicts without ``kind`` and ``apiVersion`` and are never changed once stored: a
change is a new dict that shares what stayed equal. Each revision is encoded once; lists, gets and
watch events reuse those bytes. One counter numbers all writes, as etcd's revision does.
"""

import bisect
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Literal

import msgspec

Json = dict[str, Any]
ChangeType = Literal["ADDED", "MODIFIED", "DELETED"]
Subscriber = Callable[["Change"], None]

encode = msgspec.json.Encoder().encode


class Stored:
    """One revision of one object.

    Args:
        obj: the object; read-only from here on.
        revision: its resourceVersion.
    """

    __slots__ = ("body", "obj", "revision")

    def __init__(self, obj: Json, revision: int) -> None:
        self.obj = obj
        self.revision = revision
        self.body = encode(obj)

    @property
    def name(self) -> str:
        """``metadata.name``."""
        name: str = self.obj["metadata"]["name"]
        return name

    @property
    def namespace(self) -> str:
        """``metadata.namespace``; empty for a cluster-scoped object."""
        namespace: str = self.obj["metadata"].get("namespace", "")
        return namespace


class Change:
    """One write as watchers see it.

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
        """The last matching state under this write's revision, for one that left a selector."""
        if self.type == "DELETED" or self.previous is None:
            return self.current
        if self._departed is None:
            self._departed = Stored(_with_revision(self.previous.obj, self.revision), self.revision)
        return self._departed


class HistoryLostError(Exception):
    """The asked revision is older than the kept history.

    Args:
        oldest: the oldest revision a watch could still start from.
    """

    def __init__(self, asked: int, oldest: int) -> None:
        super().__init__(f"too old resource version: {asked} ({oldest})")


def _with_revision(obj: Json, revision: int) -> Json:
    return {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(revision)}}


class Collection:
    """All objects of one resource, their recent changes and who follows them."""

    def __init__(self, name: str, history_size: int) -> None:
        self.name = name
        self.by_namespace: dict[str, dict[str, Stored]] = {}
        self.subscribers: dict[int, Subscriber] = {}
        self.last_revision = 0
        self._history: deque[Change] = deque(maxlen=history_size)
        self._forgotten_revision = 0
        self._in_order: tuple[int, list[Stored]] = (-1, [])

    def get(self, namespace: str, name: str) -> Stored | None:
        """The current revision of an object, if it exists."""
        objects = self.by_namespace.get(namespace)
        return objects.get(name) if objects else None

    def items(self, namespace: str | None = None) -> list[Stored]:
        """Objects in key order, of one namespace or of all (``None``)."""
        if namespace is not None:
            objects = self.by_namespace.get(namespace, {})
            return [objects[name] for name in sorted(objects)]
        if self._in_order[0] != self.last_revision:
            in_order = [
                self.by_namespace[key][name]
                for key in sorted(self.by_namespace)
                for name in sorted(self.by_namespace[key])
            ]
            self._in_order = (self.last_revision, in_order)
        return self._in_order[1]

    def items_at(self, revision: int, namespace: str | None = None) -> list[Stored]:
        """Objects in key order as they were at ``revision``.

        Raises:
            HistoryLostError: the changes since then are no longer kept.
        """
        changes = self.changes_since(revision)
        if not changes:
            return self.items(namespace)
        then = {(stored.namespace, stored.name): stored for stored in self.items(namespace)}
        for change in reversed(changes):
            key = (change.current.namespace, change.current.name)
            if namespace is not None and key[0] != namespace:
                continue
            if change.previous is None:
                then.pop(key, None)
            else:
                then[key] = change.previous
        return [then[key] for key in sorted(then)]

    def __iter__(self) -> Iterator[Stored]:
        """Objects in no particular order."""
        for objects in self.by_namespace.values():
            yield from objects.values()

    def __len__(self) -> int:
        return sum(map(len, self.by_namespace.values()))

    def record(self, change: Change) -> None:
        """Remember a change and tell every subscriber."""
        if len(self._history) == self._history.maxlen:
            self._forgotten_revision = self._history[0].revision
        self._history.append(change)
        self.last_revision = change.revision
        for subscriber in tuple(self.subscribers.values()):
            subscriber(change)

    def forget_history(self, revision: int) -> None:
        """Drop the whole history, as a compaction would: older watches answer 410."""
        self._history.clear()
        self._forgotten_revision = revision

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

    Writes are synchronous and tell subscribers before they return; a subscriber must not write.

    Args:
        history_size: changes kept per collection for watches that start in the past.
    """

    def __init__(self, history_size: int = 10_000) -> None:
        self.revision = 1
        self._history_size = history_size
        self._collections: dict[str, Collection] = {}
        self._next_subscription = 0

    def collection(self, name: str) -> Collection:
        """The named collection; made on first use."""
        found = self._collections.get(name)
        if found is None:
            found = self._collections[name] = Collection(name, self._history_size)
        return found

    def get(self, collection: str, namespace: str, name: str) -> Stored | None:
        """The current revision of an object, if it exists."""
        return self.collection(collection).get(namespace, name)

    def put(self, collection: str, obj: Json) -> Stored:
        """Store an object under a new revision; equal content keeps its revision, silently."""
        target = self.collection(collection)
        metadata = obj["metadata"]
        namespace, name = metadata.get("namespace", ""), metadata["name"]
        previous = target.get(namespace, name)
        if previous is not None and _same_content(previous, obj):
            return previous
        self.revision += 1
        stored = Stored(_with_revision(obj, self.revision), self.revision)
        target.by_namespace.setdefault(namespace, {})[name] = stored
        kind: ChangeType = "ADDED" if previous is None else "MODIFIED"
        target.record(Change(collection, kind, stored, previous))
        return stored

    def load(self, collection: str, obj: Json) -> None:
        """Take over an object that has lived elsewhere, under the resourceVersion it has there.

        Nobody is told and nothing is kept of it for watches, so this is for the time before anybody
        follows; :meth:`forget_history` ends that time. An object without a usable resourceVersion
        gets the next one.
        """
        target, metadata = self.collection(collection), obj["metadata"]
        text = metadata.get("resourceVersion") or ""
        revision = int(text) if text.isdigit() else self.revision + 1
        if not text.isdigit():
            obj = _with_revision(obj, revision)
        self.revision = max(self.revision, revision)
        target.last_revision = max(target.last_revision, revision)
        objects = target.by_namespace.setdefault(metadata.get("namespace", ""), {})
        objects[metadata["name"]] = Stored(obj, revision)

    def remove(self, collection: str, stored: Stored) -> Stored:
        """Delete an object; returns its last state under the deletion's revision."""
        target = self.collection(collection)
        objects = target.by_namespace[stored.namespace]
        del objects[stored.name]
        if not objects:
            del target.by_namespace[stored.namespace]
        self.revision += 1
        last = Stored(_with_revision(stored.obj, self.revision), self.revision)
        target.record(Change(collection, "DELETED", last, stored))
        return last

    def subscribe(self, collection: str, subscriber: Subscriber) -> Callable[[], None]:
        """Call ``subscriber`` with each change of a collection; returns how to stop that."""
        subscribers = self.collection(collection).subscribers
        token = self._next_subscription
        self._next_subscription += 1
        subscribers[token] = subscriber

        def unsubscribe() -> None:
            subscribers.pop(token, None)

        return unsubscribe

    def forget_history(self) -> None:
        """Compact every collection up to now."""
        for collection in self._collections.values():
            collection.forget_history(self.revision)


def _same_content(previous: Stored, obj: Json) -> bool:
    metadata = obj["metadata"]
    revision = previous.obj["metadata"]["resourceVersion"]
    if metadata.get("resourceVersion") != revision:
        obj = {**obj, "metadata": {**metadata, "resourceVersion": revision}}
    return previous.obj == obj
