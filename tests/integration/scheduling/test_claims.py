"""Pods with device claims: each device is given to one claim, over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from simcluster.tests.support.api_client import ApiClient
from simcluster.tests.support.api_servers import ApiServerUnderTest
from tests.integration.scheduling.cluster import Cluster
from tests.integration.scheduling.device_objects import (
    CLAIMS,
    CLASSES,
    DEVICES_PER_NODE,
    SLICES,
    device_claim,
    device_class,
    device_slice,
)
from tests.support.integration.running_scheduler import RunningScheduler, running_scheduler

NODES = ("n1", "n2")


@pytest.fixture
async def cluster(api: ApiClient) -> Cluster:
    """Two nodes with two devices of the right model each."""
    cluster = Cluster(api)
    await api.create(CLASSES, device_class())
    for node in NODES:
        await cluster.add_node(node)
        await api.create(SLICES, device_slice(node))
    return cluster


@pytest.fixture
async def scheduler(
    api_server: ApiServerUnderTest, cluster: Cluster
) -> AsyncIterator[RunningScheduler]:
    """A running scheduler."""
    async with running_scheduler(api_server.kubeconfig) as scheduler:
        yield scheduler


async def _create(api: ApiClient, cluster: Cluster, name: str) -> None:
    await api.create(CLAIMS, device_claim(name))
    await cluster.create(name, resourceClaims=[{"name": "gpu", "resourceClaimName": name}])


async def test_each_device_is_given_to_one_claim(
    scheduler: RunningScheduler, api: ApiClient, cluster: Cluster
) -> None:
    names = [f"p{number}" for number in range(len(NODES) * DEVICES_PER_NODE)]
    for name in names:
        await _create(api, cluster, name)
    given = set()
    for name in names:
        node = await cluster.node_of(name)
        claim = (await api.get(f"{CLAIMS}/{name}")).body
        (result,) = claim["status"]["allocation"]["devices"]["results"]
        assert result["pool"] == node
        assert result["device"] in ("gpu-0", "gpu-2")
        assert [each["name"] for each in claim["status"]["reservedFor"]] == [name]
        assert claim["metadata"]["finalizers"] == ["resource.kubernetes.io/delete-protection"]
        given.add((result["pool"], result["device"]))
    assert len(given) == len(names)
    await _create(api, cluster, "late")
    await cluster.refused("late", "cannot allocate all claims")


async def test_a_new_device_wakes_a_pod_that_found_none(
    scheduler: RunningScheduler, api: ApiClient, cluster: Cluster
) -> None:
    names = [f"p{number}" for number in range(len(NODES) * DEVICES_PER_NODE)]
    for name in (*names, "late"):
        await _create(api, cluster, name)
    for name in names:
        await cluster.node_of(name)
    await cluster.refused("late", "cannot allocate all claims")
    await cluster.add_node("n3")
    await api.create(SLICES, device_slice("n3"))
    assert await cluster.node_of("late") == "n3"
