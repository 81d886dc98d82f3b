"""A pod that matters more takes the place of others, on the embedded cluster or a real API server.

Nobody runs pods here: one that is deleted with a grace period stays until it is forced to go.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from simcluster.tests.support.api_client import PODS, STRATEGIC, ApiClient
from simcluster.tests.support.api_servers import ApiServerUnderTest
from simcluster.tests.support.timeouts import WAIT_TIMEOUT_S
from tests.integration.test_scheduling import Cluster
from tests.support.integration.auditor import node_of
from tests.support.integration.running_scheduler import RunningScheduler, running_scheduler

Json = dict[str, Any]

EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
PRIORITY_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
CLASSES = {"low": 10, "middle": 20, "high": 1000, "humble": 1000}
HOSTNAME = "kubernetes.io/hostname"


class Harbour(Cluster):
    """Two nodes of 4 CPUs, and pods that matter more or less."""

    def __init__(self, api: ApiClient) -> None:
        super().__init__(api)
        self.api = api

    async def prepare(self) -> None:
        for name, value in CLASSES.items():
            policy = "Never" if name == "humble" else "PreemptLowerPriority"
            body = {"metadata": {"name": name}, "value": value, "preemptionPolicy": policy}
            await self.api.create(PRIORITY_CLASSES, body)
        for name in ("n1", "n2"):
            await self.add_node(name)

    async def place(self, name: str, node: str, cpu: str, grade: str = "low", **fields: Any) -> str:
        """A pod on a node; its UID. It goes without grace unless told otherwise."""
        spec = {"terminationGracePeriodSeconds": 0, "nodeSelector": {HOSTNAME: node}, **fields}
        await self.create(name, cpu, priorityClassName=grade, **spec)
        return await self.bound_uid(name, node)

    async def bound_uid(self, name: str, node: str) -> str:
        pod = await self.seen(name, lambda pod: bool(node_of(pod)))
        assert node_of(pod) == node
        return str(pod["metadata"]["uid"])

    async def preemptor(self, name: str, cpu: str, grade: str = "high", **fields: Any) -> None:
        await self.create(name, cpu, priorityClassName=grade, **fields)

    async def nominated(self, name: str) -> str:
        """Where room is made for a pod, as soon as that is known."""
        pod = await self.seen(name, lambda pod: bool(pod["status"].get("nominatedNodeName")))
        return str(pod["status"]["nominatedNodeName"])

    async def going(self, name: str) -> Json:
        """A pod, as soon as it is being deleted."""
        return await self.seen(name, lambda pod: "deletionTimestamp" in pod["metadata"])

    async def is_there(self, name: str) -> bool:
        answer = await self.api.get(f"{PODS}/{name}")
        return answer.status == 200 and "deletionTimestamp" not in answer.body["metadata"]

    async def until(self, holds: Callable[[], Awaitable[bool]]) -> None:
        async with asyncio.timeout(WAIT_TIMEOUT_S):
            while not await holds():  # noqa: ASYNC110 - polled on purpose
                await asyncio.sleep(0.02)

    async def gone(self, name: str) -> None:
        async def is_gone() -> bool:
            return (await self.api.get(f"{PODS}/{name}")).status == 404

        await self.until(is_gone)

    async def preempted_event(self, uid: str) -> Json:
        """What a victim was told, as soon as it was."""
        async with asyncio.timeout(WAIT_TIMEOUT_S):
            while True:
                for event in (await self.api.get(EVENTS)).body["items"]:
                    if event["regarding"].get("uid") == uid and event["reason"] == "Preempted":
                        return dict(event)
                await asyncio.sleep(0.02)

    async def patch_status(self, name: str, status: Json) -> None:
        reply = await self.api.patch(f"{PODS}/{name}/status", {"status": status}, STRATEGIC)
        assert reply.status == 200, reply.text


@pytest.fixture
async def harbour(api: ApiClient) -> Harbour:
    """Nodes and priority classes."""
    built = Harbour(api)
    await built.prepare()
    return built


@pytest.fixture
async def scheduler(
    api_server: ApiServerUnderTest, harbour: Harbour
) -> AsyncIterator[RunningScheduler]:
    """A scheduler at work."""
    assert isinstance(harbour, Harbour)
    async with running_scheduler(api_server.kubeconfig) as scheduler:
        yield scheduler
        scheduler.engine.validate()


async def _settled(scheduler: RunningScheduler, harbour: Harbour) -> None:
    """Nothing is under way and nobody waits."""

    async def is_settled() -> bool:
        return scheduler.is_idle and scheduler.num_waiting == 0

    await harbour.until(is_settled)


async def test_the_cheapest_victims_go_and_the_pod_lands_on_its_nominated_node(
    scheduler: RunningScheduler, harbour: Harbour
) -> None:
    await harbour.place("a", "n1", "2", "middle")
    await harbour.place("b", "n1", "2", "middle")
    cheap = await harbour.place("c", "n2", "2", "low")
    await harbour.place("d", "n2", "2", "middle")
    await harbour.preemptor("p", "2")
    assert await harbour.node_of("p") == "n2"
    pod = await harbour.pod("p")
    assert "nominatedNodeName" not in pod["status"]
    event = await harbour.preempted_event(cheap)
    assert (event["type"], event["action"]) == ("Normal", "Preempting")
    assert event["note"] == f"Preempted by pod {pod['metadata']['uid']} on node n2"
    assert event["reportingController"] == "stowage"
    assert event["related"]["uid"] == pod["metadata"]["uid"]
    assert (event["related"]["kind"], event["related"]["name"]) == ("Pod", "p")
    assert [await harbour.is_there(name) for name in "abcd"] == [True, True, False, True]
    await _settled(scheduler, harbour)


async def test_two_preemptors_at_once_take_different_nodes(
    scheduler: RunningScheduler, harbour: Harbour
) -> None:
    await harbour.place("a", "n1", "4")
    await harbour.place("b", "n2", "4")
    await asyncio.gather(harbour.preemptor("p", "3"), harbour.preemptor("q", "3"))
    assert {await harbour.node_of("p"), await harbour.node_of("q")} == {"n1", "n2"}
    await _settled(scheduler, harbour)


async def test_a_victim_with_a_long_grace_period_is_waited_for(
    scheduler: RunningScheduler, harbour: Harbour
) -> None:
    await harbour.place("a", "n1", "4", terminationGracePeriodSeconds=600)
    await harbour.place("b", "n2", "4", "middle", terminationGracePeriodSeconds=600)
    await harbour.preemptor("p", "3")
    victim = await harbour.going("a")
    (condition,) = (
        each for each in victim["status"]["conditions"] if each["type"] == "DisruptionTarget"
    )
    assert (condition["status"], condition["reason"]) == ("True", "PreemptionByScheduler")
    assert condition["message"] == "stowage: preempting to accommodate a higher priority pod"
    assert victim["metadata"]["deletionGracePeriodSeconds"] == 600
    assert await harbour.nominated("p") == "n1"
    # Something else changes: the pod is tried again, and waits for its victim.
    await harbour.create("small", "1", nodeSelector={"no": "such"})
    await harbour.refused("small")
    assert await harbour.is_there("b")
    await harbour.delete("a")
    assert await harbour.node_of("p") == "n1"
    assert await harbour.is_there("b")


async def test_a_preemptor_that_is_deleted_meanwhile_leaves_nothing_behind(
    scheduler: RunningScheduler, harbour: Harbour
) -> None:
    await harbour.place("a", "n1", "4", terminationGracePeriodSeconds=600)
    await harbour.place("b", "n2", "4", "high")
    await harbour.preemptor("p", "3")
    await harbour.going("a")
    await harbour.nominated("p")
    await harbour.delete("p")
    await harbour.delete("a")
    await harbour.create("q", "4")
    assert await harbour.node_of("q") == "n1"
    await _settled(scheduler, harbour)


@pytest.fixture
async def budget(harbour: Harbour) -> None:
    """One database is to stay."""
    spec = {"selector": {"matchLabels": {"app": "db"}}, "minAvailable": 1}
    await harbour.api.create(BUDGETS, {"metadata": {"name": "db"}, "spec": spec})


async def test_victims_that_a_budget_protects_are_spared(
    budget: None, scheduler: RunningScheduler, harbour: Harbour
) -> None:
    await harbour.place("db", "n1", "4", "low", labels={"app": "db"})
    await harbour.place("web", "n2", "4", "middle", labels={"app": "web"})
    await harbour.preemptor("p", "3")
    assert await harbour.node_of("p") == "n2"
    assert await harbour.is_there("db")
    # Budgets are kept where that is possible: here it is not.
    await harbour.preemptor("q", "3")
    assert await harbour.node_of("q") == "n1"
    await harbour.gone("db")
    await _settled(scheduler, harbour)


async def test_a_pod_that_never_preempts_waits(
    scheduler: RunningScheduler, harbour: Harbour
) -> None:
    await harbour.place("a", "n1", "4")
    await harbour.place("b", "n2", "4")
    await harbour.preemptor("p", "3", "humble")
    message = await harbour.refused("p")
    assert message.endswith("preemption: not eligible due to preemptionPolicy=Never.")
    assert message in await harbour.notes("p", "FailedScheduling")
    assert await harbour.is_there("a")
    assert await harbour.is_there("b")
    await harbour.delete("a")
    assert await harbour.node_of("p") == "n1"
    await _settled(scheduler, harbour)


async def test_the_message_says_when_preemption_finds_no_victims(
    scheduler: RunningScheduler, harbour: Harbour
) -> None:
    del scheduler
    await harbour.place("a", "n1", "4", "high")
    await harbour.place("b", "n2", "2", "low")
    await harbour.preemptor("p", "3", nodeSelector={HOSTNAME: "n1"})
    assert await harbour.refused("p") == (
        "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match Pod's node "
        "affinity/selector. no new claims to deallocate, preemption: 0/2 nodes are available: "
        "1 No preemption victims found for incoming pod, "
        "1 Preemption is not helpful for scheduling."
    )


#: How far the work of a scheduler that died had got.
STEPS = ("nothing", "nominated", "condition", "first victim going", "first gone", "all gone")


@pytest.mark.parametrize("step", STEPS)
async def test_a_scheduler_goes_on_where_another_one_ended(
    step: str, api_server: ApiServerUnderTest, harbour: Harbour
) -> None:
    async with running_scheduler(api_server.kubeconfig):
        await harbour.place("a", "n1", "2", terminationGracePeriodSeconds=600)
        await harbour.place("b", "n1", "2", terminationGracePeriodSeconds=600)
        await harbour.place("bystander", "n2", "4", "middle")
    await harbour.preemptor("p", "4")
    await _leave_at(STEPS.index(step), harbour)
    async with running_scheduler(api_server.kubeconfig) as scheduler:
        for name in ("a", "b"):
            if (await harbour.api.get(f"{PODS}/{name}")).status == 200:
                await harbour.going(name)
                await harbour.delete(name)
        assert await harbour.node_of("p") == "n1"
        await _settled(scheduler, harbour)
        scheduler.engine.validate()
    assert await harbour.is_there("bystander")
    assert "nominatedNodeName" not in (await harbour.pod("p"))["status"]


async def _leave_at(step: int, harbour: Harbour) -> None:
    """Do by hand what a scheduler does, up to that step."""
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    if step >= 1:
        await harbour.patch_status("p", {"nominatedNodeName": "n1"})
    if step >= 2:
        await harbour.patch_status("a", {"conditions": [condition]})
    if step >= 3:
        await harbour.api.delete(f"{PODS}/a")
    if step >= 4:
        await harbour.delete("a")
    if step >= 5:
        await harbour.delete("b")
