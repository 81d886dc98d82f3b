"""The nominated node of a pod, and whom it keeps the room from.

No kubelet runs, so a victim with a grace period stays until the test deletes it without one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from simcluster.tests.support.api_client import NODES, ApiClient
from simcluster.tests.support.api_servers import ApiServerUnderTest
from stowage.api.config.feature_gates import parse_feature_gates
from stowage.api.status import SKIP, SUCCESS, Status, unschedulable
from stowage.framework import CycleState, PluginTraits, plugin_factory
from stowage.state import PodInfo
from tests.integration.scheduling.preemption_cluster import HOSTNAME, PreemptionCluster
from tests.support.integration.auditor import node_of, scheduled_condition
from tests.support.integration.running_scheduler import CONFIGURATION, running_scheduler

TAINT = {"key": "reserved", "value": "yes", "effect": "NoSchedule"}


class BeforeBinding:
    """PreBind rejects the pod `preemptor`, and holds the pod `held` until it is released.

    Attributes:
        released: Set when `held` may be bound.
        may_end: Set when a PreBind that was cancelled may end.
    """

    name = "BeforeBinding"
    traits = PluginTraits()

    def __init__(self) -> None:
        self.released, self.may_end = asyncio.Event(), asyncio.Event()
        self.may_end.set()

    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        return SUCCESS if pod.name in ("preemptor", "held") else SKIP

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        if pod.name == "preemptor":
            return unschedulable("the disk is not formatted")
        try:
            await self.released.wait()
        finally:
            await self.may_end.wait()
        return SUCCESS


@asynccontextmanager
async def scheduling(
    api_server: ApiServerUnderTest, plugin: BeforeBinding, **options: Any
) -> AsyncIterator[None]:
    """A scheduler with this plugin."""
    enabled = {"multiPoint": {"enabled": [{"name": plugin.name}]}}
    profile = {"schedulerName": "stowage", "plugins": enabled}
    configuration = {**CONFIGURATION, "profiles": [profile]}
    plugins = [plugin_factory(lambda: plugin, name=plugin.name)]
    server = api_server.kubeconfig
    async with running_scheduler(server, configuration, plugins, **options) as scheduler:
        yield
        scheduler.engine.validate()


@pytest.fixture
async def one_node(api: ApiClient) -> PreemptionCluster:
    """One node of 4 CPUs without pods."""
    built = PreemptionCluster(api)
    await built.prepare()
    await api.delete(f"{NODES}/n2")
    return built


@pytest.fixture
async def cluster(
    one_node: PreemptionCluster, api_server: ApiServerUnderTest
) -> AsyncIterator[PreemptionCluster]:
    """One node, and a scheduler."""
    async with scheduling(api_server, BeforeBinding()):
        yield one_node


async def nominate(cluster: PreemptionCluster, victim_cpu: str, cpu: str, name: str) -> None:
    """Let a pod evict one that terminates slowly."""
    await cluster.place("victim", "n1", victim_cpu, terminationGracePeriodSeconds=600)
    await cluster.preemptor(name, cpu, "middle")
    assert await cluster.nominated(name) == "n1"
    await cluster.terminating("victim")


async def _a_more_important_pod_evicts_another_pod(cluster: PreemptionCluster) -> None:
    await cluster.place("older", "n1", "1", terminationGracePeriodSeconds=600)
    await nominate(cluster, "1", "3", "medium")
    await cluster.preemptor("important", "4")
    await cluster.terminating("older")
    assert await cluster.nominated("important") == "n1"


async def _a_more_important_pod_fits_beside_the_victim(cluster: PreemptionCluster) -> None:
    await nominate(cluster, "2", "4", "medium")
    await cluster.preemptor("important", "2")
    assert await cluster.node_of("important") == "n1"
    await cluster.delete("victim")


async def _the_only_node_is_deleted(cluster: PreemptionCluster) -> None:
    await nominate(cluster, "4", "4", "medium")
    await cluster.api.delete(f"{NODES}/n1")
    await cluster.delete("victim")
    await cluster.refused("medium", "no nodes available to schedule pods")


async def _no_other_node_helps_once_the_node_is_deleted(cluster: PreemptionCluster) -> None:
    await cluster.add_node("tainted", taints=[TAINT])
    await nominate(cluster, "4", "4", "medium")
    await cluster.api.delete(f"{NODES}/n1")
    await cluster.delete("victim")
    await cluster.refused("medium", "1 Preemption is not helpful for scheduling.")


async def _pre_bind_rejects_the_preemptor(cluster: PreemptionCluster) -> None:
    await nominate(cluster, "4", "4", "preemptor")
    await cluster.delete("victim")
    await cluster.refused("preemptor", "the disk is not formatted")


ENDS: tuple[Callable[[PreemptionCluster], Awaitable[None]], ...] = (
    _a_more_important_pod_evicts_another_pod,
    _a_more_important_pod_fits_beside_the_victim,
    _the_only_node_is_deleted,
    _no_other_node_helps_once_the_node_is_deleted,
    _pre_bind_rejects_the_preemptor,
)


@pytest.mark.parametrize("end", ENDS, ids=lambda end: end.__name__.strip("_"))
async def test_a_preemptor_is_no_longer_nominated_once(
    end: Callable[[PreemptionCluster], Awaitable[None]], cluster: PreemptionCluster
) -> None:
    await end(cluster)
    name = "preemptor" if end is _pre_bind_rejects_the_preemptor else "medium"
    pod = await cluster.seen(name, lambda pod: not pod["status"].get("nominatedNodeName"))
    assert node_of(pod) == ""


async def test_pods_that_wait_for_room_do_not_get_what_was_made_for_a_preemptor(
    cluster: PreemptionCluster,
) -> None:
    for number in range(4):
        await cluster.place(f"running{number}", "n1", "1", "middle")
    for number in range(4):
        await cluster.create(f"waiting{number}", "1", priorityClassName="middle")
        await cluster.refused(f"waiting{number}")
    await cluster.preemptor("p", "3")
    assert await cluster.node_of("p") == "n1"
    for number in range(4):
        assert scheduled_condition(await cluster.pod(f"waiting{number}"))[0] == "False"


async def test_pods_created_during_a_preemption_do_not_get_its_room(
    cluster: PreemptionCluster,
) -> None:
    """The room is taken before the API server has deleted the victims and nominated the pod."""
    for number in range(2):
        await cluster.place(f"running{number}", "n1", "100m", "middle")
    await cluster.preemptor("p", "3900m")
    for number in range(10):
        await cluster.create(f"later{number}", "200m", priorityClassName="middle")
    assert await cluster.node_of("p") == "n1"
    for number in range(10):
        await cluster.refused(f"later{number}", "Insufficient cpu")


@pytest.mark.parametrize("gate", [True, False])
async def test_a_pod_is_nominated_while_pre_bind_works_unless_the_gate_is_off(
    gate: bool, one_node: PreemptionCluster, api_server: ApiServerUnderTest
) -> None:
    plugin = BeforeBinding()
    gates = parse_feature_gates([f"NominatedNodeNameForExpectation={gate}"])
    async with scheduling(api_server, plugin, feature_gates=gates):
        await one_node.create("held", "4")
        await one_node.create("later", "4")
        await one_node.refused("later")
        if gate:
            assert await one_node.nominated("held") == "n1"
        else:
            assert "nominatedNodeName" not in (await one_node.pod("held"))["status"]
        plugin.released.set()
        assert await one_node.node_of("held") == "n1"
    assert "nominatedNodeName" not in (await one_node.pod("held"))["status"]


@pytest.mark.parametrize("ends_slowly", [False, True])
async def test_a_victim_that_pre_bind_holds_is_not_deleted_but_goes_to_another_node(
    ends_slowly: bool, one_node: PreemptionCluster, api_server: ApiServerUnderTest
) -> None:
    plugin = BeforeBinding()
    if ends_slowly:
        plugin.may_end.clear()
    async with scheduling(api_server, plugin):
        await one_node.create("held", "4", priorityClassName="low")
        assert await one_node.nominated("held") == "n1"
        await one_node.add_node("n3")
        await one_node.preemptor("p", "4", nodeSelector={HOSTNAME: "n1"})
        assert await one_node.node_of("p") == "n1"
        await one_node.seen("held", lambda pod: pod["status"].get("nominatedNodeName") == "n3")
        plugin.may_end.set()
        assert node_of(await one_node.pod("held")) == ""
        plugin.released.set()
        assert await one_node.node_of("held") == "n3"
