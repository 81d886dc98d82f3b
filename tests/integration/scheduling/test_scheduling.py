"""Decisions of the running scheduler, on the simulated cluster or on a real API server.

No kubelet runs. The tests look at bindings, PodScheduled conditions and Events.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from simcluster.tests.support.api_client import ApiClient
from simcluster.tests.support.api_servers import ApiServerUnderTest
from simcluster.tests.support.timeouts import wait_until
from tests.integration.scheduling.cluster import Cluster
from tests.support.integration.auditor import scheduled_condition
from tests.support.integration.running_scheduler import RunningScheduler, running_scheduler

Json = dict[str, Any]

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
GATE = "example.com/quota"


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


async def test_pods_are_bound_and_get_scheduled_events(
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


async def test_an_unschedulable_pod_gets_a_reason_and_is_bound_once_a_node_has_room(
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


async def test_a_gated_pod_is_bound_after_its_gate_is_removed(
    scheduler: RunningScheduler, cluster: Cluster
) -> None:
    await cluster.create("gated", schedulingGates=[{"name": GATE}])
    await cluster.create("free")
    await cluster.node_of("free")
    assert scheduled_condition(await cluster.pod("gated")) == ("False", "SchedulingGated")
    await cluster.open_gate("gated")
    await cluster.node_of("gated")


async def test_only_a_pod_with_a_toleration_is_bound_to_a_tainted_node(
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


async def test_a_pod_is_bound_to_the_node_that_its_node_affinity_selects(
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


async def test_pod_affinity_and_anti_affinity_are_respected(
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


async def test_pods_with_a_spread_constraint_are_spread_over_zones(
    scheduler: RunningScheduler, cluster: Cluster
) -> None:
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


async def test_an_unschedulable_pod_is_bound_when_a_matching_node_is_added(
    scheduler: RunningScheduler, cluster: Cluster
) -> None:
    await cluster.create("early", nodeSelector={"disk": "nvme"})
    await cluster.refused("early")
    await cluster.add_node("n3", {"disk": "nvme"})
    assert await cluster.node_of("early") == "n3"


async def test_an_unschedulable_pod_leaves_the_queue_when_it_is_deleted(
    scheduler: RunningScheduler, cluster: Cluster
) -> None:
    await cluster.create("big", cpu="100")
    await cluster.refused("big")
    assert scheduler.num_waiting == 1
    await cluster.delete("big")
    await wait_until(lambda: scheduler.num_waiting == 0)
