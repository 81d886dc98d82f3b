"""Deletes a benchmark's objects from an API server that others use too."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from stowage.api.decoding.decode import decode_list
from stowage.api.objects.device import ResourceClaim, ResourceSlice
from stowage.api.objects.node import Node
from stowage.api.objects.pod import Pod
from stowage.api.objects.pod_groups import PodGroup
from stowage.api.objects.volume import CSINode, PersistentVolume, PersistentVolumeClaim
from stowage.operator.client.api_client import LIST_TIMEOUT, ApiClient
from stowage.operator.client.api_error import ApiError
from stowage_benchmarks.devices import CLASS, TEMPLATE
from stowage_benchmarks.e2e.scenarios import GANG_PREFIX, HIGH_PRIORITY, NAMESPACE

_VOLUME_PREFIXES = ("pv-pod-", "pv-init-")
_PREFIXES = ("pod-", "init-", "huge-", "churn-", "churned-")
_NODE_PREFIXES = ("node-", "churn-")
_DEVICES = "/apis/resource.k8s.io/v1"
_NAMESPACED = f"/api/v1/namespaces/{NAMESPACE}"
_CLEANED: tuple[tuple[type[Any], str, tuple[str, ...]], ...] = (
    (Pod, f"{_NAMESPACED}/pods", _PREFIXES),
    (PersistentVolumeClaim, f"{_NAMESPACED}/persistentvolumeclaims", _PREFIXES),
    (PersistentVolume, "/api/v1/persistentvolumes", _VOLUME_PREFIXES),
    (ResourceClaim, f"{_DEVICES}/namespaces/{NAMESPACE}/resourceclaims", _PREFIXES),
    (ResourceSlice, f"{_DEVICES}/resourceslices", _NODE_PREFIXES),
    (CSINode, "/apis/storage.k8s.io/v1/csinodes", _NODE_PREFIXES),
    (Node, "/api/v1/nodes", _NODE_PREFIXES),
)
_POD_GROUPS = f"/apis/scheduling.k8s.io/v1alpha2/namespaces/{NAMESPACE}/podgroups"
_WITHOUT_FINALIZERS = b'{"metadata":{"finalizers":null}}'
_AT_ONCE = msgspec.json.encode({"gracePeriodSeconds": 0})
_CONCURRENT_REQUESTS = 24


async def clean(client: ApiClient) -> None:
    """Delete objects with the name prefixes of a benchmark, pods first, and what the scenarios add.

    Raises:
        ApiError: the API server refuses to.
    """
    for kind, path, prefixes in _CLEANED:
        found = decode_list(kind, await client.get(path, timeout=LIST_TIMEOUT)).items
        names = [obj.metadata.name for obj in found if obj.metadata.name.startswith(prefixes)]
        await _delete_all(client, [f"{path}/{name}" for name in names])
    for path in (
        f"/apis/scheduling.k8s.io/v1/priorityclasses/{HIGH_PRIORITY}",
        f"{_DEVICES}/deviceclasses/{CLASS}",
        f"{_DEVICES}/namespaces/{NAMESPACE}/resourceclaimtemplates/{TEMPLATE}",
    ):
        await _delete(client, path)
    await _delete_pod_groups(client)


async def _delete_pod_groups(client: ApiClient) -> None:
    """Delete the groups of gangs, if the server serves them; it may have no controller for that."""
    try:
        listed = await client.get(_POD_GROUPS, timeout=LIST_TIMEOUT)
    except ApiError as error:
        if error.status == 404:
            return
        raise
    for group in decode_list(PodGroup, listed).items:
        if group.metadata.name.startswith(GANG_PREFIX):
            path = f"{_POD_GROUPS}/{group.metadata.name}"
            await client.patch(path, _WITHOUT_FINALIZERS)
            await _delete(client, path)


async def _delete_all(client: ApiClient, paths: list[str]) -> None:
    remaining = iter(paths)

    async def work() -> None:
        for path in remaining:
            await _delete(client, path)

    async with asyncio.TaskGroup() as workers:
        for _ in range(_CONCURRENT_REQUESTS):
            workers.create_task(work())


async def _delete(client: ApiClient, path: str) -> None:
    try:
        await client.delete(path, _AT_ONCE)
    except ApiError as error:
        if error.status != 404:
            raise
