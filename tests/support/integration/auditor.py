"""An auditor, independent of the scheduler: it follows pods and nodes and records violations.

It gets every change directly from the store of the API server, without a watch.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from simcluster import SimulatedCluster
from simcluster.kinds.resources import NODES, PODS
from simcluster.tests.support.timeouts import WAIT_TIMEOUT_S
from stowage.api import InvalidObject, Node, Pod, decode_object
from stowage.api.values.resources import node_allocatable, pod_requests

Json = dict[str, Any]


class Auditor:
    """The bindings of each pod, and all violated invariants.

    Attributes:
        pods: The existing pods, by UID.
        nodes: The existing nodes, by name.
        bindings: Every pod that was ever bound, by UID.
        waited: Every pod that ever was unbound, by UID.
        violations: The violations: a pod moved, was rejected by its kubelet, or was bound to a
            full node.
    """

    def __init__(self) -> None:
        self.pods: dict[str, Json] = {}
        self.nodes: dict[str, Json] = {}
        self.bindings: dict[str, str] = {}
        self.waited: set[str] = set()
        self.violations: list[str] = []
        self._on_node: dict[str, set[str]] = defaultdict(set)
        self._changed = asyncio.Event()

    def pod_changed(self, change_type: str, pod: Json) -> None:
        """Handle one change of a pod: ADDED, MODIFIED or DELETED."""
        uid, node_name = pod["metadata"]["uid"], pod["spec"].get("nodeName", "")
        if change_type == "DELETED":
            self.pods.pop(uid, None)
            self._on_node[node_name].discard(uid)
        else:
            self.pods[uid] = pod
            if node_name:
                self._placed(uid, pod, node_name)
            else:
                self.waited.add(uid)
        self._changed.set()

    def node_changed(self, change_type: str, node: Json) -> None:
        """Handle one change of a node."""
        name = node["metadata"]["name"]
        if change_type == "DELETED":
            self.nodes.pop(name, None)
        else:
            self.nodes[name] = node
        self._changed.set()

    @property
    def num_placed(self) -> int:
        """Number of pods that are on a node and have not finished."""
        return sum(bool(node_of(pod)) and not is_finished(pod) for pod in self.pods.values())

    def named(self, name: str) -> Json:
        """The existing pod of this name."""
        return next(pod for pod in self.pods.values() if pod["metadata"]["name"] == name)

    def unbound(self, *, besides: Callable[[Json], bool] = lambda _pod: False) -> list[str]:
        """Names of the pods without a node, except those that must not get one."""
        return sorted(
            pod["metadata"]["name"]
            for pod in self.pods.values()
            if not node_of(pod) and not besides(pod)
        )

    async def until(self, holds: Callable[[], bool], what: str) -> None:
        """Return as soon as a condition holds.

        Raises:
            AssertionError: The condition did not hold within `WAIT_TIMEOUT_S`.
        """
        try:
            async with asyncio.timeout(WAIT_TIMEOUT_S):
                while not holds():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            unbound = self.unbound()
            text = f"{what}: not in {WAIT_TIMEOUT_S:g} s; {len(unbound)} unbound: {unbound[:10]}"
            raise AssertionError(text) from None

    def _placed(self, uid: str, pod: Json, node_name: str) -> None:
        name = pod["metadata"]["name"]
        before = self.bindings.setdefault(uid, node_name)
        if before != node_name:
            self.violations.append(f"pod {name} was on node {before} and is on {node_name}")
        if pod["status"].get("phase") == "Failed":
            reason = pod["status"].get("reason")
            self.violations.append(f"pod {name} was refused by node {node_name}: {reason}")
        if uid not in self._on_node[node_name]:
            self._on_node[node_name].add(uid)
            self._check_capacity(node_name, name)

    def _check_capacity(self, node_name: str, pod_name: str) -> None:
        node = self.nodes.get(node_name)
        if node is None:
            return
        allocatable = node_allocatable(decode_object(Node, msgspec.json.encode(node)))
        used: Counter[str] = Counter()
        for uid in self._on_node[node_name]:
            if not is_finished(self.pods[uid]):
                used.update(_requests(self.pods[uid]))
        for resource, amount in used.items():
            if amount > allocatable.get(resource, 0):
                self.violations.append(
                    f"pod {pod_name} overcommits node {node_name}: {resource} {amount} "
                    f"of {allocatable.get(resource, 0)}"
                )


def node_of(pod: Json) -> str:
    """The node of a pod; empty if it has none."""
    return str(pod["spec"].get("nodeName", ""))


def is_finished(pod: Json) -> bool:
    """Whether a pod has finished and uses no resources."""
    return pod["status"].get("phase") in ("Succeeded", "Failed")


def scheduled_condition(pod: Json) -> tuple[str, str]:
    """Status and reason of the PodScheduled condition; empty texts without one."""
    for condition in pod["status"].get("conditions") or ():
        if condition["type"] == "PodScheduled":
            return condition["status"], condition.get("reason", "")
    return "", ""


@contextmanager
def auditing(cluster: SimulatedCluster) -> Iterator[Auditor]:
    """An auditor of all changes of a cluster from its start."""
    auditor, store = Auditor(), cluster.store
    for stored in store.collection(NODES.stored_in).items():
        auditor.node_changed("ADDED", stored.obj)
    for stored in store.collection(PODS.stored_in).items():
        auditor.pod_changed("ADDED", stored.obj)
    unsubscribe = (
        store.subscribe(
            NODES.stored_in, lambda change: auditor.node_changed(change.type, change.current.obj)
        ),
        store.subscribe(
            PODS.stored_in, lambda change: auditor.pod_changed(change.type, change.current.obj)
        ),
    )
    try:
        yield auditor
    finally:
        for end in unsubscribe:
            end()


def _requests(pod: Json) -> dict[str, int]:
    """The requests of a pod; an invalid pod counts as one pod without requests."""
    try:
        decoded = decode_object(Pod, msgspec.json.encode(pod))
        return {**pod_requests(decoded), "pods": 1}
    except InvalidObject:
        return {"pods": 1}
