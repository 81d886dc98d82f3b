"""Decisions of the running scheduler, on the embedded cluster or on a real API server.

Nobody runs pods here: what counts is the binding, the condition and the event.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from simcluster.tests.support.api_client import JSON_PATCH, NODES, PODS, ApiClient
from simcluster.tests.support.api_servers import ApiServerUnderTest
from simcluster.tests.support.timeouts import WAIT_TIMEOUT_S
from tests.support.integration.auditor import node_of, scheduled_condition
from tests.support.integration.running_scheduler import RunningScheduler, running_scheduler

Json = dict[str, Any]

EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
GATE = "example.com/quota"


class Cluster:
    """What users do and see."""

    def __init__(self, api: ApiClient) -> None:
        self._api = api

    async def add_node(self, name: str, labels: dict[str, str] | None = None, **spec: Any) -> None:
        capacity = {"cpu": "4", "memory": "8Gi", "pods": "110"}
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": name,
                "labels": {"kubernetes.io/hostname": name, **(labels or {})},
            },
            "spec": spec,
            "status": {"capacity": capacity, "allocatable": capacity, "conditions": [ready]},
        }
        await self._api.create(NODES, node)

    async def create(
        self, name: str, cpu: str = "100m", labels: dict[str, str] | None = None, **spec: Any
    ) -> None:
        container = {
            "name": "c",
            "image": "registry.k8s.io/pause:3.10",
            "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}},
        }
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "labels": labels or {}},
            "spec": {
                "schedulerName": "stowage",
                "automountServiceAccountToken": False,
                "containers": [container],
                **spec,
            },
        }
        await self._api.create(PODS, pod)

    async def delete(self, name: str) -> None:
        await self._api.delete(f"{PODS}/{name}?gracePeriodSeconds=0")

    async def open_gate(self, name: str) -> None:
        patch = [{"op": "remove", "path": "/spec/schedulingGates"}]
        reply = await self._api.patch(f"{PODS}/{name}", patch, JSON_PATCH)
        assert reply.status == 200, reply.text

    async def pod(self, name: str) -> Json:
        return (await self._api.get(f"{PODS}/{name}")).body

    async def seen(self, name: str, holds: Callable[[Json], bool]) -> Json:
        """A pod, as soon as something is true of it."""
        async with asyncio.timeout(WAIT_TIMEOUT_S):
            while not holds(pod := await self.pod(name)):  # noqa: ASYNC110 - polled on purpose
                await asyncio.sleep(0.02)
        return pod

    async def node_of(self, name: str) -> str:
        """The node of a pod, as soon as it has one."""
        pod = await self.seen(name, lambda pod: bool(node_of(pod)))
        assert scheduled_condition(pod)[0] == "True"
        return node_of(pod)

    async def refused(self, name: str, *words: str) -> str:
        """Why a pod has no node, as soon as it says so in these words.

        It may say something else before, for what was created first need not be seen first.
        """

        def is_refused(pod: Json) -> bool:
            is_unschedulable = scheduled_condition(pod) == ("False", "Unschedulable")
            return is_unschedulable and all(each in _message(pod) for each in words)

        pod = await self.seen(name, is_refused)
        assert node_of(pod) == ""
        return _message(pod)

    async def notes(self, name: str, reason: str) -> list[str]:
        """The notes of a pod's events with this reason, as soon as there is one."""
        uid = (await self.pod(name))["metadata"]["uid"]
        async with asyncio.timeout(WAIT_TIMEOUT_S):
            while True:
                events = (await self._api.get(EVENTS)).body["items"]
                notes = [
                    str(event["note"])
                    for event in events
                    if event["regarding"].get("uid") == uid and event["reason"] == reason
                ]
                if notes:
                    return notes
                await asyncio.sleep(0.02)


def _message(pod: Json) -> str:
    """Of the PodScheduled condition."""
    return next(
        str(each["message"])
        for each in pod["status"]["conditions"]
        if each["type"] == "PodScheduled"
    )


@pytest.fixture
async def cluster(api: ApiClient) -> Cluster:
    """A cluster without nodes and pods."""
    return Cluster(api)


@pytest.fixture
async def scheduler(
    api_server: ApiServerUnderTest, cluster: Cluster
) -> AsyncIterator[RunningScheduler]:
    """A scheduler with two nodes in two zones."""
    await cluster.add_node("n1", {ZONE: "a", "disk": "ssd"})
    await cluster.add_node("n2", {ZONE: "b"})
    async with running_scheduler(api_server.kubeconfig) as scheduler:
        yield scheduler


