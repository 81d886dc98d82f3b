"""Pods with claims, from pending to bound; the test is the controller of volumes.

Nobody else binds claims here, so what is seen is the scheduler's own doing, on the embedded
cluster as on a real API server.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from simcluster import FaultRule, SimulatedCluster
from simcluster.tests.support.api_client import ApiClient
from simcluster.tests.support.api_servers import ApiServerUnderTest
from simcluster.tests.support.timeouts import WAIT_TIMEOUT_S
from tests.integration.test_scheduling import Cluster
from tests.integration.volume_objects import (
    CLAIMS,
    CSI_NODES,
    LOCAL,
    VOLUMES,
    VolumeController,
    claim,
    using,
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
    """A class of local volumes and one whose volumes are made."""
    controller = VolumeController(api)
    await controller.add_classes()
    return controller


@pytest.fixture
async def scheduler(api_server: ApiServerUnderTest) -> AsyncIterator[RunningScheduler]:
    """At work; when it ends, nothing is left assumed and nothing contradicts itself."""
    async with running_scheduler(api_server.kubeconfig) as running:
        yield running
        running.engine.validate()
        async with asyncio.timeout(WAIT_TIMEOUT_S):
            while running.engine.dump()["storage_assumed"]:  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.01)


@pytest.mark.usefixtures("scheduler")
async def test_a_free_volume_is_given_to_the_claim_and_the_pod_goes_to_its_node(
    cluster: Cluster, volumes: VolumeController, api: ApiClient
) -> None:
    await volumes.add_volume(volume("disk", "n2"))
    await volumes.add_claim(claim("data", LOCAL))
    await cluster.create("p", volumes=using("data"))
    assert await volumes.claim_of_volume("disk") == "data"
    assert not (await cluster.pod("p"))["spec"].get("nodeName")
    annotations = (await api.get(f"{VOLUMES}/disk")).body["metadata"]["annotations"]
    assert annotations == {"pv.kubernetes.io/bound-by-controller": "yes"}
    await volumes.bind("data", "disk")
    assert await cluster.node_of("p") == "n2"


@pytest.mark.usefixtures("scheduler")
async def test_a_volume_is_made_on_the_node_that_was_chosen(
    cluster: Cluster, volumes: VolumeController
) -> None:
    await volumes.add_claim(claim("data"))
    await cluster.create("p", volumes=using("data"), nodeSelector={"kubernetes.io/hostname": "n2"})
    assert await volumes.claim_on_node("data") == "n2"
    await volumes.provision("data")
    assert await cluster.node_of("p") == "n2"


@pytest.mark.usefixtures("scheduler")
async def test_a_provisioner_that_fails_is_asked_again(
    cluster: Cluster, volumes: VolumeController
) -> None:
    await volumes.add_claim(claim("data"))
    await cluster.create("p", volumes=using("data"))
    await volumes.give_up("data")
    await volumes.provision("data")
    assert await cluster.node_of("p") == await volumes.claim_on_node("data")


@pytest.mark.usefixtures("scheduler")
async def test_two_pods_do_not_get_one_volume(cluster: Cluster, volumes: VolumeController) -> None:
    await volumes.add_volume(volume("disk", "n1"))
    for name in ("one", "two"):
        await volumes.add_claim(claim(name, LOCAL))
        await cluster.create(name, volumes=using(name))
    winner = await volumes.claim_of_volume("disk")
    loser = "two" if winner == "one" else "one"
    await cluster.refused(loser, NO_VOLUME)
    await volumes.bind(winner, "disk")
    assert await cluster.node_of(winner) == "n1"
    await volumes.add_volume(volume("another", "n2"))
    assert await volumes.claim_of_volume("another") == loser
    await volumes.bind(loser, "another")
    assert await cluster.node_of(loser) == "n2"


@pytest.mark.usefixtures("scheduler")
async def test_a_pod_waits_for_a_claim_that_is_not_there_yet(
    cluster: Cluster, volumes: VolumeController
) -> None:
    await cluster.create("p", volumes=using("data"))
    assert 'persistentvolumeclaim "data" not found' in await cluster.refused("p")
    await volumes.add_claim(claim("data"))
    await volumes.provision("data")
    await cluster.node_of("p")


async def test_a_pod_deleted_while_its_claim_is_being_bound_leaves_nothing_behind(
    cluster: Cluster, volumes: VolumeController, scheduler: RunningScheduler, api: ApiClient
) -> None:
    await volumes.add_claim(claim("data"))
    await cluster.create("p", volumes=using("data"))
    node_name = await volumes.claim_on_node("data")
    await cluster.delete("p")
    await cluster.create("q", volumes=using("data"))
    await volumes.provision("data")
    assert await cluster.node_of("q") == node_name
    assert (await api.get(f"{CLAIMS}/data")).body["spec"]["volumeName"] == "made-for-data"
    assert scheduler.num_waiting == 0


@pytest.mark.usefixtures("scheduler")
async def test_a_claim_deleted_while_it_is_being_bound_sends_the_pod_back(
    cluster: Cluster, volumes: VolumeController, api: ApiClient
) -> None:
    await volumes.add_claim(claim("data"))
    await cluster.create("p", volumes=using("data"))
    await volumes.claim_on_node("data")
    await api.patch(f"{CLAIMS}/data", {"metadata": {"finalizers": None}})
    await api.delete(f"{CLAIMS}/data")
    await volumes.has_failed("p", 'persistentvolumeclaim "data" not found')


@pytest.fixture
async def limits(cluster: Cluster, api: ApiClient) -> None:
    """Room for one volume on the one node, for none on the other."""
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
async def test_a_node_takes_no_more_volumes_than_its_driver_allows(
    cluster: Cluster, volumes: VolumeController
) -> None:
    for name in ("one", "two"):
        await volumes.add_claim(claim(name))
    await cluster.create("one", volumes=using("one"))
    await volumes.provision("one")
    assert await cluster.node_of("one") == "n1"
    await cluster.create("two", volumes=using("two"))
    await cluster.refused("two", "2 node(s) exceed max volume count")
    await cluster.delete("one")
    await volumes.provision("two")
    assert await cluster.node_of("two") == "n1"


async def test_after_a_restart_the_claim_stays_with_the_node_it_was_sent_to(
    cluster: Cluster, volumes: VolumeController, api_server: ApiServerUnderTest
) -> None:
    await volumes.add_claim(claim("data"))
    async with running_scheduler(api_server.kubeconfig):
        await cluster.create("p", volumes=using("data"))
        node_name = await volumes.claim_on_node("data")
    async with running_scheduler(api_server.kubeconfig) as restarted:
        await volumes.provision("data")
        assert await cluster.node_of("p") == node_name
        restarted.engine.validate()


async def test_after_a_restart_the_volume_stays_with_the_claim_it_was_given_to(
    cluster: Cluster, volumes: VolumeController, api_server: ApiServerUnderTest
) -> None:
    await volumes.add_volume(volume("disk", "n1"))
    await volumes.add_volume(volume("other", "n2"))
    await volumes.add_claim(claim("data", LOCAL))
    async with running_scheduler(api_server.kubeconfig):
        await cluster.create("p", volumes=using("data"))
        given = await volumes.first_given("disk", "other")
    async with running_scheduler(api_server.kubeconfig) as restarted:
        await volumes.bind("data", given)
        assert await cluster.node_of("p") == {"disk": "n1", "other": "n2"}[given]
        restarted.engine.validate()


async def test_a_write_whose_answer_is_lost_counts(
    cluster: Cluster,
    volumes: VolumeController,
    scheduler: RunningScheduler,
    embedded: SimulatedCluster,
) -> None:
    lost = FaultRule("PATCH", "/persistentvolumes/disk$", times=1, is_applied=True, is_dropped=True)
    embedded.faults.add(lost)
    await volumes.add_volume(volume("disk", "n1"))
    await volumes.add_claim(claim("data", LOCAL))
    await cluster.create("p", volumes=using("data"))
    assert await volumes.claim_of_volume("disk") == "data"
    await volumes.bind("data", "disk")
    assert await cluster.node_of("p") == "n1"
    async with asyncio.timeout(WAIT_TIMEOUT_S):
        # The API shows the node before the answer to the Binding has arrived.
        while scheduler.engine.dump()["bindings"]:  # noqa: ASYNC110 - the engine tells nobody
            await asyncio.sleep(0.01)


@pytest.mark.usefixtures("scheduler")
async def test_a_volume_claimed_by_another_client_before_the_write_is_given_up(
    cluster: Cluster, volumes: VolumeController, embedded: SimulatedCluster
) -> None:
    """The write is turned away until the volume belongs to another claim."""
    refused = FaultRule("PATCH", "/persistentvolumes/disk$", times=1000, status=503)
    embedded.faults.add(refused)
    await volumes.add_volume(volume("disk", "n1"))
    for name in ("data", "rival"):
        await volumes.add_claim(claim(name, LOCAL))
    await cluster.create("p", volumes=using("data"))
    await volumes.has_failed("p", "503")
    await volumes.give("disk", "rival")
    embedded.faults.clear()
    await volumes.has_failed("p", NO_VOLUME)
    await volumes.add_volume(volume("another", "n2"))
    assert await volumes.claim_of_volume("another") == "data"
    await volumes.bind("data", "another")
    assert await cluster.node_of("p") == "n2"
