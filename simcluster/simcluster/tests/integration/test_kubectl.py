"""kubectl against the simulated cluster, with the kinds of the demo."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from simcluster import ClusterOptions, SimulatedCluster, sample_nodes
from simcluster.tests.support.api_client import PODS, ApiClient, node, pod, until
from simcluster.tests.support.api_servers import self_signed_certificate
from simcluster.tests.support.kubectl import (
    DEPLOYMENT,
    KUBECTL,
    WAIT,
    Kubectl,
    kubectl_for,
)
from simcluster.tests.support.timeouts import WAIT_TIMEOUT_S

pytestmark = pytest.mark.skipif(not KUBECTL.exists(), reason="kubectl is not installed")

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: batch}
spec:
  completions: 3
  parallelism: 3
  template:
    spec:
      restartPolicy: Never
      containers: [{name: c, image: "registry.example/batch:1"}]
"""
GPU_CLAIM = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one-gpu}
spec:
  spec:
    devices:
      requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com}}]
---
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 0
  containers: [{name: c, image: "registry.example/c:1"}]
  resourceClaims: [{name: gpu, resourceClaimTemplateName: one-gpu}]
"""


@pytest.fixture
async def cluster() -> AsyncIterator[SimulatedCluster]:
    """Ten sample nodes."""
    async with SimulatedCluster(sample_nodes(10)) as running:
        yield running


@pytest.fixture
def kubectl(cluster: SimulatedCluster, tmp_path: Path) -> Kubectl:
    """Kubectl for that cluster."""
    return kubectl_for(cluster, tmp_path)


async def test_get_shows_nodes_as_columns(kubectl: Kubectl) -> None:
    lines = (await kubectl("get", "nodes", "-o", "wide")).splitlines()
    assert lines[0].split()[:6] == ["NAME", "STATUS", "ROLES", "AGE", "VERSION", "INTERNAL-IP"]
    assert lines[1].split()[:3] == ["node-000", "Ready", "<none>"]
    assert len(lines) == 11


async def test_create_get_describe_and_delete_a_pod(kubectl: Kubectl) -> None:
    manifest = yaml.safe_dump(pod("one"))
    assert await kubectl("create", "-f", "-", stdin=manifest) == "pod/one created\n"
    again = await kubectl("create", "-f", "-", stdin=manifest, succeeds=False)
    assert '(AlreadyExists): error when creating "STDIN": pods "one" already exists' in again
    assert (await kubectl("get", "pod", "one", "-o", "jsonpath={.status.phase}")) == "Pending"
    described = await kubectl("describe", "pod", "one")
    assert "Node:         <none>" in described
    assert "QoS Class:        BestEffort" in described
    assert await kubectl("delete", "pod", "one") == 'pod "one" deleted from default namespace\n'
    missing = await kubectl("get", "pod", "one", succeeds=False)
    assert missing == 'Error from server (NotFound): pods "one" not found\n'


async def test_apply_creates_changes_and_leaves_objects_unchanged(kubectl: Kubectl) -> None:
    assert "created" in await kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
    assert "unchanged" in await kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
    changed = DEPLOYMENT.replace("web:1", "web:2").replace("replicas: 2", "replicas: 1")
    assert "configured" in await kubectl("apply", "-f", "-", stdin=changed)
    path = "jsonpath={.spec.replicas} {.spec.template.spec.containers[*].image}"
    assert await kubectl("get", "deploy", "web", "-o", path) == "1 registry.example/web:2"


async def test_workloads_are_scaled_rolled_out_and_shown_wide(
    kubectl: Kubectl, cluster: SimulatedCluster
) -> None:
    await kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
    assert "scaled" in await kubectl("scale", "deployment/web", "--replicas=1")
    async with ApiClient(cluster.url, "") as api:
        await api.bind(await the_only_pod(api), "node-000")
    assert "successfully rolled out" in await kubectl("rollout", "status", "deployment/web")
    wide = (await kubectl("get", "deploy", "-o", "wide")).splitlines()[1].split()
    assert (wide[0], wide[1], wide[-1]) == ("web", "1/1", "app=web")
    running = (await kubectl("get", "pods", "-o", "wide")).splitlines()[1].split()
    assert running[1:3] == ["1/1", "Running"]
    assert running[6] == "node-000"
    described = await kubectl("describe", "deployment", "web")
    assert "1 desired | 1 updated | 1 total | 1 available" in described


async def the_only_pod(api: ApiClient) -> str:
    """Wait until one pod is left; returns its name."""
    async with asyncio.timeout(WAIT_TIMEOUT_S):
        while True:
            deployment = (await api.get(DEPLOYMENTS)).body["items"][0]
            pods = (await api.get(PODS)).body["items"]
            is_seen = deployment["status"].get("observedGeneration") == 2
            if is_seen and deployment["status"].get("replicas") == 1 == len(pods):
                return str(pods[0]["metadata"]["name"])
            await asyncio.sleep(0.02)


async def test_jobs_replica_sets_and_config_maps_are_listed(kubectl: Kubectl) -> None:
    await kubectl("apply", "-f", "-", stdin=JOB)
    await kubectl("create", "configmap", "settings", "--from-literal=a=b")
    await kubectl("wait", "--for=jsonpath={.status.active}=3", "job/batch", WAIT)
    job = (await kubectl("get", "jobs")).splitlines()
    assert job[0].split() == ["NAME", "STATUS", "COMPLETIONS", "DURATION", "AGE"]
    assert job[1].split()[:3] == ["batch", "Running", "0/3"]
    assert (await kubectl("get", "cm")).splitlines()[1].split()[:2] == ["settings", "1"]
    everything = await kubectl("get", "all")
    assert everything.count("pod/batch-") == 3
    assert "job.batch/batch" in everything


async def test_create_subcommands_work(kubectl: Kubectl) -> None:
    await kubectl("create", "namespace", "team")
    await kubectl("create", "deployment", "web", "--image=x:1", "--replicas=2", "-n", "team")
    await kubectl("create", "pdb", "web", "--selector=app=web", "--min-available=1", "-n", "team")
    await kubectl("create", "priorityclass", "high", "--value=1000")
    pdb = (await kubectl("get", "pdb", "-n", "team")).splitlines()[1].split()
    assert pdb[:3] == ["web", "1", "N/A"]
    assert "1000" in await kubectl("get", "priorityclass", "high")
    assert await kubectl("auth", "can-i", "create", "pods") == "yes\n"
    assert "deleted" in await kubectl("delete", "namespace", "team")


async def test_nodes_are_cordoned_labelled_tainted_and_drained(
    kubectl: Kubectl, cluster: SimulatedCluster
) -> None:
    await kubectl("create", "-f", "-", stdin=yaml.safe_dump(pod("one")))
    async with ApiClient(cluster.url, "") as api:
        await api.bind("one", "node-001")
        await until(api, PODS, "one", lambda found: found["status"]["phase"] == "Running")
    await kubectl("label", "node", "node-001", "disk=nvme", "--overwrite")
    await kubectl("taint", "node", "node-001", "x=y:NoSchedule")
    drained = await kubectl("drain", "node-001", "--force")
    assert "pod/one evicted" in drained
    assert "SchedulingDisabled" in await kubectl("get", "node", "node-001")
    described = await kubectl("describe", "node", "node-001")
    assert "x=y:NoSchedule" in described
    assert "disk=nvme" in described
    await kubectl("uncordon", "node-001")


async def test_events_are_shown_in_their_core_v1_form(
    kubectl: Kubectl, cluster: SimulatedCluster
) -> None:
    event: dict[str, Any] = {
        "metadata": {"name": "one.1"},
        "eventTime": "2026-01-02T03:04:05.000006Z",
        "reportingController": "stowage",
        "reportingInstance": "stowage-1",
        "action": "Scheduling",
        "reason": "FailedScheduling",
        "type": "Warning",
        "note": "0/10 nodes are available",
        "regarding": {"apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": "one"},
    }
    async with ApiClient(cluster.url, "") as api:
        created = await api.create(PODS, pod("one"))
        event["regarding"]["uid"] = created["metadata"]["uid"]
        await api.create("/apis/events.k8s.io/v1/namespaces/default/events", event)
    lines = (await kubectl("get", "events")).splitlines()
    assert lines[0].split() == ["LAST", "SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]
    assert "FailedScheduling" in lines[1]
    assert "pod/one" in lines[1]
    assert "0/10 nodes are available" in await kubectl("describe", "pod", "one")


async def test_wait_patch_and_server_dry_run_work(kubectl: Kubectl) -> None:
    assert "condition met" in await kubectl("wait", "--for=condition=Ready", "node/node-000", WAIT)
    manifest = yaml.safe_dump(node("imagined"))
    await kubectl("create", "-f", "-", "--dry-run=server", stdin=manifest)
    assert "NotFound" in await kubectl("get", "node", "imagined", succeeds=False)
    await kubectl("patch", "node", "node-000", "-p", '{"metadata":{"labels":{"a":"b"}}}')
    assert "node-000" in await kubectl("get", "nodes", "-l", "a=b")


async def test_kubectl_needs_the_token_of_a_server_with_tokens(tmp_path: Path) -> None:
    """Kubectl sends tokens over TLS only."""
    certificate, key = self_signed_certificate(tmp_path)
    options = ClusterOptions(token="secret", cert_file=certificate, key_file=key)
    async with SimulatedCluster(sample_nodes(1), options) as cluster:
        run = kubectl_for(cluster, tmp_path)
        assert "node-000" in await run("get", "nodes")
        refused = await run("--token=wrong", "get", "nodes", succeeds=False)
    assert "must be logged in" in refused


async def test_a_pod_runs_with_a_device_until_both_are_deleted(
    kubectl: Kubectl, cluster: SimulatedCluster
) -> None:
    devices = '[{"driver": "gpu.example.com", "count": 1}]'
    await kubectl("annotate", "node", "node-000", f"stowage/devices={devices}")
    await kubectl("wait", "resourceslice/node-000-gpu.example.com-0", "--for=create", WAIT)
    table = await kubectl("get", "resourceslices", "--field-selector=spec.nodeName=node-000")
    assert table.splitlines()[0].split() == ["NAME", "NODE", "DRIVER", "POOL", "AGE"]
    assert table.splitlines()[1].split()[1:4] == ["node-000", "gpu.example.com", "node-000"]
    await kubectl("apply", "-f", "-", stdin=GPU_CLAIM)
    await kubectl("wait", "pod/p", "--for=jsonpath={.status.resourceClaimStatuses}", WAIT)
    path = "jsonpath={.status.resourceClaimStatuses[0].resourceClaimName} {.metadata.uid}"
    claim, uid = (await kubectl("get", "pod", "p", "-o", path)).split()
    assert (await kubectl("get", "resourceclaims")).splitlines()[1].split()[:2] == [
        claim,
        "pending",
    ]
    result = {"driver": "gpu.example.com", "pool": "node-000", "device": "device-0"}
    status = {
        "allocation": {"devices": {"results": [{"request": "gpu", **result}]}},
        "reservedFor": [{"resource": "pods", "name": "p", "uid": uid}],
    }
    patch = json.dumps({"status": status})
    patched = ("resourceclaim", claim, "--subresource=status", "--type=merge", "-p", patch)
    await kubectl("patch", *patched)
    states = (await kubectl("get", "resourceclaims")).splitlines()[1].split()[1]
    assert states == "allocated,reserved"
    async with ApiClient(cluster.url, "") as api:
        await api.bind("p", "node-000")
    await kubectl("wait", "pod/p", "--for=jsonpath={.status.phase}=Running", WAIT)
    await kubectl("delete", "pod", "p")
    await kubectl("wait", f"resourceclaim/{claim}", "--for=delete", WAIT)


async def test_explain_describes_the_fields_of_claims(kubectl: Kubectl) -> None:
    shown = await kubectl("explain", "resourceclaim.spec.devices.requests.exactly.count")
    assert "FIELD: count <integer>" in shown
    shown = await kubectl("explain", "resourceslice.spec.devices.consumesCounters")
    assert "DeviceCounterConsumption" in shown
