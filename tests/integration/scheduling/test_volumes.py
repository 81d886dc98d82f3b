"""Pods with claims, from pending to bound; the tests act as the volume controller.

No other controller binds claims, neither in the simulated cluster nor on a real API server, so the
tests see the scheduler's own writes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass

import pytest

from simcluster import FaultRule, SimulatedCluster
from simcluster.tests.support.api_client import ApiClient
from simcluster.tests.support.api_servers import ApiServerUnderTest
from simcluster.tests.support.timeouts import wait_until
from tests.integration.scheduling.cluster import Cluster
from tests.integration.scheduling.preemption_cluster import HOSTNAME, PreemptionCluster
from tests.integration.scheduling.volume_objects import (
    CLAIMS,
    CSI_NODES,
    LOCAL,
    PROVISIONED,
    VOLUMES,
    VolumeController,
    claim,
    claim_volumes,
    volume,
)
from tests.support.integration.running_scheduler import RunningScheduler, running_scheduler

NO_VOLUME = "node(s) didn't find available persistent volumes to bind"


@pytest.fixture
async def cluster(api: ApiClient) -> Cluster:
    """Two nodes."""
    users = Cluster(api)
    for name in ("n1", "n2"):
        await users.add_node(name)
    return users


@pytest.fixture
async def volumes(api: ApiClient) -> VolumeController:
    """A class of local volumes and one with dynamic provisioning."""
    controller = VolumeController(api)
    await controller.add_classes()
    return controller


@pytest.fixture
async def scheduler(api_server: ApiServerUnderTest) -> AsyncIterator[RunningScheduler]:
    """A running scheduler. After the test its state is valid and no volume is left assumed."""
    async with running_scheduler(api_server.kubeconfig) as running:
        yield running
        running.engine.validate()
        await wait_until(lambda: not running.engine.dump()["storage_assumed"])


@pytest.mark.usefixtures("scheduler")
async def test_the_scheduler_binds_a_volume_to_the_claim_and_the_pod_to_its_node(
    cluster: Cluster, volumes: VolumeController, api: ApiClient
) -> None:
    await volumes.add_volume(volume("disk", "n2"))
    await volumes.add_claim(claim("data", LOCAL))
    await cluster.create("p", volumes=claim_volumes("data"))
    assert await volumes.claim_of_volume("disk") == "data"
    assert not (await cluster.pod("p"))["spec"].get("nodeName")
    annotations = (await api.get(f"{VOLUMES}/disk")).body["metadata"]["annotations"]
    assert annotations == {"pv.kubernetes.io/bound-by-controller": "yes"}
    await volumes.bind("data", "disk")
    assert await cluster.node_of("p") == "n2"


@pytest.mark.usefixtures("scheduler")
async def test_a_volume_is_provisioned_on_the_selected_node(
    cluster: Cluster, volumes: VolumeController
) -> None:
    await volumes.add_claim(claim("data"))
    await cluster.create(
        "p", volumes=claim_volumes("data"), nodeSelector={"kubernetes.io/hostname": "n2"}
    )
    assert await volumes.claim_on_node("data") == "n2"
    await volumes.provision("data")
    assert await cluster.node_of("p") == "n2"


@pytest.mark.usefixtures("scheduler")
async def test_provisioning_is_requested_again_after_it_failed(
    cluster: Cluster, volumes: VolumeController
) -> None:
    await volumes.add_claim(claim("data"))
    await cluster.create("p", volumes=claim_volumes("data"))
    await volumes.fail_provisioning("data")
    await volumes.provision("data")
    assert await cluster.node_of("p") == await volumes.claim_on_node("data")


@pytest.mark.usefixtures("scheduler")
async def test_a_pod_preempted_while_its_claim_is_provisioned_waits_for_the_selected_node(
    volumes: VolumeController, api: ApiClient
) -> None:
    cluster = PreemptionCluster(api)
    await cluster.prepare()
    await cluster.create("full", "4", nodeSelector={HOSTNAME: "n2"}, priorityClassName="high")
    assert await cluster.node_of("full") == "n2"
    await volumes.add_claim(claim("data"))
    await cluster.create("p", "4", volumes=claim_volumes("data"), priorityClassName="low")
    assert await volumes.claim_on_node("data") == "n1"
    await cluster.preemptor("q", "4")
    assert await cluster.node_of("q") == "n1"
    await cluster.delete("full")
    await cluster.refused("p", NO_VOLUME)
    await volumes.fail_provisioning("data")
    await volumes.provision("data")
    assert await cluster.node_of("p") == "n2"


@pytest.mark.usefixtures("scheduler")
async def test_two_claims_never_get_the_same_volume(
    cluster: Cluster, volumes: VolumeController
) -> None:
    await volumes.add_volume(volume("disk", "n1"))
    for name in ("one", "two"):
        await volumes.add_claim(claim(name, LOCAL))
        await cluster.create(name, volumes=claim_volumes(name))
    winner = await volumes.claim_of_volume("disk")
    loser = "two" if winner == "one" else "one"
    await cluster.refused(loser, NO_VOLUME)
    await volumes.bind(winner, "disk")
    assert await cluster.node_of(winner) == "n1"
    await volumes.add_volume(volume("another", "n2"))
    assert await volumes.claim_of_volume("another") == loser
    await volumes.bind(loser, "another")
    assert await cluster.node_of(loser) == "n2"


@dataclass(frozen=True)
class SeveralClaims:
    """A pod with more than one claim.

    Attributes:
        disks: The volumes of the class `local`, and the node of each.
        bound: Claims that are bound to a volume of the same name before the pod is created.
        reserved: Claims whose name is in the volume of the same name, which is not bound.
        free: Other claims of the class `local`.
        provisioned: Claims of the class `provisioned`.
        node: The pod's node; empty if there is none.
    """

    disks: Mapping[str, str]
    bound: Sequence[str] = ()
    reserved: Sequence[str] = ()
    free: Sequence[str] = ()
    provisioned: Sequence[str] = ()
    node: str = "n2"


SEVERAL_CLAIMS = {
    "two free disks are on one node": SeveralClaims(
        disks={"w": "n1", "x": "n2", "y": "n2"}, free=("a", "b")
    ),
    "the free disks are on different nodes": SeveralClaims(
        disks={"w": "n1", "x": "n2"}, free=("a", "b"), node=""
    ),
    "one claim is bound": SeveralClaims(
        disks={"w": "n1", "x": "n2", "y": "n2"}, bound=("x",), free=("a",)
    ),
    "one claim is bound, and the free disk is elsewhere": SeveralClaims(
        disks={"w": "n1", "x": "n2"}, bound=("x",), free=("a",), node=""
    ),
    "a disk is reserved for the claim": SeveralClaims(
        disks={"w": "n1", "x": "n2"}, reserved=("x",), provisioned=("a",)
    ),
    "a disk is reserved for the claim, and the other claim is bound elsewhere": SeveralClaims(
        disks={"v": "n1", "w": "n1", "x": "n2"}, reserved=("x",), bound=("w",), node=""
    ),
    "one claim is provisioned": SeveralClaims(disks={"x": "n2"}, free=("a",), provisioned=("b",)),
    "both claims are provisioned": SeveralClaims(
        disks={"x": "n2"}, bound=("x",), provisioned=("a", "b")
    ),
}


@pytest.mark.usefixtures("scheduler")
@pytest.mark.parametrize("case", SEVERAL_CLAIMS.values(), ids=list(SEVERAL_CLAIMS))
async def test_a_pod_goes_where_all_its_claims_can_be_bound(
    case: SeveralClaims, cluster: Cluster, volumes: VolumeController
) -> None:
    static = (*case.bound, *case.reserved, *case.free)
    for name, node_name in case.disks.items():
        disk = volume(name, node_name)
        if name in case.reserved:
            disk["spec"]["claimRef"] = {"namespace": "default", "name": name}
        await volumes.add_volume(disk)
    for name in (*static, *case.provisioned):
        await volumes.add_claim(claim(name, LOCAL if name in static else PROVISIONED))
    for name in case.bound:
        await volumes.claim_for_another(name, name)
    await cluster.create("p", volumes=claim_volumes(*static, *case.provisioned))
    if not case.node:
        await cluster.refused("p", NO_VOLUME)
        return
    for name, node_name in case.disks.items():
        if node_name == case.node and name not in case.bound:
            await volumes.bind(await volumes.claim_of_volume(name), name)
    for name in case.provisioned:
        await volumes.provision(name)
    assert await cluster.node_of("p") == case.node


@pytest.mark.usefixtures("scheduler")
async def test_a_pod_waits_until_its_claim_is_created(
    cluster: Cluster, volumes: VolumeController
) -> None:
    await cluster.create("p", volumes=claim_volumes("data"))
    assert 'persistentvolumeclaim "data" not found' in await cluster.refused("p")
    await volumes.add_claim(claim("data"))
    await volumes.provision("data")
    await cluster.node_of("p")


async def test_a_pod_deleted_while_its_claim_is_provisioned_leaves_the_queue(
    cluster: Cluster, volumes: VolumeController, scheduler: RunningScheduler, api: ApiClient
) -> None:
    await volumes.add_claim(claim("data"))
    await cluster.create("p", volumes=claim_volumes("data"))
    node_name = await volumes.claim_on_node("data")
    await cluster.delete("p")
    await cluster.create("q", volumes=claim_volumes("data"))
    await volumes.provision("data")
    assert await cluster.node_of("q") == node_name
    assert (await api.get(f"{CLAIMS}/data")).body["spec"]["volumeName"] == "provisioned-for-data"
    assert scheduler.num_waiting == 0


@pytest.mark.usefixtures("scheduler")
async def test_a_pod_fails_when_its_claim_is_deleted_during_provisioning(
    cluster: Cluster, volumes: VolumeController, api: ApiClient
) -> None:
    await volumes.add_claim(claim("data"))
    await cluster.create("p", volumes=claim_volumes("data"))
    await volumes.claim_on_node("data")
    await api.patch(f"{CLAIMS}/data", {"metadata": {"finalizers": None}})
    await api.delete(f"{CLAIMS}/data")
    await volumes.has_failed("p", 'persistentvolumeclaim "data" not found')


@pytest.fixture
async def limits(cluster: Cluster, api: ApiClient) -> None:
    """Node n1 takes one volume, node n2 none."""
    for name, count in (("n1", 1), ("n2", 0)):
        driver = {"name": "csi.example.com", "nodeID": name, "allocatable": {"count": count}}
        csi_node = {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSINode",
            "metadata": {"name": name},
            "spec": {"drivers": [driver]},
        }
        await api.create(CSI_NODES, csi_node)


@pytest.mark.usefixtures("limits", "scheduler")
async def test_the_volume_limit_of_a_node_is_respected(
    cluster: Cluster, volumes: VolumeController
) -> None:
    for name in ("one", "two"):
        await volumes.add_claim(claim(name))
    await cluster.create("one", volumes=claim_volumes("one"))
    await volumes.provision("one")
    assert await cluster.node_of("one") == "n1"
    await cluster.create("two", volumes=claim_volumes("two"))
    await cluster.refused("two", "2 node(s) exceed max volume count")
    await cluster.delete("one")
    await volumes.provision("two")
    assert await cluster.node_of("two") == "n1"


async def test_a_restarted_scheduler_keeps_the_selected_node_of_a_claim(
    cluster: Cluster, volumes: VolumeController, api_server: ApiServerUnderTest
) -> None:
    await volumes.add_claim(claim("data"))
    async with running_scheduler(api_server.kubeconfig):
        await cluster.create("p", volumes=claim_volumes("data"))
        node_name = await volumes.claim_on_node("data")
    async with running_scheduler(api_server.kubeconfig) as restarted:
        await volumes.provision("data")
        assert await cluster.node_of("p") == node_name
        restarted.engine.validate()


async def test_a_restarted_scheduler_keeps_the_claim_of_a_volume(
    cluster: Cluster, volumes: VolumeController, api_server: ApiServerUnderTest
) -> None:
    await volumes.add_volume(volume("disk", "n1"))
    await volumes.add_volume(volume("other", "n2"))
    await volumes.add_claim(claim("data", LOCAL))
    async with running_scheduler(api_server.kubeconfig):
        await cluster.create("p", volumes=claim_volumes("data"))
        given = await volumes.first_with_claim("disk", "other")
    async with running_scheduler(api_server.kubeconfig) as restarted:
        await volumes.bind("data", given)
        assert await cluster.node_of("p") == {"disk": "n1", "other": "n2"}[given]
        restarted.engine.validate()


async def test_a_volume_is_bound_although_the_answer_to_the_patch_is_lost(
    cluster: Cluster,
    volumes: VolumeController,
    scheduler: RunningScheduler,
    simulated_cluster: SimulatedCluster,
) -> None:
    lost = FaultRule("PATCH", "/persistentvolumes/disk$", times=1, is_applied=True, is_dropped=True)
    simulated_cluster.faults.add(lost)
    await volumes.add_volume(volume("disk", "n1"))
    await volumes.add_claim(claim("data", LOCAL))
    await cluster.create("p", volumes=claim_volumes("data"))
    assert await volumes.claim_of_volume("disk") == "data"
    await volumes.bind("data", "disk")
    assert await cluster.node_of("p") == "n1"
    # The API shows the node before the answer to the Binding has arrived.
    await wait_until(lambda: not scheduler.engine.dump()["bindings"])


@pytest.mark.usefixtures("scheduler")
async def test_another_volume_is_chosen_when_a_client_binds_the_first_to_another_claim(
    cluster: Cluster, volumes: VolumeController, simulated_cluster: SimulatedCluster
) -> None:
    """The API server rejects the scheduler's patch until the volume belongs to another claim."""
    refused = FaultRule("PATCH", "/persistentvolumes/disk$", times=1000, status=503)
    simulated_cluster.faults.add(refused)
    await volumes.add_volume(volume("disk", "n1"))
    for name in ("data", "rival"):
        await volumes.add_claim(claim(name, LOCAL))
    await cluster.create("p", volumes=claim_volumes("data"))
    await volumes.has_failed("p", "503")
    await volumes.claim_for_another("disk", "rival")
    simulated_cluster.faults.clear()
    await volumes.has_failed("p", NO_VOLUME)
    await volumes.add_volume(volume("another", "n2"))
    assert await volumes.claim_of_volume("another") == "data"
    await volumes.bind("data", "another")
    assert await cluster.node_of("p") == "n2"
