"""Claims grow if their StorageClass allows it, and shrink no further than their capacity."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from simcluster.tests.contract.causes import causes
from simcluster.tests.contract.requests import CLAIMS, STORAGE_CLASSES
from simcluster.tests.support.api_client import ApiClient, Reply

Json = dict[str, Any]

CSI_NODES = "/apis/storage.k8s.io/v1/csinodes"


@pytest.fixture
async def bound(api: ApiClient) -> AsyncIterator[ApiClient]:
    """A client of a cluster with a bound claim of 3Gi, which has 2Gi."""
    await api.create(
        STORAGE_CLASSES, {"metadata": {"name": "gold"}, "provisioner": "example.com/p"}
    )
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "gold",
        "volumeName": "v",
        "resources": {"requests": {"storage": "3Gi"}},
    }
    await api.create(CLAIMS, {"metadata": {"name": "a"}, "spec": spec})
    status = {"phase": "Bound", "capacity": {"storage": "2Gi"}}
    await api.patch(f"{CLAIMS}/a/status", {"status": status})
    yield api
    await api.patch(f"{CLAIMS}/a", {"metadata": {"finalizers": None}})
    await api.delete(f"{CLAIMS}/a")
    await api.delete(f"{STORAGE_CLASSES}/gold")


async def resized(api: ApiClient, size: str) -> Reply:
    spec = {"resources": {"requests": {"storage": size}}}
    return await api.patch(f"{CLAIMS}/a", {"spec": spec})


async def test_a_claim_grows_only_if_its_class_allows_it(bound: ApiClient) -> None:
    reply = await resized(bound, "4Gi")
    assert reply.status == 403
    assert reply.body["message"] == (
        'persistentvolumeclaims "a" is forbidden: only dynamically provisioned pvc can be resized '
        "and the storageclass that provisions the pvc must support resize"
    )
    await bound.patch(f"{STORAGE_CLASSES}/gold", {"allowVolumeExpansion": True})
    assert (await resized(bound, "4Gi")).status == 200


@pytest.mark.parametrize("size", ["2Gi", "1Gi"])
async def test_a_claim_does_not_shrink_to_its_capacity(bound: ApiClient, size: str) -> None:
    assert causes(await resized(bound, size)) == [
        (
            "FieldValueForbidden",
            "spec.resources.requests.storage",
            "Forbidden: field can not be less than status.capacity",
        )
    ]
    assert (await resized(bound, "2500Mi")).status == 200


async def test_the_limit_of_a_driver_is_not_negative(api: ApiClient) -> None:
    driver = {"name": "d.example.com", "nodeID": "x", "allocatable": {"count": -1}}
    body = {"metadata": {"name": "n"}, "spec": {"drivers": [driver]}}
    assert causes(await api.post(CSI_NODES, body)) == [
        (
            "FieldValueInvalid",
            "spec.drivers[0].allocatable.count",
            "Invalid value: -1: must be greater than or equal to 0",
        )
    ]
