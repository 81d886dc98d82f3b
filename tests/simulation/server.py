"""A model of the API server: the part that a scheduler uses, and the history of all writes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

Json: TypeAlias = dict[str, Any]
Key: TypeAlias = tuple[str, str]

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
"""The true wall-clock time at the start."""

MAX_PAGE = 20
"""Fewer than clients ask for, so that lists come in several pages."""


class Answer(NamedTuple):
    """The server's response to a request."""

    status: int
    body: Json


@dataclass(frozen=True, slots=True)
class Change:
    """One write: the object before and after; None before its creation and after its deletion."""

    revision: int
    path: str
    at: float
    before: Json | None
    after: Json | None

    @property
    def current(self) -> Json:
        """The object as a watch shows it: a deleted object in its last state."""
        found = self.after if self.after is not None else self.before
        if found is None:
            raise ValueError("a change of nothing")
        return found


def refusal(status: int, reason: str, message: str = "") -> Answer:
    """A Status with status Failure."""
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "reason": reason,
        "message": message or reason,
        "code": status,
    }
    return Answer(status, body)


NOT_FOUND = refusal(404, "NotFound")


class ModelServer:
    """Collections of objects by list path, and all changes of them.

    Attributes:
        history: Every change, in order; watches replay from it.
        compacted: Watches cannot start at or before this revision.
        now: The time in seconds.
        binders: Which process bound a pod, by UID, in the order of the bindings.
        evicted: Pods that scheduler processes evicted, as they were at the eviction.
        events: How often an Event was written, by process, UID and reason.
        event_names: The names of all Events.
        served_groups: Since when each kind of pod groups is served, by list path.
        wall_clock_error_s: Error of its wall clock, and so of all timestamps.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self.history: list[Change] = []
        self.compacted = 0
        self.binders: dict[str, list[str]] = {}
        self.evicted: list[Json] = []
        self.events: Counter[tuple[str, str, str]] = Counter()
        self.event_names: set[str] = set()
        self.served_groups: dict[str, float] = {}
        self.wall_clock_error_s = 0.0
        self.now = now
        self._revision = 0
        self._num_uids = 0
        self._collections: dict[str, dict[Key, Json]] = {}
        self._observers: defaultdict[str, list[Callable[[Change], None]]] = defaultdict(list)

    def subscribe(self, observer: Callable[[Change], None], *paths: str) -> Callable[[], None]:
        """Call a function with every change under list paths; returns a function that ends it."""
        for path in paths:
            self._observers[path].append(observer)

        def end() -> None:
            for path in paths:
                self._observers[path].remove(observer)

        return end

    def timestamp(self) -> str:
        """The server's wall-clock time."""
        return wall_time(self.now() + self.wall_clock_error_s)

    @property
    def revision(self) -> int:
        """The revision of the last change."""
        return self._revision

    def collection(self, path: str) -> Mapping[Key, Json]:
        """The objects of one list path, by namespace and name."""
        return self._collections.get(path, {})

    # Writes of users, kubelets, controllers and other schedulers

    def create(self, path: str, obj: Json) -> Json:
        """Store a new object."""
        self._num_uids += 1
        stamps = {"uid": f"uid-{self._num_uids}", "creationTimestamp": self.timestamp()}
        metadata = {**stamps, **obj["metadata"]}
        return self._store(path, {**obj, "metadata": metadata})

    def update(self, path: str, key: Key, **parts: Json) -> Json | None:
        """Merge fields into parts of an existing object, such as metadata, spec or status."""
        found = self._collections.get(path, {}).get(key)
        if found is None:
            return None
        merged = {part: {**found.get(part, {}), **fields} for part, fields in parts.items()}
        return self._store(path, {**found, **merged})

    def replace(self, path: str, obj: Json) -> Json:
        """Replace an existing object."""
        return self._store(path, obj)

    def delete(self, path: str, key: Key) -> None:
        """Remove an object."""
        found = self._collections.get(path, {}).pop(key, None)
        if found is not None:
            self._revision += 1
            gone = _with_revision(found, self._revision)
            self._record(Change(self._revision, path, self.now(), gone, None))

    def terminate(self, key: Key) -> Json | None:
        """Begin the graceful deletion of a pod; delete it at once if it has no node."""
        pod = self.collection(PODS).get(key)
        if pod is None or pod["metadata"].get("deletionTimestamp"):
            return pod
        if not pod["spec"].get("nodeName"):
            self.delete(PODS, key)
            return pod
        return self.update(PODS, key, metadata={"deletionTimestamp": self.timestamp()})

    def bind(self, process: str, key: Key, node_name: str, uid: str = "") -> Answer:
        """Bind a pod to a node, once."""
        pod = self._collections.get(PODS, {}).get(key)
        if pod is None:
            return refusal(404, "NotFound", f'pods "{key[1]}" not found')
        if uid and pod["metadata"]["uid"] != uid:
            return refusal(409, "Conflict", "Precondition failed: UID in precondition")
        if pod["spec"].get("nodeName"):
            return refusal(409, "Conflict", f"pod {key[1]} is already assigned to node")
        if pod["metadata"].get("deletionTimestamp"):
            return refusal(409, "Conflict", f"pod {key[1]} is being deleted")
        self.binders.setdefault(pod["metadata"]["uid"], []).append(process)
        condition = {"type": "PodScheduled", "status": "True"}
        status = {"conditions": [condition], "nominatedNodeName": ""}
        self.update(PODS, key, spec={"nodeName": node_name}, status=status)
        return Answer(201, {"kind": "Status", "status": "Success", "code": 201})

    def list(self, path: str, query: Mapping[str, str], age: int = 0) -> Answer:
        """A list, or a page of it if there is a limit, as it was `age` changes ago."""
        revision, _, start = query.get("continue", f"{self._revision - age}:0").partition(":")
        if "continue" in query and int(revision) < self.compacted:
            return refusal(410, "Expired", "The provided continue parameter is too old")
        objects = self._as_of(path, max(0, int(revision)))
        matches = field_matcher(query.get("fieldSelector", ""))
        items = [obj for _, obj in sorted(objects.items()) if matches(obj)][int(start) :]
        metadata = {"resourceVersion": str(max(0, int(revision)))}
        if "limit" in query and len(items) > MAX_PAGE:
            metadata["continue"] = f"{revision}:{int(start) + MAX_PAGE}"
            items = items[:MAX_PAGE]
        return Answer(200, {"kind": "List", "metadata": metadata, "items": items})

    def _as_of(self, path: str, revision: int) -> dict[Key, Json]:
        """The objects of one list path at a revision; each change makes one revision."""
        objects = dict(self.collection(path))
        for change in reversed(self.history[revision:]):
            if change.path == path:
                _undo(objects, change)
        return objects

    def _store(self, path: str, obj: Json) -> Json:
        key = (obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
        collection = self._collections.setdefault(path, {})
        self._revision += 1
        before, after = collection.get(key), _with_revision(obj, self._revision)
        collection[key] = after
        self._record(Change(self._revision, path, self.now(), before, after))
        return after

    def _record(self, change: Change) -> None:
        self.history.append(change)
        for observer in list(self._observers[change.path]):
            observer(change)


PODS = "/api/v1/pods"
NODES = "/api/v1/nodes"
NAMESPACES = "/api/v1/namespaces"
LEASES = "/apis/coordination.k8s.io/v1/leases"
CONFIG_MAPS = "/api/v1/configmaps"
CLAIMS = "/api/v1/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
CSI_NODES = "/apis/storage.k8s.io/v1/csinodes"
ATTACHMENTS = "/apis/storage.k8s.io/v1/volumeattachments"
DEVICE_CLAIMS = "/apis/resource.k8s.io/v1/resourceclaims"
DEVICE_CLASSES = "/apis/resource.k8s.io/v1/deviceclasses"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
GROUPS = "/apis/scheduling.k8s.io/v1alpha2/podgroups"
LABEL_GROUPS = "/apis/scheduling.x-k8s.io/v1alpha1/podgroups"
BUDGETS = "/apis/policy/v1/poddisruptionbudgets"


def wall_time(seconds: float, timespec: str = "seconds") -> str:
    """The timestamp for a number of seconds since the start."""
    shown = (EPOCH + timedelta(seconds=seconds)).replace(tzinfo=None)
    return f"{shown.isoformat(timespec=timespec)}Z"


def watch_events(change: Change, matches: Callable[[Json], bool]) -> Iterator[Json]:
    """The event of a change for a watch with this selector: at most one."""
    was = change.before is not None and matches(change.before) and change.after is not change.before
    is_there = change.after is not None and matches(change.after)
    if is_there:
        yield {"type": "MODIFIED" if was else "ADDED", "object": change.after}
    elif was and change.before is not None:
        # The last matching state, with the resource version of the change.
        yield {"type": "DELETED", "object": _with_revision(change.before, change.revision)}


@lru_cache(maxsize=64)
def field_matcher(selector: str) -> Callable[[Json], bool]:
    """A predicate for one of the field selectors that the scheduler uses."""
    terms = [_term(text) for text in selector.split(",") if text]

    def matches(obj: Json) -> bool:
        for part, name, value, is_equal in terms:
            if (obj.get(part, {}).get(name, "") == value) is not is_equal:
                return False
        return True

    return matches


def _term(text: str) -> tuple[str, str, str, bool]:
    """The part, the field, the value, and whether the field must have it or must not."""
    is_equal = "!=" not in text
    path, _, value = text.partition("=" if is_equal else "!=")
    part, _, name = path.partition(".")
    return part, name, value, is_equal


def _undo(objects: dict[Key, Json], change: Change) -> None:
    metadata = change.current["metadata"]
    key = (metadata.get("namespace", ""), metadata["name"])
    if change.before is None or change.after is None:
        objects.pop(key, None)
    if change.before is not None:
        objects[key] = change.before


def _with_revision(obj: Json, revision: int) -> Json:
    return {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(revision)}}
