"""What must hold, judged from the server's own history and the engines at the end."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

import msgspec

from scheduler.api import Node, Pod, decode_object
from scheduler.api.events import (
    AssignedPodSeen,
    Event,
    NamespaceSeen,
    NodeSeen,
    PendingPodSeen,
)
from scheduler.api.instructions import BindPod, EvictPod
from scheduler.api.meta import ObjectMeta
from scheduler.api.namespace import Namespace
from scheduler.api.resources import node_allocatable, pod_requests
from scheduler.engine import Engine
from tests.simulation.server import LEASES, NODES, PODS, Change, Json, ModelServer
from tests.support.engines import default_engine

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
    yield from _pending_in_vain(server, scheduler_name)
    nodes = {name for _, name in server.collection(NODES)}
    if nodes != set(engine.node_names()):
        yield f"the engine knows nodes {sorted(engine.node_names())}, there are {sorted(nodes)}"
    known = {info.uid: info for info in engine.pods()}
    for stored in server.collection(PODS).values():
        pod = decode_object(Pod, msgspec.json.encode(stored))
        if (is_placed(pod) or is_ours(pod, scheduler_name)) and pod.metadata.uid not in known:
            yield f"the engine does not know pod {pod.metadata.namespaced_name}"
        known.pop(pod.metadata.uid, None)
    for info in known.values():
        yield f"the engine knows pod {info.key} ({info.uid}), which is not there"


def is_placed(pod: Pod) -> bool:
    """Whether a pod takes room on a node."""
    return bool(pod.spec.node_name) and pod.status.phase not in FINISHED


def is_ours(pod: Pod, scheduler_name: str) -> bool:
    """Whether a pod waits for the scheduler."""
    is_waiting = not pod.spec.node_name and pod.status.phase not in FINISHED
    return is_waiting and pod.spec.scheduler_name == scheduler_name


def _pending_in_vain(server: ModelServer, scheduler_name: str) -> Iterator[str]:
    """Pods that an engine which has just read all objects would bind, or make room for."""
    engine = default_engine(profile={"schedulerName": scheduler_name})
    pods = [
        decode_object(Pod, msgspec.json.encode(pod)) for pod in server.collection(PODS).values()
    ]
    nodes = server.collection(NODES).values()
    seen: list[Event] = [NodeSeen(decode_object(Node, msgspec.json.encode(node))) for node in nodes]
    seen += [AssignedPodSeen(pod) for pod in pods if is_placed(pod)]
    seen.append(NamespaceSeen(Namespace(ObjectMeta(name="default"))))
    waiting = [pod for pod in pods if is_ours(pod, scheduler_name)]
    seen += [PendingPodSeen(pod) for pod in waiting]
    engine.handle(seen, 0.0)
    for instruction in engine.schedule(0.0, len(waiting)):
        if isinstance(instruction, BindPod):
            yield f"pod {instruction.pod.key} is pending and could be on {instruction.node_name}"
        elif isinstance(instruction, EvictPod):
            victim, preemptor = instruction.victim, instruction.preemptor
            yield f"pod {preemptor.key} is pending and could take the place of {victim.key}"
    for pod in waiting:
        if not pod.spec.scheduling_gates and not pod.status.conditions:
            yield f"pod {pod.metadata.namespaced_name} is pending without a reason"


def requests_of(pod: Json) -> Counter[str]:
    """What a pod takes of its node."""
    return Counter({**pod_requests(decode_object(Pod, msgspec.json.encode(pod))), "pods": 1})


def allocatable_of(node: Json) -> dict[str, int]:
    """What a node has."""
    return dict(node_allocatable(decode_object(Node, msgspec.json.encode(node))))
