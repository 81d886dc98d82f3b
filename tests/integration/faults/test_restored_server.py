"""A restore of the API server's store from a backup leaves nothing stale in anybody's memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from simcluster.apiserver import listing
from simcluster.kinds.resources import LEASES, NODES, PODS
from simcluster.tests.support.timeouts import wait_until
from stowage.engine import Engine
from stowage.operator.client.timeouts import Timeouts
from stowage.operator.clock import Clock
from stowage.operator.cluster_watch import ClusterWatch, watch_cluster
from stowage.operator.lease import LeaderElectionOptions
from tests.support.engines import default_engine
from tests.support.integration.full_cluster import FullCluster, full_cluster
from tests.support.integration.running_scheduler import running_scheduler

SHORT = Timeouts(max_backoff_s=0.2)

# The server stops in the middle of requests; what their clients leave is collected, which warns.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture
async def full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[FullCluster]:
    """A cluster whose server does not wait long for a version of the future."""
    monkeypatch.setattr(listing, "FUTURE_REVISION_WAIT_S", 0.05)
    async with full_cluster(tmp_path / "kubeconfig", num_nodes=4) as cluster:
        yield cluster


class Follower:
    """An engine that follows a cluster, as those of the console do."""

    def __init__(self, watch: ClusterWatch) -> None:
        self.engine: Engine = default_engine()
        self._watch = watch

    async def agrees_on(self, nodes: set[str], pods: set[str]) -> None:
        """Return once the engine has these nodes and these pods with a node."""

        def agrees() -> bool:
            self.engine.handle(self._watch.inbox.drain(1000), 0.0)
            return set(self.engine.node_names()) == nodes and self.placed() == pods

        await wait_until(lambda: self._watch.has_synced and agrees())

    def placed(self) -> set[str]:
        """Names of the pods with a node."""
        return {pod.name for pod in self.engine.pods() if pod.node_name}

    def state(self) -> dict[str, Any]:
        """What the engine knows of nodes, and of the pods on them."""
        nodes: dict[str, Any] = self.engine.dump()["nodes"]
        versions = {pod.uid: pod.resource_version for pod in self.engine.pods()}
        return {"nodes": nodes, "versions": versions}


@asynccontextmanager
async def following(kubeconfig: Path) -> AsyncIterator[Follower]:
    """A follower with a watch of its own."""
    async with watch_cluster(str(kubeconfig), None, lambda _text: None, Clock()) as watch:
        yield Follower(watch)


def bound(full: FullCluster, num_pods: int) -> list[str]:
    """Create pods, and bind them to the nodes in turn."""
    names = full.fill(num_pods)
    nodes = [node.name for node in full.cluster.store.collection(NODES.stored_in)]
    for number, name in enumerate(names):
        full.bind_elsewhere(name, nodes[number % len(nodes)])
    return names


@pytest.mark.parametrize("bump", [0, 1_000_000], ids=["versions go back", "versions jump"])
async def test_a_follower_has_after_a_restore_what_a_new_one_has(
    full: FullCluster, bump: int
) -> None:
    before = bound(full, 6)
    backup = full.cluster.server.back_up()
    async with following(full.kubeconfig) as follower:
        names = {f"n{number}" for number in range(4)}
        await follower.agrees_on(names, set(before))
        full.add_node(4)
        full.delete_node(0)
        full.delete(before[1])
        await follower.agrees_on(names - {"n0"} | {"n4"}, placed(full))
        await full.cluster.server.restore(backup, bump=bump)
        await follower.agrees_on(names, set(before))
        async with following(full.kubeconfig) as other:
            await other.agrees_on(names, set(before))
            assert follower.state() == other.state()


async def test_a_follower_of_a_cluster_that_came_back_empty_has_nothing(full: FullCluster) -> None:
    empty = full.cluster.server.back_up()
    for collection in (NODES.stored_in, PODS.stored_in):
        empty.objects[collection].clear()  # type: ignore[attr-defined]
    before = bound(full, 3)
    async with following(full.kubeconfig) as follower:
        await follower.agrees_on({f"n{number}" for number in range(4)}, set(before))
        await full.cluster.server.restore(empty)
        await follower.agrees_on(set(), set())


@pytest.mark.parametrize(
    ("is_replicated", "bump"),
    # Without a Lease, a jump of the versions looks like a lost history.
    [(True, 0), (True, 1_000_000), (False, 0)],
    ids=["with a lease", "with a lease, versions jump", "alone"],
)
async def test_a_scheduler_ends_after_a_restore_and_the_next_one_loses_no_pod(
    full: FullCluster, bump: int, is_replicated: bool
) -> None:
    election = LeaderElectionOptions(
        identity="me", lease_duration_s=300.0, renew_deadline_s=240.0, retry_period_s=0.2
    )
    options: dict[str, Any] = {"leader_election": election} if is_replicated else {}
    first = full.fill(4)
    async with running_scheduler(
        full.kubeconfig, ends_with=1, timeouts=SHORT, **options
    ) as scheduler:
        await full.drained(1.0)
        await wait_until(lambda: scheduler.is_idle)
        backup = full.cluster.server.back_up()
        second = full.fill(4)
        await full.drained(1.0)
        full.delete(first[0])
        leases = full.cluster.store.collection(LEASES.stored_in)
        # The Lease is renewed every few seconds: a backup is older than its last version.
        await wait_until(
            lambda: (
                scheduler.is_idle and (not is_replicated or leases.last_revision > backup.revision)
            )
        )
        await full.cluster.server.restore(backup, bump=bump)
        await scheduler.ended()
    third = full.fill(4)
    async with running_scheduler(full.kubeconfig, timeouts=SHORT, **options) as scheduler:
        await wait_until(lambda: placed(full) == {*first, *third})
        await wait_until(lambda: scheduler.is_idle)
        assert {pod.name for pod in scheduler.engine.pods()} == {*first, *third}
    assert not set(second) & placed(full)
    assert full.auditor.violations == []


def placed(full: FullCluster) -> set[str]:
    """Names of the pods that have a node in the store."""
    pods = full.cluster.store.collection(PODS.stored_in)
    return {pod.name for pod in pods if pod.spec.get("nodeName")}
