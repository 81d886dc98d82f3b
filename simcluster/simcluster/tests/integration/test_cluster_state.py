"""Rollouts, drains and node failures with kubectl; clusters saved, dumped and loaded."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from simcluster import ClusterOptions, SimulatedCluster, run_cluster, sample_nodes
from simcluster.tests.support.api_client import PODS, ApiClient, eviction
from simcluster.tests.support.kubectl import (
    DEPLOYMENT,
    KUBECTL,
    WAIT,
    Kubectl,
    environment_for,
    kubectl_for,
)
from simcluster.tests.support.timeouts import WAIT_TIMEOUT_S, wait_until

pytestmark = pytest.mark.skipif(not KUBECTL.exists(), reason="kubectl is not installed")

Json = dict[str, Any]
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
STATEFUL_SETS = "/apis/apps/v1/namespaces/default/statefulsets"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
STATEFUL = Path(__file__).parents[1] / "data" / "stateful-with-volumes.yaml"


@pytest.fixture
async def cluster() -> AsyncIterator[SimulatedCluster]:
    """A cluster of four nodes with a short grace period for stopped nodes."""
    async with SimulatedCluster(sample_nodes(4), ClusterOptions(node_grace_s=0.1)) as running:
        yield running


@pytest.fixture
async def kubectl(cluster: SimulatedCluster, tmp_path: Path) -> Kubectl:
    """Kubectl for that cluster."""
    return kubectl_for(cluster, tmp_path)


async def bind_all_to_one_node(api: ApiClient) -> None:
    """A trivial scheduler: binds every pod to node-000 and selects it for every pending claim."""
    while True:
        for pod in (await api.get(PODS)).body["items"]:
            if pod["spec"].get("nodeName"):
                continue
            if await _select_node(api, pod):
                await api.bind(pod["metadata"]["name"], "node-000")
        await asyncio.sleep(0.02)


async def _select_node(api: ApiClient, pod: Json) -> bool:
    """Set the selected node of unbound claims; returns whether all claims of the pod are bound."""
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


async def _images_of_live_pods(kubectl: Kubectl) -> set[str]:
    """Images of pods that are not terminating; a rollout completes while old pods terminate."""
    pods = json.loads(await kubectl("get", "pods", "-o", "json"))["items"]
    return {
        container["image"]
        for pod in pods
        if "deletionTimestamp" not in pod["metadata"]
        for container in pod["spec"]["containers"]
    }


async def test_rollout_status_undo_and_restart_work(
    cluster: SimulatedCluster, kubectl: Kubectl
) -> None:
    async with ApiClient(cluster.url, "") as api:
        binding = asyncio.create_task(bind_all_to_one_node(api))
        await kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
        assert "successfully rolled out" in await kubectl("rollout", "status", "deployment/web")
        await kubectl("set", "image", "deployment/web", "server=registry.example/web:2")
        assert "successfully rolled out" in await kubectl("rollout", "status", "deployment/web")
        assert "rolled back" in await kubectl("rollout", "undo", "deployment/web")
        assert "successfully rolled out" in await kubectl("rollout", "status", "deployment/web")
        history = (await kubectl("rollout", "history", "deployment/web")).split("\n")
        assert [line.split()[0] for line in history[2:] if line.strip()] == ["2", "3"]
        assert await _images_of_live_pods(kubectl) == {"registry.example/web:1"}
        await kubectl("rollout", "restart", "deployment/web")
        assert "successfully rolled out" in await kubectl("rollout", "status", "deployment/web")
        binding.cancel()


async def test_a_stateful_set_with_volumes_runs_with_a_scheduler(
    cluster: SimulatedCluster, kubectl: Kubectl
) -> None:
    await kubectl("apply", "-f", str(STATEFUL))
    async with ApiClient(cluster.url, "") as api:
        binding = asyncio.create_task(bind_all_to_one_node(api))
        status = await kubectl("rollout", "status", "statefulset/ledger", WAIT)
        assert "partitioned roll out complete" in status or "rolling update complete" in status
        binding.cancel()
        claims = (await api.get(CLAIMS)).body["items"]
        assert {claim["status"]["phase"] for claim in claims} == {"Bound"}
        assert len(claims) == 2
    await kubectl("set", "image", "statefulset/ledger", "ledger=registry.example/ledger:2")
    async with asyncio.timeout(WAIT_TIMEOUT_S):
        # The controller makes the second revision in its own time.
        while await _num_revisions(kubectl, "statefulset/ledger") != 2:
            pass


async def _num_revisions(kubectl: Kubectl, what: str) -> int:
    history = await kubectl("rollout", "history", what)
    return len([line for line in history.splitlines()[2:] if line.strip()])


async def test_a_node_is_stopped_and_started_with_kubectl(
    cluster: SimulatedCluster, kubectl: Kubectl
) -> None:
    await kubectl("annotate", "node", "node-001", "stowage/node-state=stopped")
    await kubectl("wait", "--for=condition=Ready=unknown", "node/node-001", WAIT)
    assert "NotReady" in await kubectl("get", "node", "node-001")
    await kubectl("annotate", "node", "node-001", "stowage/node-state-")
    await kubectl("wait", "--for=condition=Ready", "node/node-001", WAIT)


@asynccontextmanager
async def _draining(cluster: SimulatedCluster, folder: Path) -> AsyncIterator[asyncio.StreamReader]:
    """Run `kubectl drain node-000` in the background; yields its output."""
    process = await asyncio.create_subprocess_exec(
        *(str(KUBECTL), "drain", "node-000", "--ignore-daemonsets"),
        env=environment_for(cluster, folder),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    assert process.stdout is not None
    try:
        yield process.stdout
    finally:
        process.kill()
        await process.communicate()


async def _pods_on(api: ApiClient, node_name: str) -> list[str]:
    pods = (await api.get(PODS)).body["items"]
    return [pod["metadata"]["name"] for pod in pods if pod["spec"].get("nodeName") == node_name]


async def test_a_drain_waits_for_the_disruption_budget(
    cluster: SimulatedCluster, kubectl: Kubectl, tmp_path: Path
) -> None:
    async with ApiClient(cluster.url, "") as api:
        binding = asyncio.create_task(bind_all_to_one_node(api))
        await kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
        await kubectl("rollout", "status", "deployment/web")
        await kubectl("create", "pdb", "web", "--selector=app=web", "--min-available=2")
        async with _draining(cluster, tmp_path) as said, asyncio.timeout(WAIT_TIMEOUT_S):
            while b"would violate the pod's disruption budget" not in await said.readline():
                assert not said.at_eof()
            assert len(await _pods_on(api, "node-000")) == 2
            binding.cancel()
            patch = '{"spec":{"minAvailable":1}}'
            await kubectl("patch", "pdb", "web", "--type=merge", "-p", patch)
            while len(left := await _pods_on(api, "node-000")) != 1:  # noqa: ASYNC110 - polled
                await asyncio.sleep(0.02)
        assert (await api.post(f"{PODS}/{left[0]}/eviction", eviction(left[0]))).status == 429


@pytest.mark.parametrize("form", ["json", "yaml"])
async def test_a_cluster_starts_from_the_output_of_kubectl_get(
    cluster: SimulatedCluster, kubectl: Kubectl, tmp_path: Path, form: str
) -> None:
    async with ApiClient(cluster.url, "") as api:
        binding = asyncio.create_task(bind_all_to_one_node(api))
        await kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
        await kubectl("rollout", "status", "deployment/web")
        binding.cancel()
    kinds, revision = "nodes,pods,deployments,replicasets", -1
    file = tmp_path / f"dump.{form}"
    # It reads one kind after the other.
    while revision != cluster.store.revision:
        revision = cluster.store.revision
        file.write_text(await kubectl("get", kinds, "-A", "-o", form))
    options = ClusterOptions(from_files=(file,))
    async with SimulatedCluster([], options) as copy:
        folder = tmp_path / "copy"
        folder.mkdir()
        printed = await kubectl_for(copy, folder)("get", kinds, "-A", "-o", form)
        assert _items(printed, form) == _items(file.read_text(), form)


def _items(text: str, form: str) -> list[Json]:
    document = json.loads(text) if form == "json" else yaml.safe_load(text)
    items: list[Json] = document["items"]
    return items


async def test_a_cluster_is_saved_on_a_signal_and_at_its_end_and_dumped_while_running(
    tmp_path: Path,
) -> None:
    saved, dumped = tmp_path / "saved.json", tmp_path / "dumped.json"
    kubeconfig = tmp_path / "kubeconfig"
    ready: asyncio.Future[SimulatedCluster] = asyncio.get_running_loop().create_future()
    running = asyncio.create_task(
        run_cluster(sample_nodes(2), ClusterOptions(), kubeconfig, ready.set_result, saved)
    )
    store, revision = (await asyncio.wait_for(ready, WAIT_TIMEOUT_S)).store, -1
    # Controllers may write between the two at the start.
    while revision != store.revision:
        revision = store.revision
        saved.unlink(missing_ok=True)
        signal.raise_signal(signal.SIGUSR1)
        await wait_until(saved.exists)
        await _dump(dumped, kubeconfig)
    assert dumped.read_bytes() == saved.read_bytes()
    saved.unlink()
    signal.raise_signal(signal.SIGTERM)
    await asyncio.wait_for(running, WAIT_TIMEOUT_S)
    assert saved.read_bytes() == dumped.read_bytes()


async def _dump(file: Path, kubeconfig: Path) -> None:
    command = [sys.executable, "-m", "stowage.cli", "dump", str(file)]
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig)}
    dump = await asyncio.create_subprocess_exec(*command, env=environment)
    assert await asyncio.wait_for(dump.wait(), WAIT_TIMEOUT_S) == 0
