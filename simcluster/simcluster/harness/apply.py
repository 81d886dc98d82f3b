"""Creates objects through the API server, as `kubectl create` does."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import msgspec

from simcluster.values import Json
from stowage.operator.client.api_client import ApiClient

_CONCURRENT_REQUESTS = 24
_COLLECTIONS = {
    "Namespace": "/api/v1/namespaces",
    "Node": "/api/v1/nodes",
    "Pod": "/api/v1/namespaces/{namespace}/pods",
    "Service": "/api/v1/namespaces/{namespace}/services",
    "PersistentVolume": "/api/v1/persistentvolumes",
    "PersistentVolumeClaim": "/api/v1/namespaces/{namespace}/persistentvolumeclaims",
    "StorageClass": "/apis/storage.k8s.io/v1/storageclasses",
    "CSINode": "/apis/storage.k8s.io/v1/csinodes",
    "DeviceClass": "/apis/resource.k8s.io/v1/deviceclasses",
    "ResourceSlice": "/apis/resource.k8s.io/v1/resourceslices",
    "ResourceClaimTemplate": (
        "/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaimtemplates"
    ),
    "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses",
    "PodGroup": "/apis/scheduling.k8s.io/v1alpha2/namespaces/{namespace}/podgroups",
    "Deployment": "/apis/apps/v1/namespaces/{namespace}/deployments",
    "StatefulSet": "/apis/apps/v1/namespaces/{namespace}/statefulsets",
    "Job": "/apis/batch/v1/namespaces/{namespace}/jobs",
}


def collection_path(obj: Json) -> str:
    """The path at which an object is created.

    Raises:
        ValueError: the kind is not one that the demo and the benchmarks use.
    """
    path = _COLLECTIONS.get(obj["kind"])
    if path is None:
        known = ", ".join(_COLLECTIONS)
        raise ValueError(f"{obj['kind']} {obj['metadata']['name']}: expected one of {known}")
    return path.format(namespace=obj["metadata"].get("namespace", "default"))


async def create(client: ApiClient, obj: Json) -> None:
    """Create one object.

    Raises:
        ApiError: the API server refuses it.
    """
    await client.post(collection_path(obj), msgspec.json.encode(obj))


async def create_all(client: ApiClient, objects: Iterable[Json]) -> None:
    """Create objects, many at a time, in no particular order.

    Raises:
        ApiError: the API server refuses one; the others are not created.
    """
    remaining = iter(objects)

    async def work() -> None:
        for obj in remaining:
            await create(client, obj)

    try:
        async with asyncio.TaskGroup() as workers:
            for _ in range(_CONCURRENT_REQUESTS):
                workers.create_task(work())
    except ExceptionGroup as group:
        # All have one cause: the first error is enough.
        raise group.exceptions[0] from group
