"""Takes a benchmark's objects away from an API server that others use too."""

from __future__ import annotations

import asyncio

import msgspec

from scheduler.api.decode import decode_list
from scheduler.api.node import Node
from scheduler.api.pod import Pod
from scheduler.cli.bench.scenarios import HIGH_PRIORITY, NAMESPACE
from scheduler.operator.api_client import LIST_TIMEOUT, ApiClient
from scheduler.operator.api_error import ApiError

_PREFIXES = ("pod-", "init-", "huge-", "churn-", "churned-")
_NODE_PREFIXES = ("node-", "churn-")
_AT_ONCE = msgspec.json.encode({"gracePeriodSeconds": 0})
_CONCURRENT_REQUESTS = 24


async def clean(client: ApiClient) -> None:
    """Delete the pods and nodes that carry a benchmark's names, and its priority class.

    Raises:
        ApiError: the API server refuses to.
    """
    pods_path = f"/api/v1/namespaces/{NAMESPACE}/pods"
    pods = decode_list(Pod, await client.get(pods_path, timeout=LIST_TIMEOUT)).items
    nodes = decode_list(Node, await client.get("/api/v1/nodes", timeout=LIST_TIMEOUT)).items
    pod_names = [pod.metadata.name for pod in pods if pod.metadata.name.startswith(_PREFIXES)]
    node_names = [
        node.metadata.name for node in nodes if node.metadata.name.startswith(_NODE_PREFIXES)
    ]
    await _delete_all(client, [f"{pods_path}/{name}" for name in pod_names])
    await _delete_all(client, [f"/api/v1/nodes/{name}" for name in node_names])
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
