"""A small cluster that is exactly full when every pod is bound, with its auditor and faults.

No node has spare capacity: a pod that the scheduler loses, counts twice or forgets shows as an
unbound pod or as an overcommitted node.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from simcluster import ClusterOptions, FaultRule, KubeletOptions, SimulatedCluster, make_node
from simcluster.kinds.resources import EVENTS, NODES, PODS
from simcluster.kinds.subresources.binding import bind
from simcluster.store.deletion import DeleteOptions
from simcluster.tests.support.timeouts import WAIT_TIMEOUT_S, wait_until
from tests.support.integration.auditor import (
    Auditor,
    auditing,
    is_finished,
    node_of,
    scheduled_condition,
)
from tests.support.integration.running_scheduler import RunningScheduler

Json = dict[str, Any]

NUM_NODES = 20
PODS_PER_NODE = 4
NUM_PODS = NUM_NODES * PODS_PER_NODE
CAPACITY = {"cpu": "2", "memory": "8Gi", "pods": "110"}
BINDINGS = "/binding$"
LISTS = r"^(?!.*watch=).*/(pods|nodes|namespaces|services|replicasets)\?"
WATCHES = "watch=true"
"""Kinds of requests, as `FaultRule` names them."""

TOO_MUCH = "100"
"""More CPUs than any node has."""


def small_pod(name: str, cpu: str = "500m", **spec: Any) -> Json:
    """A small pod for our scheduler; by default four of them fill a node."""
    requests = {"cpu": cpu} if cpu else {}
    container = {
        "name": "c",
        "image": "registry.k8s.io/pause:3.10",
        "resources": {"requests": requests},
    }
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulerName": "stowage", "containers": [container], **spec},
    }


class FullCluster:
    """The cluster, with the actions of users, kubelets and faults.

    The actions bypass HTTP, so that faults affect only the scheduler.
    """

    def __init__(self, cluster: SimulatedCluster, auditor: Auditor, kubeconfig: Path) -> None:
        self.cluster = cluster
        self.auditor = auditor
        self.kubeconfig = kubeconfig
        self._names = self._new_names()

    def add_node(self, number: int, **labels: str) -> None:
        """Add a node, or add a new node under the name of a deleted one."""
        self.cluster.add_nodes([make_node(f"n{number}", dict(CAPACITY), labels)])

    def add_full_node(self) -> None:
        """Add a node without capacity."""
        self.cluster.add_nodes([make_node("full", {**CAPACITY, "cpu": "0", "pods": "0"})])

    def delete_node(self, number: int) -> None:
        """Delete a node and its pods."""
        self.cluster.registry.delete(NODES, "", f"n{number}", DeleteOptions())

    def create(self, pod: Json) -> str:
        """Create a pod; return its UID."""
        stored = self.cluster.registry.create(PODS, "default", pod)
        return str(stored.obj["metadata"]["uid"])

    def fill(self, num_pods: int = NUM_PODS, cpu: str = "500m") -> list[str]:
        """Create pods; return their names."""
        names = [next(self._names) for _ in range(num_pods)]
        for name in names:
            self.create(small_pod(name, cpu))
        return names

    def delete(self, name: str, grace_s: int | None = 0) -> None:
        """Delete a pod as a user."""
        self.cluster.registry.delete(PODS, "default", name, DeleteOptions(grace_period_s=grace_s))

    def bind_elsewhere(self, name: str, node_name: str) -> None:
        """Let another scheduler bind a pod."""
        target = {"target": {"kind": "Node", "name": node_name}}
        bind(self.cluster.registry, "default", name, target)

    def fail(self, *rules: FaultRule) -> None:
        """Add fault rules."""
        for rule in rules:
            self.cluster.faults.add(rule)

    def drop_watches(self) -> None:
        """End every watch."""
        self.cluster.server.watchers.close_all()

    def forget_history(self) -> None:
        """End every watch, and compact the history so that none can resume."""
        self.cluster.server.forget_history()
        self.drop_watches()

    async def drained(self, share: float) -> None:
        """Return once that share of all pods is bound."""
        await self.auditor.until(
            lambda: len(self.auditor.bindings) >= share * len(self.auditor.pods), "mid-drain"
        )

    async def told_of_bindings(self, num_pods: int) -> None:
        """Return once the scheduler has written that many Events of bindings.

        It writes them when it has the answers; a pod is bound before that.
        """
        events = self.cluster.registry.store.collection(EVENTS.stored_in)
        await wait_until(
            lambda: sum(each.obj["reason"] == "Scheduled" for each in events) >= num_pods
        )

    async def expect_recovery(
        self,
        scheduler: RunningScheduler | None = None,
        *,
        stays: Callable[[Json], bool] = lambda _pod: False,
    ) -> None:
        """Wait until every pod is bound and the engine's counts are right, then bind one more pod.

        Args:
            scheduler: The scheduler whose engine is checked; None if it runs in another process.
            stays: Whether a pod must stay unbound.
        """
        auditor = self.auditor
        await auditor.until(lambda: not auditor.unbound(besides=stays), "all pods bound")
        await self._agreed(scheduler)
        victim = next(
            pod["metadata"]["name"]
            for pod in auditor.pods.values()
            if node_of(pod) in auditor.nodes and not is_finished(pod)
        )
        self.delete(victim)
        self.fill(1, cpu="")
        await auditor.until(lambda: not auditor.unbound(besides=stays), "a new pod bound")
        await self._agreed(scheduler)
        told_otherwise = [
            (pod["metadata"]["name"], pod["status"].get("conditions"))
            for uid, pod in auditor.pods.items()
            if node_of(pod) and uid in auditor.waited and scheduled_condition(pod)[0] != "True"
        ]
        assert not told_otherwise, told_otherwise
        assert not auditor.violations, auditor.violations

    async def _agreed(self, scheduler: RunningScheduler | None) -> None:
        """Wait until an engine is idle and its counts equal those of the cluster."""
        if scheduler is None:
            return
        try:
            async with asyncio.timeout(WAIT_TIMEOUT_S):
                while not self._agrees(scheduler):  # noqa: ASYNC110 - the engine does not notify
                    await asyncio.sleep(0.02)
        except TimeoutError:
            counts = {**scheduler.engine.cache_counts(), **scheduler.engine.pending_counts()}
            there = {"placed": self.auditor.num_placed, "unbound": len(self.auditor.unbound())}
            raise AssertionError(f"the engine has {counts}; there are {there}") from None
        scheduler.engine.validate()

    def _agrees(self, scheduler: RunningScheduler) -> bool:
        counts = scheduler.engine.cache_counts()
        return (
            scheduler.is_idle
            and counts["pods"] == self.auditor.num_placed
            and counts["nodes"] == len(self.auditor.nodes)
            and scheduler.num_waiting == len(self.auditor.unbound())
        )

    @staticmethod
    def _new_names() -> Iterator[str]:
        number = 0
        while True:
            number += 1
            yield f"p{number}"


@asynccontextmanager
async def full_cluster(kubeconfig: Path, num_nodes: int = NUM_NODES) -> AsyncIterator[FullCluster]:
    """A running cluster with nodes and no pods; writes its kubeconfig to the file."""
    options = ClusterOptions(with_controllers=False, kubelet=KubeletOptions(stop_s=0.0))
    async with SimulatedCluster(options=options) as cluster:
        with auditing(cluster) as auditor:
            troubled = FullCluster(cluster, auditor, cluster.write_kubeconfig(kubeconfig))
            for number in range(num_nodes):
                troubled.add_node(number)
            yield troubled
