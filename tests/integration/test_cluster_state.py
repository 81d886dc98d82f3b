"""kubectl on rollouts, drains and node failures; clusters saved, dumped and started from files."""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from scheduler.cluster import ClusterOptions, EmbeddedCluster, run_cluster, sample_nodes
from tests.integration.api_client import PODS, ApiClient
from tests.integration.test_kubectl import DEPLOYMENT, KUBECTL, Kubectl, kubectl_for

pytestmark = pytest.mark.skipif(not KUBECTL.exists(), reason="kubectl is not installed")

Json = dict[str, Any]
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
STATEFUL_SETS = "/apis/apps/v1/namespaces/default/statefulsets"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
STATEFUL = Path(__file__).parents[1] / "data" / "stateful-with-volumes.yaml"


@pytest.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    """Four nodes that are soon given up when they stop."""
    async with EmbeddedCluster(sample_nodes(4), ClusterOptions(node_grace_s=0.1)) as running:
        yield running


@pytest.fixture
async def kubectl(cluster: EmbeddedCluster, tmp_path: Path) -> Kubectl:
    """Kubectl for that cluster."""
    return kubectl_for(cluster, tmp_path)


async def bind_as_they_come(api: ApiClient) -> None:
    """A scheduler that needs no thought: every pod, and every claim that waits, to node-000."""
    while True:
        for pod in (await api.get(PODS)).body["items"]:
            if pod["spec"].get("nodeName"):
                continue
            if await _select_node(api, pod):
                await api.bind(pod["metadata"]["name"], "node-000")
        await asyncio.sleep(0.02)


async def _select_node(api: ApiClient, pod: Json) -> bool:
    """Annotate what is not bound yet; whether all claims of the pod are bound."""
    are_bound = True
    for volume in pod["spec"].get("volumes") or ():
        name = volume["persistentVolumeClaim"]["claimName"]
        claim = (await api.get(f"{CLAIMS}/{name}")).body
        if claim["status"]["phase"] == "Bound":
            continue
        are_bound = False
        annotations = {"volume.kubernetes.io/selected-node": "node-000"}
        patch = {"metadata": {"annotations": annotations}}
        await api.patch(f"{CLAIMS}/{name}", patch)
    return are_bound


async def _images_that_stay(kubectl: Kubectl) -> set[str]:
    """What the pods run that are not being deleted: a rollout ends before its old pods have."""
    pods = json.loads(await kubectl("get", "pods", "-o", "json"))["items"]
    return {
        container["image"]
        for pod in pods
        if "deletionTimestamp" not in pod["metadata"]
        for container in pod["spec"]["containers"]
    }


async def test_rollouts_are_followed_undone_and_restarted(
    cluster: EmbeddedCluster, kubectl: Kubectl
) -> None:
    async with ApiClient(cluster.url, "") as api:
        binding = asyncio.create_task(bind_as_they_come(api))
        await kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
        assert "successfully rolled out" in await kubectl("rollout", "status", "deployment/web")
        await kubectl("set", "image", "deployment/web", "server=registry.example/web:2")
        assert "successfully rolled out" in await kubectl("rollout", "status", "deployment/web")
        assert "rolled back" in await kubectl("rollout", "undo", "deployment/web")
        assert "successfully rolled out" in await kubectl("rollout", "status", "deployment/web")
        history = (await kubectl("rollout", "history", "deployment/web")).split("\n")
        assert [line.split()[0] for line in history[2:] if line.strip()] == ["2", "3"]
        assert await _images_that_stay(kubectl) == {"registry.example/web:1"}
        await kubectl("rollout", "restart", "deployment/web")
        assert "successfully rolled out" in await kubectl("rollout", "status", "deployment/web")
        binding.cancel()


async def test_a_stateful_set_with_volumes_runs_once_a_scheduler_does_its_part(
    cluster: EmbeddedCluster, kubectl: Kubectl
) -> None:
    await kubectl("apply", "-f", str(STATEFUL))
    async with ApiClient(cluster.url, "") as api:
        binding = asyncio.create_task(bind_as_they_come(api))
        status = await kubectl("rollout", "status", "statefulset/ledger", "--timeout=20s")
        assert "partitioned roll out complete" in status or "rolling update complete" in status
        binding.cancel()
        claims = (await api.get(CLAIMS)).body["items"]
        assert {claim["status"]["phase"] for claim in claims} == {"Bound"}
        assert len(claims) == 2
    await kubectl("set", "image", "statefulset/ledger", "ledger=registry.example/ledger:2")
    history = await kubectl("rollout", "history", "statefulset/ledger")
    assert len([line for line in history.splitlines()[2:] if line.strip()]) == 2


