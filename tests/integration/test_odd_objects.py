"""Objects nobody means to send, over HTTP to a cluster with a running scheduler."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from simcluster import SimulatedCluster, make_node
from simcluster.apiserver.errors import ApiError
from simcluster.kinds.resources import NODES, PODS
from simcluster.tests.support.api_client import PODS as PODS_PATH
from simcluster.tests.support.api_client import ApiClient
from simcluster.tests.support.timeouts import WAIT_TIMEOUT_S
from tests.fuzz.objects import odd_object
from tests.support.integration.auditor import node_of
from tests.support.integration.full_cluster import CAPACITY, FullCluster, full_cluster, small_pod
from tests.support.integration.running_scheduler import running_scheduler

NUM_OBJECTS = 300


async def test_odd_objects_leave_other_pods_alone(tmp_path: Path) -> None:
    """They go past the server's admission, as if an older or another server had let them in."""
    async with (
        full_cluster(tmp_path / "kubeconfig") as troubled,
        running_scheduler(troubled.kubeconfig) as scheduler,
    ):
        rng = Random(11)
        num_stored = sum(_store(troubled, rng, number) for number in range(NUM_OBJECTS))
        assert num_stored > NUM_OBJECTS / 3
        troubled.add_node(900, sane="yes")
        uid = troubled.create(small_pod("sane", nodeSelector={"sane": "yes"}))
        await troubled.auditor.until(
            lambda: bool(node_of(troubled.auditor.pods[uid])), "the sane pod bound"
        )
        scheduler.engine.validate()


async def test_a_pod_of_a_megabyte_is_bound_over_http(tmp_path: Path) -> None:
    async with (
        full_cluster(tmp_path / "kubeconfig", num_nodes=3) as troubled,
        running_scheduler(troubled.kubeconfig),
    ):
        large = small_pod("large")
        large["metadata"]["annotations"] = {"note": "x" * (200 * 1024)}
        large["spec"]["containers"] *= 1
        large["spec"]["containers"] += [
            {"name": f"c{number}", "image": "i" * 100} for number in range(7_000)
        ]
        assert len(msgspec.json.encode(large)) > 2**20
        uids = [troubled.create(large), troubled.create(small_pod("small"))]
        await troubled.auditor.until(
            lambda: all(node_of(troubled.auditor.pods[uid]) for uid in uids), "both bound"
        )


@pytest.mark.parametrize("policy", ["Background", "Foreground", "Orphan"])
async def test_pods_that_own_each_other_are_bound_and_can_be_deleted(
    tmp_path: Path, policy: str
) -> None:
    async with (
        SimulatedCluster([make_node("n0", dict(CAPACITY))]) as cluster,
        ApiClient(cluster.url, "") as api,
        running_scheduler(cluster.write_kubeconfig(tmp_path / "kubeconfig")),
    ):
        made = [await api.create(PODS_PATH, small_pod(name)) for name in "abc"]
        uids = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in made}
        for name, owner in (("a", "b"), ("b", "a"), ("c", "c")):
            reference = {"apiVersion": "v1", "kind": "Pod", "name": owner, "uid": uids[owner]}
            reference["blockOwnerDeletion"] = True
            await api.patch(f"{PODS_PATH}/{name}", {"metadata": {"ownerReferences": [reference]}})

        async def are(condition: Callable[[list[Any]], bool]) -> None:
            async with asyncio.timeout(WAIT_TIMEOUT_S):
                while not condition((await api.get(PODS_PATH)).body["items"]):  # noqa: ASYNC110
                    await asyncio.sleep(0.05)

        await are(lambda pods: len(pods) == 3 and all(node_of(pod) for pod in pods))
        for name in "ac":
            options = {"propagationPolicy": policy, "gracePeriodSeconds": 0}
            await api.delete(f"{PODS_PATH}/{name}", options)
        left = 1 if policy == "Orphan" else 0
        await are(lambda pods: len(pods) == left)


def _store(troubled: FullCluster, rng: Random, number: int) -> bool:
    """Put an odd pod or node into the store, where it can be kept there at all."""
    kind, data = odd_object(rng)
    try:
        odd: Any = msgspec.json.decode(data)
        odd["metadata"] |= {"name": f"odd-{number}", "uid": f"odd-{number}"}
        odd["spec"]["schedulerName"] = "stowage"
        resource = {"Pod": PODS, "Node": NODES}[kind]
        if kind == "Pod":
            odd["metadata"]["namespace"] = "default"
        odd |= {"apiVersion": "v1", "kind": kind}
        troubled.cluster.registry.store.put(resource.stored_in, odd)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, ApiError):
        return False
    return True