async def test_pods_are_bound_and_their_owners_are_told(
    scheduler: RunningScheduler, cluster: Cluster
) -> None:
    names = [f"p{number}" for number in range(10)]
    for name in names:
        await cluster.create(name)
    nodes = [await cluster.node_of(name) for name in names]
    assert sorted(nodes) == ["n1"] * 5 + ["n2"] * 5
    assert await cluster.notes("p0", "Scheduled") == [
        f"Successfully assigned default/p0 to {nodes[0]}"
    ]


async def test_a_pod_that_fits_nowhere_says_why_and_is_bound_once_it_fits(
    scheduler: RunningScheduler, cluster: Cluster
) -> None:
    await cluster.create("first", cpu="3")
    await cluster.create("second", cpu="3")
    await cluster.node_of("first")
    await cluster.node_of("second")
    await cluster.create("third", cpu="3")
    message = await cluster.refused("third")
    assert message.startswith("0/2 nodes are available: 2 Insufficient cpu.")
    assert await cluster.notes("third", "FailedScheduling") == [message]
    await cluster.delete("first")
    await cluster.node_of("third")


async def test_a_gated_pod_waits_for_its_gate(
    scheduler: RunningScheduler, cluster: Cluster
) -> None:
    await cluster.create("gated", schedulingGates=[{"name": GATE}])
    await cluster.create("free")
    await cluster.node_of("free")
    assert scheduled_condition(await cluster.pod("gated")) == ("False", "SchedulingGated")
    await cluster.open_gate("gated")
    await cluster.node_of("gated")


async def test_a_taint_keeps_pods_away_that_do_not_tolerate_it(
    scheduler: RunningScheduler, cluster: Cluster
) -> None:
    taint = {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}
    await cluster.add_node("n3", {"pool": "gpu"}, taints=[taint])
    pool = {"pool": "gpu"}
    await cluster.create("intolerant", nodeSelector=pool)
    await cluster.refused(
        "intolerant",
        "1 node(s) had untolerated taint(s)",
        "2 node(s) didn't match Pod's node affinity/selector",
    )
    toleration = {"key": "dedicated", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"}
    await cluster.create("tolerant", nodeSelector=pool, tolerations=[toleration])
    assert await cluster.node_of("tolerant") == "n3"


async def test_node_affinity_chooses_the_node(
    scheduler: RunningScheduler, cluster: Cluster
) -> None:
    def by(operator: str, *values: str) -> Json:
        expression: Json = {"key": "disk", "operator": operator}
        if values:
            expression["values"] = list(values)
        return {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}

    for name, terms in (("in", by("In", "ssd")), ("absent", by("DoesNotExist"))):
        required = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
        await cluster.create(name, affinity={"nodeAffinity": required})
    assert await cluster.node_of("in") == "n1"
    assert await cluster.node_of("absent") == "n2"


async def test_pods_follow_and_shun_each_other(
    scheduler: RunningScheduler, cluster: Cluster
) -> None:
    def terms(app: str, key: str) -> Json:
        selector = {"matchLabels": {"app": app}}
        term = {"labelSelector": selector, "topologyKey": key}
        return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}

    await cluster.create("web", labels={"app": "web"})
    home = await cluster.node_of("web")
    await cluster.create("follower", affinity={"podAffinity": terms("web", ZONE)})
    assert await cluster.node_of("follower") == home
    alone = {"podAntiAffinity": terms("web", HOSTNAME)}
    await cluster.create("other", labels={"app": "web"}, affinity=alone)
    assert {home, await cluster.node_of("other")} == {"n1", "n2"}
    await cluster.create("another", labels={"app": "web"}, affinity=alone)
    await cluster.refused("another", "2 node(s) didn't match pod anti-affinity rules")


async def test_pods_spread_over_zones(scheduler: RunningScheduler, cluster: Cluster) -> None:
    constraint = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "even"}},
    }
    names = [f"even{number}" for number in range(4)]
    for name in names:
        await cluster.create(name, labels={"app": "even"}, topologySpreadConstraints=[constraint])
    assert sorted([await cluster.node_of(name) for name in names]) == ["n1", "n1", "n2", "n2"]


async def test_a_pod_that_was_there_before_its_node_is_bound_when_the_node_comes(
    scheduler: RunningScheduler, cluster: Cluster
) -> None:
    await cluster.create("early", nodeSelector={"disk": "nvme"})
    await cluster.refused("early")
    await cluster.add_node("n3", {"disk": "nvme"})
    assert await cluster.node_of("early") == "n3"


async def test_a_pod_deleted_while_it_waits_leaves_the_queue(
    scheduler: RunningScheduler, cluster: Cluster
) -> None:
    await cluster.create("big", cpu="100")
    await cluster.refused("big")
    assert scheduler.num_waiting == 1
    await cluster.delete("big")
    async with asyncio.timeout(WAIT_TIMEOUT_S):
        while scheduler.num_waiting:  # noqa: ASYNC110 - the engine tells nobody
            await asyncio.sleep(0.02)