async def test_a_node_is_stopped_and_started_with_kubectl(
    cluster: EmbeddedCluster, kubectl: Kubectl
) -> None:
    await kubectl("annotate", "node", "node-001", "stowage/node-state=stopped")
    await kubectl("wait", "--for=condition=Ready=unknown", "node/node-001", "--timeout=10s")
    assert "NotReady" in await kubectl("get", "node", "node-001")
    await kubectl("annotate", "node", "node-001", "stowage/node-state-")
    await kubectl("wait", "--for=condition=Ready", "node/node-001", "--timeout=10s")


async def test_a_drain_waits_for_the_budget(cluster: EmbeddedCluster, kubectl: Kubectl) -> None:
    async with ApiClient(cluster.url, "") as api:
        binding = asyncio.create_task(bind_as_they_come(api))
        await kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
        await kubectl("rollout", "status", "deployment/web")
        await kubectl("create", "pdb", "web", "--selector=app=web", "--min-available=2")
        drain = ("drain", "node-000", "--ignore-daemonsets", "--timeout=1s")
        refused = await kubectl(*drain, succeeds=False)
        assert "would violate the pod's disruption budget" in refused
        await kubectl("patch", "pdb", "web", "--type=merge", "-p", '{"spec":{"minAvailable":1}}')
        binding.cancel()
        await kubectl("drain", "node-000", "--ignore-daemonsets", "--timeout=2s", succeeds=False)
        placed = [pod["spec"].get("nodeName") for pod in (await api.get(PODS)).body["items"]]
        assert placed.count("node-000") == 1


@pytest.mark.parametrize("form", ["json", "yaml"])
async def test_a_cluster_starts_from_what_kubectl_printed(
    cluster: EmbeddedCluster, kubectl: Kubectl, tmp_path: Path, form: str
) -> None:
    async with ApiClient(cluster.url, "") as api:
        binding = asyncio.create_task(bind_as_they_come(api))
        await kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
        await kubectl("rollout", "status", "deployment/web")
        binding.cancel()
    kinds = "nodes,pods,deployments,replicasets"
    file = tmp_path / f"dump.{form}"
    file.write_text(await kubectl("get", kinds, "-A", "-o", form))
    options = ClusterOptions(from_files=(file,))
    async with EmbeddedCluster([], options) as copy:
        folder = tmp_path / "copy"
        folder.mkdir()
        printed = await kubectl_for(copy, folder)("get", kinds, "-A", "-o", form)
        assert _items(printed, form) == _items(file.read_text(), form)


def _items(text: str, form: str) -> list[Json]:
    document = json.loads(text) if form == "json" else yaml.safe_load(text)
    items: list[Json] = document["items"]
    return items


async def test_a_cluster_is_saved_on_a_signal_at_its_end_and_dumped_while_it_runs(
    tmp_path: Path,
) -> None:
    saved, dumped = tmp_path / "saved.json", tmp_path / "dumped.json"
    kubeconfig = tmp_path / "kubeconfig"
    ready = asyncio.Event()
    running = asyncio.create_task(
        run_cluster(
            sample_nodes(2), ClusterOptions(), kubeconfig, lambda _cluster: ready.set(), saved
        )
    )
    await asyncio.wait_for(ready.wait(), 10)
    await asyncio.sleep(0)
    signal.raise_signal(signal.SIGUSR1)
    async with asyncio.timeout(10):
        while not saved.exists():  # noqa: ASYNC110 - a file tells nobody
            await asyncio.sleep(0.01)
    command = [sys.executable, "-m", "scheduler.cli", "dump", str(dumped)]
    dump = await asyncio.create_subprocess_exec(*command, "--kubeconfig", str(kubeconfig))
    assert await asyncio.wait_for(dump.wait(), 30) == 0
    assert dumped.read_bytes() == saved.read_bytes()
    saved.unlink()
    signal.raise_signal(signal.SIGTERM)
    await asyncio.wait_for(running, 10)
    assert saved.read_bytes() == dumped.read_bytes()
