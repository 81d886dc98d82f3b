"""What must hold, judged from the server's own history and the engines at the end."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

import msgspec

from scheduler.api import Node, Pod, decode_object
from scheduler.api.resources import node_allocatable, pod_requests
from scheduler.engine import Engine
from tests.simulation.server import LEASES, NODES, PODS, Change, Json, Key, ModelServer

FINISHED = ("Succeeded", "Failed")


class Auditor:
    """Follows every change and notes what must not be.

    Attributes:
        violations: One sentence each.
        num_bound: How many pods were bound by the scheduler.
    """

    def __init__(self, server: ModelServer) -> None:
        self.violations: list[str] = []
        self.num_bound = 0
        self._server = server
        self._node_of: dict[str, str] = {}
        self._on_node: defaultdict[str, dict[str, Counter[str]]] = defaultdict(dict)
        self._foreign: set[str] = set()
        self._holder = ""
        server.subscribe(self._take)

    def binding_sent(self, process: str) -> None:
        """Take a Binding that leaves a process: nobody else may hold the lease by now."""
        if self._holder not in ("", process):
            self.violations.append(f"{process} let a Binding out while {self._holder} led")

    def _take(self, change: Change) -> None:
        if change.path == LEASES and change.after is not None:
            self._holder = change.after["spec"]["holderIdentity"]
        elif change.path == PODS:
            self._take_pod(change)

    def _take_pod(self, change: Change) -> None:
        pod = change.current
        uid, node_name = pod["metadata"]["uid"], pod["spec"].get("nodeName", "")
        if not node_name:
            return
        if change.after is None or pod["status"].get("phase") in FINISHED:
            self._on_node[node_name].pop(uid, None)
        if change.after is None:
            return
        before = self._node_of.setdefault(uid, node_name)
        if before != node_name:
            self.violations.append(f"pod {uid} was bound to {before} and to {node_name}")
        if uid not in self._on_node[node_name] and pod["status"].get("phase") not in FINISHED:
            self._placed(uid, pod, node_name)

    def _placed(self, uid: str, pod: Json, node_name: str) -> None:
        binders = self._server.binders.get(uid, ())
        if len(binders) > 1:
            self.violations.append(f"pod {uid} was bound by {' and by '.join(binders)}")
        if not binders or binders[0] == "foreign":
            self._foreign.add(uid)
        else:
            self.num_bound += 1
        self._on_node[node_name][uid] = requests_of(pod)
        node = self._server.collection(NODES).get(("", node_name))
        if node is None or uid in self._foreign:
            return
        self._check_room(node, node_name, uid)

    def _check_room(self, node: Json, node_name: str, uid: str) -> None:
        """Pods that others put there are not the scheduler's to answer for."""
        used: Counter[str] = Counter()
        for each, requests in self._on_node[node_name].items():
            if each not in self._foreign:
                used += requests
        for resource, amount in used.items():
            has = allocatable_of(node).get(resource, 0)
            if amount > has:
                self.violations.append(
                    f"pod {uid} overcommits {node_name}: {resource} {amount} of {has}"
                )


def end_state_violations(server: ModelServer, engine: Engine, scheduler_name: str) -> Iterator[str]:
    """What is wrong once everything had time to settle."""
    engine.validate()
    yield from _unbound_that_fit(server, scheduler_name)
    nodes = {name for _, name in server.collection(NODES)}
    if nodes != set(engine.node_names()):
        yield f"the engine knows nodes {sorted(engine.node_names())}, there are {sorted(nodes)}"
    known = {info.uid: info for info in engine.pods()}
    for (namespace, name), pod in server.collection(PODS).items():
        if not is_ours_or_placed(pod, scheduler_name):
            continue
        info = known.pop(pod["metadata"]["uid"], None)
        if info is None:
            yield f"the engine does not know pod {namespace}/{name}"
    for info in known.values():
        yield f"the engine knows pod {info.key} ({info.uid}), which is not there"


def is_ours_or_placed(pod: Json, scheduler_name: str) -> bool:
    """Whether the engine should know a pod."""
    if pod["status"].get("phase") in FINISHED:
        return False
    return bool(pod["spec"].get("nodeName")) or pod["spec"]["schedulerName"] == scheduler_name


def _unbound_that_fit(server: ModelServer, scheduler_name: str) -> Iterator[str]:
    free = _free_by_node(server)
    for (namespace, name), pod in server.collection(PODS).items():
        if pod["spec"].get("nodeName") or pod["spec"]["schedulerName"] != scheduler_name:
            continue
        if pod["spec"].get("schedulingGates") or pod["metadata"].get("deletionTimestamp"):
            continue
        wants = requests_of(pod)
        fits = sorted(node for node, room in free.items() if wants <= room)
        if fits:
            yield f"pod {namespace}/{name} is pending and fits {fits[0]}: {_condition(pod)}"
        elif not _condition(pod):
            yield f"pod {namespace}/{name} is pending without a reason"


def _free_by_node(server: ModelServer) -> dict[str, Counter[str]]:
    free = {
        name: Counter(allocatable_of(node))
        for (_, name), node in server.collection(NODES).items()
        if not node["spec"].get("unschedulable")
    }
    for pod in server.collection(PODS).values():
        node_name = pod["spec"].get("nodeName", "")
        if node_name in free and pod["status"].get("phase") not in FINISHED:
            free[node_name].subtract(requests_of(pod))
    return free


def _condition(pod: Json) -> str:
    for condition in pod["status"].get("conditions", ()):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return str(condition.get("message", ""))
    return ""


def requests_of(pod: Json) -> Counter[str]:
    """What a pod takes of its node."""
    return Counter({**pod_requests(decode_object(Pod, msgspec.json.encode(pod))), "pods": 1})


def allocatable_of(node: Json) -> dict[str, int]:
    """What a node has."""
    return dict(node_allocatable(decode_object(Node, msgspec.json.encode(node))))


__all__ = ["Auditor", "Key", "end_state_violations"]
