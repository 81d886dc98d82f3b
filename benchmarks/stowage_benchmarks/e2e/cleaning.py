"""Deletes a benchmark's objects from an API server that others use too."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from stowage.api.decoding.decode import decode_list
from stowage.api.objects.node import Node
from stowage.api.objects.pod import Pod
from stowage.api.objects.volume import CSINode, PersistentVolume, PersistentVolumeClaim
from stowage.operator.client.api_client import LIST_TIMEOUT, ApiClient
from stowage.operator.client.api_error import ApiError
from stowage_benchmarks.e2e.scenarios import HIGH_PRIORITY, NAMESPACE

_VOLUME_PREFIXES = ("pv-pod-", "pv-init-")
_PREFIXES = ("pod-", "init-", "huge-", "churn-", "churned-")
_NODE_PREFIXES = ("node-", "churn-")
_NAMESPACED = f"/api/v1/namespaces/{NAMESPACE}"
_CLEANED: tuple[tuple[type[Any], str, tuple[str, ...]], ...] = (
    (Pod, f"{_NAMESPACED}/pods", _PREFIXES),
    (PersistentVolumeClaim, f"{_NAMESPACED}/persistentvolumeclaims", _PREFIXES),
    (PersistentVolume, "/api/v1/persistentvolumes", _VOLUME_PREFIXES),
    (CSINode, "/apis/storage.k8s.io/v1/csinodes", _NODE_PREFIXES),
    (Node, "/api/v1/nodes", _NODE_PREFIXES),
)
_AT_ONCE = msgspec.json.encode({"gracePeriodSeconds": 0})
_CONCURRENT_REQUESTS = 24


async def clean(client: ApiClient) -> None:
    """Delete objects with the name prefixes of a benchmark, pods first, and its PriorityClass.

    Raises:
        ApiError: the API server refuses to.
    """
    for kind, path, prefixes in _CLEANED:
        found = decode_list(kind, await client.get(path, timeout=LIST_TIMEOUT)).items
        names = [obj.metadata.name for obj in found if obj.metadata.name.startswith(prefixes)]
        await _delete_all(client, [f"{path}/{name}" for name in names])
    await _delete(client, f"/apis/scheduling.k8s.io/v1/priorityclasses/{HIGH_PRIORITY}")


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
