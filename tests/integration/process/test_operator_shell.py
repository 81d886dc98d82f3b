"""The shell with an API server, and an engine that assigns pods to nodes in turn."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from simcluster import SimulatedCluster
from simcluster.faults.faults import FaultRule
from simcluster.kinds.resources import PODS as CLUSTER_PODS
from simcluster.store.deletion import DeleteOptions
from simcluster.tests.support.api_client import NODES, PODS, ApiClient
from simcluster.tests.support.api_servers import ApiServerUnderTest
from simcluster.tests.support.timeouts import WAIT_TIMEOUT_S, wait_until
from stowage.api.events import PendingPodGone, PendingPodSeen
from stowage.operator.app import run
from stowage.operator.client.connection import connect
from stowage.operator.environment import Environment
from stowage.operator.kopf.pending_pod_watch import PendingPodWatch
from stowage.operator.lease import LeaderElectionOptions
from stowage.operator.process import Process
from stowage.operator.run_options import RunOptions
from tests.support.round_robin_engine import RoundRobinEngine

EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/stowage"


def _node(name: str) -> dict[str, Any]:
    capacity = {"cpu": "8", "memory": "16Gi", "pods": "110"}
    return {"metadata": {"name": name}, "status": {"capacity": capacity}}


def _pod(name: str, scheduler_name: str = "stowage") -> dict[str, Any]:
    container = {"name": "c", "image": "registry.k8s.io/pause:3.10"}
    spec = {"schedulerName": scheduler_name, "containers": [container]}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": spec}


class _Shell:
    """A running shell, its engine and its API server."""

    def __init__(self, api: ApiClient, engine: RoundRobinEngine) -> None:
        self.api = api
        self.engine = engine

    async def create(self, *names: str) -> None:
        for name in names:
            await self.api.post(PODS, _pod(name))

    async def node_of(self, name: str) -> str:
        pod = (await self.api.get(f"{PODS}/{name}")).body
        return str(pod["spec"].get("nodeName", ""))

    async def all_bound(self, *names: str) -> None:
        async def condition() -> bool:
            return all([await self.node_of(name) for name in names])

        await wait_until(condition)


@asynccontextmanager
async def _running(
    server: ApiServerUnderTest, api: ApiClient, **changes: Any
) -> AsyncIterator[_Shell]:
    engine, stop = RoundRobinEngine(), asyncio.Event()
    options = RunOptions(
        engine_factory=lambda _parts: engine,
        scheduler_names=("stowage",),
        kubeconfig=str(server.kubeconfig),
        serving=None,
        stop=stop,
        owns_process=False,
    )
    process = asyncio.create_task(run(replace(options, **changes)))
    try:
        yield _Shell(api, engine)
    finally:
        stop.set()
        assert await asyncio.wait_for(process, WAIT_TIMEOUT_S) == 0


@pytest.fixture
async def shell(api_server: ApiServerUnderTest, api: ApiClient) -> AsyncIterator[_Shell]:
    for name in ("n1", "n2"):
        await api.post(NODES, _node(name))
    async with _running(api_server, api) as shell:
        yield shell


async def test_pods_are_bound_and_get_events(shell: _Shell) -> None:
    await shell.create("a", "b", "c")
    await shell.all_bound("a", "b", "c")
    assert {await shell.node_of(name) for name in ("a", "b", "c")} == {"n1", "n2"}

    async def events_written() -> bool:
        items = (await shell.api.get(EVENTS)).body["items"]
        regarding = {item["regarding"]["name"] for item in items if item["reason"] == "Scheduled"}
        return {"a", "b", "c"} <= regarding

    await wait_until(events_written)


async def test_pods_of_other_schedulers_are_not_bound(shell: _Shell) -> None:
    await shell.api.post(PODS, _pod("foreign", scheduler_name="default-scheduler"))
    await shell.create("ours")
    await shell.all_bound("ours")
    assert await shell.node_of("foreign") == ""


async def test_an_unschedulable_pod_gets_a_pod_scheduled_condition(
    api_server: ApiServerUnderTest, api: ApiClient
) -> None:
    async with _running(api_server, api) as shell:
        await shell.create("unschedulable")

        async def status_written() -> bool:
            pod = (await api.get(f"{PODS}/unschedulable")).body
            conditions = pod["status"].get("conditions", [])
            return any(
                (each["type"], each["status"], each.get("reason"))
                == ("PodScheduled", "False", "Unschedulable")
                for each in conditions
            )

        await wait_until(status_written)


async def test_a_standby_takes_over_the_lease_that_a_leader_released(
    api_server: ApiServerUnderTest, api: ApiClient
) -> None:
    await api.post(NODES, _node("n1"))
    first = LeaderElectionOptions(identity="first")
    second = LeaderElectionOptions(identity="second", retry_period_s=0.1)
    async with _running(api_server, api, leader_election=first) as leader:
        await leader.create("a")
        await leader.all_bound("a")
        standby = _running(api_server, api, leader_election=second)
        shell = await standby.__aenter__()
    try:
        await shell.create("b")
        await shell.all_bound("b")
    finally:
        await standby.__aexit__(None, None, None)


async def test_a_leader_keeps_its_lease_while_a_binding_is_on_its_way(
    simulated_cluster: SimulatedCluster, api_server: ApiServerUnderTest, api: ApiClient
) -> None:
    await api.post(NODES, _node("n1"))
    simulated_cluster.faults.add(FaultRule("POST", "/binding$", hang_s=2 * WAIT_TIMEOUT_S))

    async def binding_sent() -> bool:
        return simulated_cluster.faults.hits == 1

    me = LeaderElectionOptions(identity="me")
    async with _running(api_server, api, leader_election=me, shutdown_grace_s=0.05) as leader:
        await leader.create("a")
        await wait_until(binding_sent)
    lease = (await api.get(LEASE)).body
    assert lease["spec"]["holderIdentity"] == "me"


async def test_every_pod_is_bound_once_although_bindings_fail(
    simulated_cluster: SimulatedCluster, shell: _Shell
) -> None:
    for rule in (
        FaultRule("POST", "/binding$", times=3, is_applied=True, is_dropped=True),
        FaultRule("POST", "/binding$", times=3, status=503),
        FaultRule("POST", "/binding$", times=2, is_dropped=True),
    ):
        simulated_cluster.faults.add(rule)
    names = [f"p{number}" for number in range(20)]
    await shell.create(*names)
    await shell.all_bound(*names)

    async def settled() -> bool:
        return not shell.engine.being_bound and len(shell.engine.assigned) == len(names)

    await wait_until(settled)
    for name in names:
        uid = (await shell.api.get(f"{PODS}/{name}")).body["metadata"]["uid"]
        assert shell.engine.assigned[uid] == await shell.node_of(name)


async def test_pods_are_bound_after_watches_broke_and_the_history_was_lost(
    simulated_cluster: SimulatedCluster, shell: _Shell
) -> None:
    await shell.create("before")
    await shell.all_bound("before")
    simulated_cluster.server.forget_history()
    simulated_cluster.server.watchers.close_all()
    await shell.create("after")
    await shell.all_bound("after")


async def test_pods_are_bound_after_the_server_was_unreachable(
    simulated_cluster: SimulatedCluster, shell: _Shell
) -> None:
    await shell.create("before")
    await shell.all_bound("before")
    await simulated_cluster.server.be_away(0.5)
    await shell.create("after")
    await shell.all_bound("after")


async def test_a_pending_pod_deleted_while_the_watch_is_broken_leaves_the_queue(
    simulated_cluster: SimulatedCluster, api_server: ApiServerUnderTest, api: ApiClient
) -> None:
    async with _running(api_server, api) as shell:
        await shell.create("short-lived", "pending")
        uid = (await api.get(f"{PODS}/short-lived")).body["metadata"]["uid"]
        await wait_until(lambda: _has_seen(shell, PendingPodSeen, uid))
        await simulated_cluster.server.stop()
        simulated_cluster.registry.delete(CLUSTER_PODS, "default", "short-lived", DeleteOptions())
        simulated_cluster.server.forget_history()
        await simulated_cluster.server.start()
        await wait_until(lambda: _has_seen(shell, PendingPodGone, uid))


async def _has_seen(shell: _Shell, kind: type[PendingPodSeen | PendingPodGone], uid: str) -> bool:
    for event in shell.engine.seen:
        if isinstance(event, PendingPodSeen):
            found = event.pod.metadata.uid
        elif isinstance(event, PendingPodGone):
            found = event.uid
        else:
            continue
        if isinstance(event, kind) and found == uid:
            return True
    return False


async def test_kopf_is_restarted_when_it_exits(
    simulated_cluster: SimulatedCluster, api_server: ApiServerUnderTest, api: ApiClient
) -> None:
    await api.post(NODES, _node("n1"))
    simulated_cluster.faults.add(
        FaultRule("GET", "/api/v1/pods.*schedulerName", times=1, status=404)
    )
    async with _running(api_server, api) as shell:
        await shell.create("a")
        await shell.all_bound("a")


async def test_a_leader_that_loses_its_lease_exits_with_an_error(
    api_server: ApiServerUnderTest, api: ApiClient
) -> None:
    election = LeaderElectionOptions(identity="me", retry_period_s=0.1)
    options = RunOptions(
        engine_factory=lambda _parts: RoundRobinEngine(),
        scheduler_names=("stowage",),
        kubeconfig=str(api_server.kubeconfig),
        serving=None,
        leader_election=election,
        owns_process=False,
    )
    process = asyncio.create_task(run(options))

    async def is_leader() -> bool:
        answer = await api.get(LEASE)
        return answer.status == 200 and answer.body["spec"]["holderIdentity"] == "me"

    async def lease_taken() -> bool:
        lease = (await api.get(LEASE)).body
        lease["spec"] |= {"holderIdentity": "another", "leaseDurationSeconds": 60}
        return (await api.put(LEASE, lease)).status == 200

    await wait_until(is_leader)
    with capture_logs() as lines:
        await wait_until(lease_taken)
        assert await asyncio.wait_for(process, WAIT_TIMEOUT_S) == 1
    ended = {"event": "ended unexpectedly", "task": "leader election", "exc_info": None}
    assert {**ended, "log_level": "error"} in lines


async def test_a_new_leader_reconnects_its_pod_watch_unless_that_had_data_within_five_seconds(
    api_server: ApiServerUnderTest,
) -> None:
    silent_since: list[float | None] = []

    class NotedWatch(PendingPodWatch):
        def reconnect(self, unresponsive_since: float | None) -> None:
            silent_since.append(unresponsive_since)
            super().reconnect(unresponsive_since)

    options = RunOptions(
        engine_factory=lambda _parts: RoundRobinEngine(),
        scheduler_names=("stowage",),
        kubeconfig=str(api_server.kubeconfig),
        serving=None,
        stop=asyncio.Event(),
        leader_election=LeaderElectionOptions(identity="me", retry_period_s=0.1),
        owns_process=False,
    )
    async with AsyncExitStack() as cleanup:
        connection = await connect(options.kubeconfig)
        cleanup.push_async_callback(connection.close)
        process = Process(options, connection, Environment(watch_pending_pods=NotedWatch))
        before = time.monotonic()
        running = asyncio.create_task(process.run(cleanup))

        async def is_reconnected() -> bool:
            return bool(silent_since)

        await wait_until(is_reconnected)
        assert options.stop is not None
        options.stop.set()
        assert await asyncio.wait_for(running, WAIT_TIMEOUT_S) == 0
    (since,) = silent_since
    assert since is not None
    assert before - 5.0 <= since <= time.monotonic() - 5.0


async def test_a_binding_in_flight_completes_before_the_shell_stops(
    simulated_cluster: SimulatedCluster, api_server: ApiServerUnderTest, api: ApiClient
) -> None:
    await api.post(NODES, _node("n1"))
    simulated_cluster.faults.add(FaultRule("POST", "/binding$", delay_s=0.3))
    async with _running(api_server, api) as shell:
        await shell.create("a")

        async def is_in_flight() -> bool:
            # It may have been bound between two polls.
            return bool(shell.engine.being_bound or shell.engine.assigned)

        await wait_until(is_in_flight)
    assert await shell.node_of("a") == "n1"
