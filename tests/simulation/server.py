"""A model of the API server: as much of it as a scheduler meets, and its whole history."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import msgspec

Json: TypeAlias = dict[str, Any]
Key: TypeAlias = tuple[str, str]

_POD = re.compile(r"/api/v1/namespaces/([^/]+)/pods/([^/]+)(/binding|/status)?$")
_LEASE = re.compile(r"/apis/coordination.k8s.io/v1/namespaces/[^/]+/leases(?:/([^/]+))?$")
_EVENT = re.compile(r"/apis/events.k8s.io/v1/namespaces/[^/]+/events")


class Answer(NamedTuple):
    """What the server says to a request."""

    status: int
    body: Json


@dataclass(frozen=True, slots=True)
class Change:
    """One write: what was, and what is; None before the first and after the last state."""

    revision: int
    path: str
    at: float
    before: Json | None
    after: Json | None

    @property
    def current(self) -> Json:
        """The object as a watch shows it, a deleted one in its last state."""
        found = self.after if self.after is not None else self.before
        if found is None:
            raise ValueError("a change of nothing")
        return found


def refusal(status: int, reason: str, message: str = "") -> Answer:
    """A Status of kind Failure."""
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
    """Collections of objects by list path, and every change made to them.

    Attributes:
        history: Every change, in order; watches replay from it.
        compacted: Changes up to this revision cannot be watched from any more.
        binders: Which process bound a pod, by UID, in the order of the bindings.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self.history: list[Change] = []
        self.compacted = 0
        self.binders: dict[str, list[str]] = {}
        self._now = now
        self._revision = 0
        self._num_uids = 0
        self._collections: dict[str, dict[Key, Json]] = {}
        self._observers: list[Callable[[Change], None]] = []

    def subscribe(self, observer: Callable[[Change], None]) -> Callable[[], None]:
        """Have somebody told of every change; returns what ends it."""
        self._observers.append(observer)
        return lambda: self._observers.remove(observer)

    @property
    def revision(self) -> int:
        """Of the last change."""
        return self._revision

    def collection(self, path: str) -> Mapping[Key, Json]:
        """The objects of one list path, by namespace and name."""
        return self._collections.get(path, {})

    # Writes of the world: users, kubelets, other schedulers

    def create(self, path: str, obj: Json) -> Json:
        """Store a new object."""
        self._num_uids += 1
        metadata = {"uid": f"uid-{self._num_uids}", **obj["metadata"]}
        return self._store(path, {**obj, "metadata": metadata})

    def update(self, path: str, key: Key, **parts: Json) -> Json | None:
        """Merge fields into metadata, spec or status of an object that exists."""
        found = self._collections.get(path, {}).get(key)
        if found is None:
            return None
        merged = {part: {**found.get(part, {}), **fields} for part, fields in parts.items()}
        return self._store(path, {**found, **merged})

    def delete(self, path: str, key: Key) -> None:
        """Remove an object."""
        found = self._collections.get(path, {}).pop(key, None)
        if found is not None:
            self._revision += 1
            gone = _with_revision(found, self._revision)
            self._record(Change(self._revision, path, self._now(), gone, None))

    def bind(self, process: str, key: Key, node_name: str, uid: str = "") -> Answer:
        """Give a pod a node, once."""
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

    # Requests

    def answer(self, process: str, method: str, path: str, body: bytes | None) -> Answer:
        """Act on a request for one object."""
        sent: Json = msgspec.json.decode(body) if body else {}
        if (found := _POD.match(path)) is not None:
            namespace, name, subresource = found.groups()
            return self._answer_pod(process, method, (namespace, name), subresource, sent)
        if (found := _LEASE.match(path)) is not None:
            return self._answer_lease(method, found[1] or sent["metadata"]["name"], sent)
        if _EVENT.match(path):
            return Answer(201, sent)
        raise NotImplementedError(f"{method} {path}")

    def _answer_pod(
        self, process: str, method: str, key: Key, subresource: str | None, sent: Json
    ) -> Answer:
        if subresource == "/binding":
            return self.bind(process, key, sent["target"]["name"], sent["metadata"].get("uid", ""))
        pod = self._collections.get(PODS, {}).get(key)
        if pod is None:
            return NOT_FOUND
        if method == "GET":
            return Answer(200, pod)
        wanted = sent.get("preconditions") if method == "DELETE" else sent.get("metadata")
        if (wanted or {}).get("uid", pod["metadata"]["uid"]) != pod["metadata"]["uid"]:
            return refusal(409, "Conflict", "Precondition failed: UID in precondition")
        if method == "DELETE":
            return Answer(200, self._terminate(key, pod))
        status = {name: value or "" for name, value in sent["status"].items()}
        if all(pod["status"].get(name) == value for name, value in status.items()):
            return Answer(200, pod)
        return Answer(200, self.update(PODS, key, status=status) or {})

    def _terminate(self, key: Key, pod: Json) -> Json:
        """Begin a graceful deletion, which the kubelet ends; a pod without one is gone at once."""
        if not pod["spec"].get("nodeName"):
            self.delete(PODS, key)
            return pod
        if pod["metadata"].get("deletionTimestamp"):
            return pod
        return self.update(PODS, key, metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}) or pod

    def _answer_lease(self, method: str, name: str, sent: Json) -> Answer:
        key = ("kube-system", name)
        lease = self._collections.get(LEASES, {}).get(key)
        if method == "POST":
            if lease is not None:
                return refusal(409, "AlreadyExists")
            return Answer(201, self.create(LEASES, sent))
        if lease is None:
            return NOT_FOUND
        if method == "GET":
            return Answer(200, lease)
        if sent["metadata"].get("resourceVersion") != lease["metadata"]["resourceVersion"]:
            return refusal(409, "Conflict")
        return Answer(200, self.update(LEASES, key, spec=sent["spec"]) or {})

    def list(self, path: str, selector: str, age: int = 0) -> Json:
        """A list, whole; as it was `age` changes ago."""
        objects = dict(self.collection(path))
        revision = self._revision
        for change in reversed(self.history[len(self.history) - age :] if age else ()):
            revision = change.revision - 1
            if change.path == path:
                _undo(objects, change)
        matches = field_matcher(selector)
        items = [obj for _, obj in sorted(objects.items()) if matches(obj)]
        return {"kind": "List", "metadata": {"resourceVersion": str(revision)}, "items": items}

    def _store(self, path: str, obj: Json) -> Json:
        key = (obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
        collection = self._collections.setdefault(path, {})
        self._revision += 1
        before, after = collection.get(key), _with_revision(obj, self._revision)
        collection[key] = after
        self._record(Change(self._revision, path, self._now(), before, after))
        return after

    def _record(self, change: Change) -> None:
        self.history.append(change)
        for observer in list(self._observers):
            observer(change)


PODS = "/api/v1/pods"
NODES = "/api/v1/nodes"
NAMESPACES = "/api/v1/namespaces"
LEASES = "/apis/coordination.k8s.io/v1/leases"


def watch_events(change: Change, matches: Callable[[Json], bool]) -> Iterator[Json]:
    """What a watch with this selector shows of a change: at most one event."""
    was = change.before is not None and matches(change.before) and change.after is not change.before
    is_there = change.after is not None and matches(change.after)
    if is_there:
        yield {"type": "MODIFIED" if was else "ADDED", "object": change.after}
    elif was and change.before is not None:
        # In its last matching state, with the resource version of the change.
        yield {"type": "DELETED", "object": _with_revision(change.before, change.revision)}


def field_matcher(selector: str) -> Callable[[Json], bool]:
    """What a field selector of the scheduler says of an object."""
    terms = [_term(text) for text in selector.split(",") if text]
    return lambda obj: all(term(obj) for term in terms)


def _term(text: str) -> Callable[[Json], bool]:
    is_equal = "!=" not in text
    path, _, value = text.partition("=" if is_equal else "!=")
    part, _, name = path.partition(".")

    def holds(obj: Json) -> bool:
        return (obj.get(part, {}).get(name, "") == value) is is_equal

    return holds


def _undo(objects: dict[Key, Json], change: Change) -> None:
    metadata = change.current["metadata"]
    key = (metadata.get("namespace", ""), metadata["name"])
    if change.before is None or change.after is None:
        objects.pop(key, None)
    if change.before is not None:
        objects[key] = change.before


def _with_revision(obj: Json, revision: int) -> Json:
    return {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(revision)}}
