"""Preemption, on the simulated cluster or on a real API server.

No kubelet runs, so a pod that is deleted with a grace period stays until it is deleted without one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from simcluster.tests.support.api_client import PODS, ApiClient
from simcluster.tests.support.api_servers import ApiServerUnderTest
from simcluster.tests.support.timeouts import wait_until
from tests.integration.scheduling.preemption_cluster import HOSTNAME, PreemptionCluster
from tests.support.integration.running_scheduler import RunningScheduler, running_scheduler

BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"


@pytest.fixture
async def cluster(api: ApiClient) -> PreemptionCluster:
    """Two nodes, and the priority classes."""
    built = PreemptionCluster(api)
    await built.prepare()
    return built


@pytest.fixture
async def scheduler(
    api_server: ApiServerUnderTest, cluster: PreemptionCluster
) -> AsyncIterator[RunningScheduler]:
    """A running scheduler."""
    assert isinstance(cluster, PreemptionCluster)
    async with running_scheduler(api_server.kubeconfig) as scheduler:
        yield scheduler
        scheduler.engine.validate()


async def _settled(scheduler: RunningScheduler, cluster: PreemptionCluster) -> None:
    """Wait until the scheduler is idle and its queue is empty."""

    async def is_settled() -> bool:
        return scheduler.is_idle and scheduler.num_waiting == 0

    await wait_until(is_settled)


async def test_the_victims_with_the_lowest_priority_are_preempted(
    scheduler: RunningScheduler, cluster: PreemptionCluster
) -> None:
    await cluster.place("a", "n1", "2", "middle")
    await cluster.place("b", "n1", "2", "middle")
    cheap = await cluster.place("c", "n2", "2", "low")
    await cluster.place("d", "n2", "2", "middle")
    await cluster.preemptor("p", "2")
    assert await cluster.node_of("p") == "n2"
    pod = await cluster.pod("p")
    assert "nominatedNodeName" not in pod["status"]
    event = await cluster.preempted_event(cheap)
    assert (event["type"], event["action"]) == ("Normal", "Preempting")
    assert event["note"] == f"Preempted by pod {pod['metadata']['uid']} on node n2"
    assert event["reportingController"] == "stowage"
    assert event["related"]["uid"] == pod["metadata"]["uid"]
    assert (event["related"]["kind"], event["related"]["name"]) == ("Pod", "p")
    assert [await cluster.is_there(name) for name in "abcd"] == [True, True, False, True]
    await _settled(scheduler, cluster)


async def test_two_preemptors_get_different_nodes(
    scheduler: RunningScheduler, cluster: PreemptionCluster
) -> None:
    await cluster.place("a", "n1", "4")
    await cluster.place("b", "n2", "4")
    await asyncio.gather(cluster.preemptor("p", "3"), cluster.preemptor("q", "3"))
    assert {await cluster.node_of("p"), await cluster.node_of("q")} == {"n1", "n2"}
    await _settled(scheduler, cluster)


async def test_a_critical_pod_preempts_a_pod_of_high_priority(
    scheduler: RunningScheduler, cluster: PreemptionCluster
) -> None:
    await cluster.place("a", "n1", "4", "high")
    await cluster.preemptor("p", "4", "system-node-critical", nodeSelector={HOSTNAME: "n1"})
    assert await cluster.node_of("p") == "n1"
    assert not await cluster.is_there("a")
    await _settled(scheduler, cluster)


async def test_pods_that_must_be_spread_preempt_on_the_node_where_they_are_fewer(
    scheduler: RunningScheduler, cluster: PreemptionCluster
) -> None:
    await cluster.place("a", "n1", "4")
    labels = {"app": "web"}
    spread = {
        "maxSkew": 1,
        "topologyKey": HOSTNAME,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": labels},
    }
    for name in "pqrs":
        await cluster.preemptor(name, "1", labels=labels, topologySpreadConstraints=[spread])
    nodes = [await cluster.node_of(name) for name in "pqrs"]
    assert sorted(nodes) == ["n1", "n1", "n2", "n2"]
    await _settled(scheduler, cluster)


async def test_a_preemptor_waits_for_the_grace_period_of_its_victim(
    scheduler: RunningScheduler, cluster: PreemptionCluster
) -> None:
    await cluster.place("a", "n1", "4", terminationGracePeriodSeconds=600)
    await cluster.place("b", "n2", "4", "middle", terminationGracePeriodSeconds=600)
    await cluster.preemptor("p", "3")
    victim = await cluster.terminating("a")
    (condition,) = (
        each for each in victim["status"]["conditions"] if each["type"] == "DisruptionTarget"
    )
    assert (condition["status"], condition["reason"]) == ("True", "PreemptionByScheduler")
    assert condition["message"] == "stowage: preempting to accommodate a higher priority pod"
    assert victim["metadata"]["deletionGracePeriodSeconds"] == 600
    assert await cluster.nominated("p") == "n1"
    # Another pod is created; the preemptor still waits for its victim.
    await cluster.create("small", "1", nodeSelector={"no": "such"})
    await cluster.refused("small")
    assert await cluster.is_there("b")
    await cluster.delete("a")
    assert await cluster.node_of("p") == "n1"
    assert await cluster.is_there("b")


async def test_a_deleted_preemptor_releases_its_nominated_node(
    scheduler: RunningScheduler, cluster: PreemptionCluster
) -> None:
    await cluster.place("a", "n1", "4", terminationGracePeriodSeconds=600)
    await cluster.place("b", "n2", "4", "high")
    await cluster.preemptor("p", "3")
    await cluster.terminating("a")
    await cluster.nominated("p")
    await cluster.delete("p")
    await cluster.delete("a")
    await cluster.create("q", "4")
    assert await cluster.node_of("q") == "n1"
    await _settled(scheduler, cluster)


@pytest.fixture
async def budget(cluster: PreemptionCluster) -> None:
    """A PodDisruptionBudget that keeps one database pod available."""
    spec = {"selector": {"matchLabels": {"app": "db"}}, "minAvailable": 1}
    await cluster.api.create(BUDGETS, {"metadata": {"name": "db"}, "spec": spec})


async def test_pods_protected_by_a_disruption_budget_are_preempted_last(
    budget: None, scheduler: RunningScheduler, cluster: PreemptionCluster
) -> None:
    await cluster.place("db", "n1", "4", "low", labels={"app": "db"})
    await cluster.place("web", "n2", "4", "middle", labels={"app": "web"})
    await cluster.preemptor("p", "3")
    assert await cluster.node_of("p") == "n2"
    assert await cluster.is_there("db")
    # No node is left where preemption does not violate the budget.
    await cluster.preemptor("q", "3")
    assert await cluster.node_of("q") == "n1"
    await cluster.gone("db")
    await _settled(scheduler, cluster)


async def test_a_pod_with_preemption_policy_never_waits(
    scheduler: RunningScheduler, cluster: PreemptionCluster
) -> None:
    await cluster.place("a", "n1", "4")
    await cluster.place("b", "n2", "4")
    await cluster.preemptor("p", "3", "never-preempting")
    message = await cluster.refused("p")
    assert message.endswith("preemption: not eligible due to preemptionPolicy=Never.")
    assert message in await cluster.notes("p", "FailedScheduling")
    assert await cluster.is_there("a")
    assert await cluster.is_there("b")
    await cluster.delete("a")
    assert await cluster.node_of("p") == "n1"
    await _settled(scheduler, cluster)


async def test_the_message_says_that_preemption_found_no_victims(
    scheduler: RunningScheduler, cluster: PreemptionCluster
) -> None:
    del scheduler
    await cluster.place("a", "n1", "4", "high")
    await cluster.place("b", "n2", "2", "low")
    await cluster.preemptor("p", "3", nodeSelector={HOSTNAME: "n1"})
    assert await cluster.refused("p") == (
        "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match Pod's node "
        "affinity/selector. no new claims to deallocate, preemption: 0/2 nodes are available: "
        "1 No preemption victims found for incoming pod, "
        "1 Preemption is not helpful for scheduling."
    )


#: The last step of the preemption that the first scheduler completed.
STEPS = ("nothing", "nominated", "condition", "terminating", "one deleted", "both deleted")


@pytest.mark.parametrize("step", STEPS)
async def test_a_new_scheduler_completes_an_interrupted_preemption(
    step: str, api_server: ApiServerUnderTest, cluster: PreemptionCluster
) -> None:
    async with running_scheduler(api_server.kubeconfig):
        await cluster.place("a", "n1", "2", terminationGracePeriodSeconds=600)
        await cluster.place("b", "n1", "2", terminationGracePeriodSeconds=600)
        await cluster.place("bystander", "n2", "4", "middle")
    await cluster.preemptor("p", "4")
    await _preempt_up_to(STEPS.index(step), cluster)
    async with running_scheduler(api_server.kubeconfig) as scheduler:
        for name in ("a", "b"):
            if (await cluster.api.get(f"{PODS}/{name}")).status == 200:
                await cluster.terminating(name)
                await cluster.delete(name)
        assert await cluster.node_of("p") == "n1"
        await _settled(scheduler, cluster)
        scheduler.engine.validate()
    assert await cluster.is_there("bystander")
    assert "nominatedNodeName" not in (await cluster.pod("p"))["status"]


async def _preempt_up_to(step: int, cluster: PreemptionCluster) -> None:
    """Do the steps of a preemption up to this one, as the first scheduler would have."""
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    if step >= 1:
        await cluster.patch_status("p", {"nominatedNodeName": "n1"})
    if step >= 2:
        await cluster.patch_status("a", {"conditions": [condition]})
    if step >= 3:
        await cluster.api.delete(f"{PODS}/a")
    if step >= 4:
        await cluster.delete("a")
    if step >= 5:
        await cluster.delete("b")
