"""The history of a cluster contains each change and its author, even if an answer was lost."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp

from simcluster import ClusterOptions, FaultRule, SimulatedCluster, User, make_node
from simcluster.auth.users import MASTERS
from simcluster.tests.support.api_client import LEASES, PODS, ApiClient, pod
from simcluster.tests.support.timeouts import WAIT_TIMEOUT_S
from stowage_benchmarks.chaos.history import (
    OWN_LEASE,
    HistoryReader,
    HistoryWriter,
    LeaseChange,
    Line,
    NodeChange,
    PodChange,
    WriteArrived,
)
from stowage_benchmarks.chaos.one_way import Way

REPLICA = "replica-a"
EVENTS = "/apis/events.k8s.io/v1/namespaces/kube-system/events"
LEASE = {"metadata": {"name": "stowage"}, "spec": {"holderIdentity": "a1"}}


async def _history(file: Path, rule: FaultRule | None) -> list[Line]:
    """The history of a replica that takes the lease and binds a pod of the administrator."""
    options = ClusterOptions(
        token="admin",
        users={"token-of-a": User(REPLICA, (MASTERS,))},
        rbac=True,
        with_kubelet=False,
        with_controllers=False,
    )
    cluster = SimulatedCluster([make_node("n1", {"cpu": "4", "pods": "10"})], options)
    writer = HistoryWriter(cluster, file)
    async with cluster:
        writing = asyncio.create_task(writer.run())
        async with (
            ApiClient(cluster.url, "admin") as admin,
            ApiClient(cluster.url, "token-of-a") as replica,
        ):
            await replica.post(LEASES, LEASE)
            await admin.post(PODS, pod("p"))
            if rule is not None:
                cluster.faults.add(rule)
            with suppress(aiohttp.ClientError):
                target = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n1"}}
                await replica.post(f"{PODS}/p/binding", target)
            await admin.delete(f"{PODS}/p")
            await admin.post(PODS, pod("last"))
            lines = await _lines_until(file, "last")
        writing.cancel()
    return lines


async def _lines_until(file: Path, pod_name: str) -> list[Line]:
    """The lines of the history before a pod with this name."""
    lines: list[Line] = []
    reader = HistoryReader(file)
    async with asyncio.timeout(WAIT_TIMEOUT_S):
        while not any(isinstance(line, PodChange) and line.name == pod_name for line in lines):
            lines += reader.new_lines()
            await asyncio.sleep(0.01)
    reader.close()
    return [line for line in lines if not isinstance(line, PodChange) or line.name != pod_name]


async def test_each_change_has_its_author(tmp_path: Path) -> None:
    node, lease, created, arrived, bound, *gone = await _history(tmp_path / "history", None)
    assert isinstance(node, NodeChange)
    assert node.name == "n1"
    assert isinstance(lease, LeaseChange)
    assert (lease.by, lease.holder) == (REPLICA, "a1")
    assert isinstance(created, PodChange)
    assert (created.change, created.by, created.node) == ("ADDED", "", "")
    assert isinstance(arrived, WriteArrived)
    assert (arrived.by, arrived.verb, arrived.resource, arrived.name) == (
        REPLICA,
        "create",
        "pods/binding",
        "p",
    )
    assert isinstance(bound, PodChange)
    assert (bound.change, bound.by, bound.node) == ("MODIFIED", REPLICA, "n1")
    assert gone
    assert all(isinstance(line, PodChange) and line.by == "" for line in gone)


async def test_a_write_has_the_times_when_it_passed_the_network_and_when_it_was_handled(
    tmp_path: Path,
) -> None:
    options = ClusterOptions(
        token="admin", users={"token-of-a": User(REPLICA, (MASTERS,))}, rbac=True
    )
    cluster = SimulatedCluster([], options)
    writer = HistoryWriter(cluster, tmp_path / "history")
    async with cluster:
        url = urlsplit(cluster.url)
        way = Way(url.hostname or "", url.port or 0)
        await way.open()
        writing = asyncio.create_task(writer.run())
        async with (
            ApiClient(cluster.url, "admin") as admin,
            ApiClient(f"http://127.0.0.1:{way.port}", "token-of-a") as replica,
            ApiClient(cluster.url, "token-of-a") as without_way,
        ):
            begin = time.monotonic()
            await replica.delete(f"{PODS}/p")
            await without_way.delete(f"{PODS}/p")
            await admin.post(PODS, pod("last"))
            lines = await _lines_until(tmp_path / "history", "last")
        writing.cancel()
        await way.close()
    passed, other = [line for line in lines if isinstance(line, WriteArrived)]
    assert begin <= passed.passed_at <= passed.at
    assert passed.waited_s == passed.at - passed.passed_at
    assert (other.passed_at, other.waited_s) == (0.0, 0.0)


async def test_only_events_on_the_lease_of_the_replicas_are_left_out(tmp_path: Path) -> None:
    options = ClusterOptions(
        token="admin", users={"token-of-a": User(REPLICA, (MASTERS,))}, rbac=True
    )
    cluster = SimulatedCluster([], options)
    writer = HistoryWriter(cluster, tmp_path / "history")
    about = {
        "on-lease": OWN_LEASE,
        "on-other-lease": {**OWN_LEASE, "name": "other"},
        "on-pod": {"apiVersion": "v1", "kind": "Pod", "namespace": "kube-system", "name": "p"},
    }
    async with cluster:
        writing = asyncio.create_task(writer.run())
        async with (
            ApiClient(cluster.url, "admin") as admin,
            ApiClient(cluster.url, "token-of-a") as replica,
        ):
            for name, regarding in about.items():
                created = await replica.post(EVENTS, _event(name, regarding))
                assert created.status == 201, created
            await admin.post(EVENTS, _event("by-admin", about["on-pod"]))
            await admin.post(PODS, pod("last"))
            lines = await _lines_until(tmp_path / "history", "last")
        writing.cancel()
    written = [line for line in lines if isinstance(line, WriteArrived)]
    assert [(line.by, line.verb, line.resource, line.name) for line in written] == [
        (REPLICA, "create", "events", "on-other-lease"),
        (REPLICA, "create", "events", "on-pod"),
    ]


def _event(name: str, regarding: dict[str, str]) -> dict[str, object]:
    return {
        "metadata": {"name": name},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "stowage",
        "reportingInstance": "stowage-a",
        "action": "LeaderElection",
        "reason": "LeaderElection",
        "regarding": regarding,
        "type": "Normal",
    }


async def test_a_binding_whose_answer_was_lost_is_in_the_history(tmp_path: Path) -> None:
    lost = FaultRule("POST", "/binding", is_applied=True, is_dropped=True)
    lines = await _history(tmp_path / "history", lost)
    assert any(isinstance(line, PodChange) and line.node == "n1" for line in lines)


async def test_a_refused_binding_is_recorded_as_arrived_without_a_change(
    tmp_path: Path,
) -> None:
    lines = await _history(tmp_path / "history", FaultRule("POST", "/binding", status=503))
    assert sum(isinstance(line, WriteArrived) for line in lines) == 1
    assert not any(isinstance(line, PodChange) and line.node for line in lines)
