"""Creates and deletes nodes and pods while others are scheduled."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import msgspec

from simcluster.harness.apply import create
from simcluster.kubelet.nodes import bench_node
from stowage.operator.client.api_client import ApiClient
from stowage.operator.client.api_error import ApiError
from stowage_benchmarks.e2e.scenarios import NAMESPACE
from stowage_benchmarks.workloads import pending_pod

INTERVAL_S = 0.05
"""Seconds between two rounds.

Each round creates a node, a pending pod and a running pod, and deletes older ones.
"""

LIFETIME_ROUNDS = 10
_AT_ONCE = msgspec.json.encode({"gracePeriodSeconds": 0})


@asynccontextmanager
async def churning(client: ApiClient, scheduler_name: str) -> AsyncIterator[None]:
    """Create and delete objects for as long as the block lasts.

    Raises:
        ApiError: the API server refuses a request, unless the object is gone.
    """
    task = asyncio.create_task(_churn(client, scheduler_name))
    try:
        yield
        if task.done():
            task.result()
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _churn(client: ApiClient, scheduler_name: str) -> None:
    for turn in itertools.count():
        node = bench_node(turn)
        node["metadata"]["name"] = node_name = f"churn-{turn:06d}"
        # A measured pod bound to this node would be deleted with it.
        node["spec"] = {"taints": [{"key": "churn", "effect": "NoSchedule"}]}
        await create(client, node)
        for prefix, bound_to in (("churn-", ""), ("churned-", node_name)):
            pod = pending_pod("mixed", turn, scheduler_name)
            pod["metadata"]["name"] = f"{prefix}{turn:06d}"
            if bound_to:
                pod["spec"]["nodeName"] = bound_to
            await create(client, pod)
        if turn >= LIFETIME_ROUNDS:
            await _remove(client, turn - LIFETIME_ROUNDS)
        await asyncio.sleep(INTERVAL_S)


async def _remove(client: ApiClient, turn: int) -> None:
    pods = f"/api/v1/namespaces/{NAMESPACE}/pods"
    for path in (
        f"{pods}/churn-{turn:06d}",
        f"{pods}/churned-{turn:06d}",
        f"/api/v1/nodes/churn-{turn:06d}",
    ):
        try:
            await client.delete(path, _AT_ONCE)
        except ApiError as error:
            if error.status != 404:
                raise
