"""The simulated cluster runs pods that are bound to its nodes, or refuses them."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import kubernetes.aio as kubernetes
import pytest
from kubernetes.aio.config import load_kube_config

from simcluster import ClusterOptions, KubeletOptions, SimulatedCluster, make_node, run_cluster
from simcluster.tests.support.api_client import (
    BUDGETS,
    NODES,
    PODS,
    ApiClient,
    eviction,
    expect_gone,
    node,
    pod,
    until,
)
from simcluster.tests.support.api_servers import self_signed_certificate

Json = dict[str, Any]

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
REPLICA_SETS = "/apis/apps/v1/namespaces/default/replicasets"
JOBS = "/apis/batch/v1/namespaces/default/jobs"


@pytest.fixture
async def cluster() -> AsyncIterator[SimulatedCluster]:
    """A simulated cluster with one node of 2 CPUs and 3 pods."""
    capacity = {"cpu": "2", "memory": "4Gi", "pods": "3", "example.com/gpu": "1"}
    options = ClusterOptions(kubelet=KubeletOptions(job_run_s=0.01, stop_s=0.01))
    async with SimulatedCluster([make_node("n", capacity)], options) as running:
        yield running


@pytest.fixture
async def api(cluster: SimulatedCluster) -> AsyncIterator[ApiClient]:
    """A client of that cluster."""
    async with ApiClient(cluster.url, "") as client:
        yield client


def pod_requesting(name: str, requests: dict[str, str]) -> Json:
    """A pod whose limits equal its requests."""
    resources = {"requests": requests, "limits": requests}
    return pod(name, containers=[{"name": "c", "image": "x:1", "resources": resources}])


def has_phase(phase: str) -> Any:
    return lambda found: found["status"].get("phase") == phase


async def bound(api: ApiClient, body: Json, node_name: str = "n") -> str:
    name: str = body["metadata"]["name"]
    await api.create(PODS, body)
    assert (await api.bind(name, node_name)).status == 201
    return name


async def test_a_bound_pod_runs(api: ApiClient) -> None:
    name = await bound(api, pod())
    running = await until(api, PODS, name, has_phase("Running"))
    conditions = {c["type"]: c["status"] for c in running["status"]["conditions"]}
    assert conditions["Ready"] == conditions["PodScheduled"] == "True"
    assert running["status"]["containerStatuses"][0]["ready"]
    assert running["status"]["podIP"]


@pytest.mark.parametrize(
    ("resource", "asked", "shortage"),
    [
        ("cpu", "1500m", "requested: 1500, used: 1500, capacity: 2000"),
        ("memory", "3Gi", "requested: 3221225472, used: 3221225472, capacity: 4294967296"),
        ("example.com/gpu", "1", "requested: 1, used: 1, capacity: 1"),
    ],
)
async def test_a_pod_that_does_not_fit_its_node_is_refused(
    api: ApiClient, resource: str, asked: str, shortage: str
) -> None:
    for name in "ab":
        await bound(api, pod_requesting(name, {resource: asked}))
    status = (await until(api, PODS, "b", has_phase("Failed")))["status"]
    message = f"Pod was rejected: Node didn't have enough resource: {resource}, {shortage}"
    assert (status["reason"], status["message"]) == (f"OutOf{resource}", message)
    await until(api, PODS, "a", has_phase("Running"))


async def test_a_node_refuses_pods_above_its_pod_capacity(api: ApiClient) -> None:
    for name in "abc":
        await bound(api, pod(name))
    await bound(api, pod("d"))
    refused = await until(api, PODS, "d", has_phase("Failed"))
    assert refused["status"]["reason"] == "OutOfpods"


async def test_a_finished_or_deleted_pod_releases_its_resources(api: ApiClient) -> None:
    await bound(api, pod_requesting("a", {"cpu": "2"}))
    await until(api, PODS, "a", has_phase("Running"))
    async with expect_gone(api, PODS, "a"):
        await api.delete(f"{PODS}/a")
    await bound(api, pod_requesting("b", {"cpu": "2"}))
    await until(api, PODS, "b", has_phase("Running"))


async def test_a_pod_bound_against_its_affinity_is_refused(api: ApiClient) -> None:
    await bound(api, pod(nodeSelector={"disk": "ssd"}))
    refused = await until(api, PODS, "a", has_phase("Failed"))
    assert refused["status"]["reason"] == "NodeAffinity"


async def test_two_pods_cannot_have_the_same_host_port(api: ApiClient) -> None:
    ports = [{"containerPort": 80, "hostPort": 80}]
    for name in "ab":
        container = {"name": "c", "image": "x:1", "ports": ports}
        await bound(api, pod(name, containers=[container]))
    refused = await until(api, PODS, "b", has_phase("Failed"))
    assert refused["status"]["reason"] == "NodePorts"


async def test_a_pod_bound_to_a_missing_node_starts_when_the_node_is_created(
    api: ApiClient,
) -> None:
    await bound(api, pod(), "late")
    await api.create(NODES, node("late"))
    await until(api, PODS, "a", has_phase("Running"))


async def test_a_pod_ends_after_its_annotated_run_time(api: ApiClient) -> None:
    body = pod(restartPolicy="Never")
    body["metadata"]["annotations"] = {"stowage/run-seconds": "0.01"}
    await bound(api, body)
    ended = await until(api, PODS, "a", has_phase("Succeeded"))
    assert ended["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 0


async def test_deleting_a_node_deletes_its_pods(api: ApiClient) -> None:
    await bound(api, pod())
    await until(api, PODS, "a", has_phase("Running"))
    async with expect_gone(api, PODS, "a"):
        await api.delete(f"{NODES}/n")


async def test_a_new_node_loses_its_taint_once_it_is_ready(api: ApiClient) -> None:
    created = await api.create(NODES, node("new"))
    assert created["spec"]["taints"][0]["key"] == "node.kubernetes.io/not-ready"
    await until(api, NODES, "new", lambda found: "taints" not in found["spec"])


def deployment(replicas: int, image: str = "x:1") -> Json:
    labels = {"app": "web"}
    container = {"name": "c", "image": image}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"metadata": {"name": "web"}, "spec": spec}


async def _bind_everything(api: ApiClient) -> None:
    """A scheduler for one node."""
    async with api.watch(PODS, "fieldSelector=spec.nodeName=") as watch:
        while True:
            event = await watch.next()
            if event["type"] == "ADDED":
                await api.bind(event["object"]["metadata"]["name"], "big")


async def test_a_deployment_is_rolled_out_to_a_new_template(
    cluster: SimulatedCluster, api: ApiClient
) -> None:
    cluster.add_nodes([make_node("big", {"cpu": "64", "memory": "64Gi", "pods": "110"})])
    scheduler = asyncio.create_task(_bind_everything(api))
    await api.create(DEPLOYMENTS, deployment(3))
    await until(
        api, DEPLOYMENTS, "web", lambda found: found["status"].get("availableReplicas") == 3
    )
    change = deployment(2, image="x:2")["spec"]
    await api.patch(f"{DEPLOYMENTS}/web", {"spec": change})

    def is_done(found: Json) -> bool:
        status = found["status"]
        counts = [status.get(key) for key in ("replicas", "updatedReplicas", "availableReplicas")]
        is_seen = status.get("observedGeneration") == found["metadata"]["generation"]
        return counts == [2, 2, 2] and is_seen

    await until(api, DEPLOYMENTS, "web", is_done)
    scheduler.cancel()
    sizes = [rs["spec"]["replicas"] for rs in (await api.get(REPLICA_SETS)).body["items"]]
    assert sorted(sizes) == [0, 2]
    images = {p["spec"]["containers"][0]["image"] for p in (await api.get(PODS)).body["items"]}
    assert "x:2" in images


async def test_deleting_a_deployment_deletes_its_objects(api: ApiClient) -> None:
    await api.create(DEPLOYMENTS, deployment(2))
    await until(api, DEPLOYMENTS, "web", lambda found: found["status"].get("replicas") == 2)
    names = [found["metadata"]["name"] for found in (await api.get(PODS)).body["items"]]
    async with expect_gone(api, PODS, names[0]), expect_gone(api, PODS, names[1]):
        await api.delete(f"{DEPLOYMENTS}/web", {"propagationPolicy": "Background"})
    assert (await api.get(REPLICA_SETS)).body["items"] == []


async def test_orphaned_pods_are_not_deleted(api: ApiClient) -> None:
    await api.create(DEPLOYMENTS, deployment(1))
    await until(api, DEPLOYMENTS, "web", lambda found: found["status"].get("replicas") == 1)
    (replica_set,) = (await api.get(REPLICA_SETS)).body["items"]
    name = replica_set["metadata"]["name"]
    async with expect_gone(api, DEPLOYMENTS, "web"):
        await api.delete(f"{DEPLOYMENTS}/web", {"propagationPolicy": "Orphan"})
    left = (await api.get(f"{REPLICA_SETS}/{name}")).body
    assert "ownerReferences" not in left["metadata"]


async def test_a_job_completes_when_its_pods_have_succeeded(
    cluster: SimulatedCluster, api: ApiClient
) -> None:
    cluster.add_nodes([make_node("big", {"cpu": "64", "memory": "64Gi", "pods": "110"})])
    scheduler = asyncio.create_task(_bind_everything(api))
    container = {"name": "c", "image": "x:1"}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    spec = {"completions": 4, "parallelism": 2, "template": template}
    await api.create(JOBS, {"metadata": {"name": "j"}, "spec": spec})
    done = await until(api, JOBS, "j", lambda found: "completionTime" in found["status"])
    scheduler.cancel()
    assert done["status"]["succeeded"] == 4
    conditions = [condition["type"] for condition in done["status"]["conditions"]]
    assert conditions == ["SuccessCriteriaMet", "Complete"]


async def test_a_disruption_budget_refuses_an_eviction_that_violates_it(api: ApiClient) -> None:
    spec = {
        "minAvailable": 1,
        "selector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]},
    }
    await api.create(BUDGETS, {"metadata": {"name": "b"}, "spec": spec})
    for name in "ac":
        await bound(api, pod(name))
    await until(api, BUDGETS, "b", lambda found: found["status"]["disruptionsAllowed"] == 1)
    assert (await api.post(f"{PODS}/a/eviction", eviction("a"))).status == 201
    assert (await api.post(f"{PODS}/c/eviction", eviction("c"))).status == 429


async def test_deleting_a_namespace_deletes_its_objects(api: ApiClient) -> None:
    await api.create("/api/v1/namespaces", {"metadata": {"name": "team"}})
    await api.create("/api/v1/namespaces/team/pods", pod())
    async with expect_gone(api, "/api/v1/namespaces", "team"):
        await api.delete("/api/v1/namespaces/team")
    assert (await api.get("/api/v1/namespaces/team/pods")).body["items"] == []
    refused = await api.post("/api/v1/namespaces/team/pods", pod())
    assert (refused.status, refused.body["message"]) == (404, 'namespaces "team" not found')


async def test_the_kubeconfig_carries_token_and_authority(tmp_path: Path) -> None:
    certificate, key = self_signed_certificate(tmp_path)
    options = ClusterOptions(token="secret", cert_file=certificate, key_file=key)
    async with SimulatedCluster(options=options) as cluster:
        kubeconfig = cluster.write_kubeconfig(tmp_path / "kubeconfig")
        assert kubeconfig.stat().st_mode & 0o077 == 0
        configuration = kubernetes.client.Configuration()
        load: Any = load_kube_config
        await load(str(kubeconfig), client_configuration=configuration)
        async with kubernetes.client.ApiClient(configuration) as client:
            namespaces = await kubernetes.client.CoreV1Api(client).list_namespace()
    names = {found.metadata.name for found in namespaces.items if found.metadata is not None}
    assert "kube-system" in names


async def test_running_until_cancelled_writes_a_kubeconfig_first(tmp_path: Path) -> None:
    ready: asyncio.Future[SimulatedCluster] = asyncio.get_running_loop().create_future()
    kubeconfig = tmp_path / "deep" / "kubeconfig"
    running = asyncio.create_task(
        run_cluster([node("n")], ClusterOptions(), kubeconfig, ready.set_result)
    )
    cluster = await ready
    assert cluster.url in kubeconfig.read_text()
    async with ApiClient(cluster.url, "") as client:
        assert (await client.get(f"{NODES}/n")).status == 200
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        with pytest.raises(aiohttp.ClientError):
            await client.get(NODES)


async def test_an_address_in_use_is_an_error(cluster: SimulatedCluster) -> None:
    taken = cluster.url.removeprefix("http://")
    with pytest.raises(OSError, match="address already in use"):
        await SimulatedCluster(options=ClusterOptions(listen=taken)).start()


@pytest.mark.parametrize(
    ("listen", "url"),
    [
        ("[::1]:8001", "http://[::1]:8001"),
        ("[::]:8001", "http://[::1]:8001"),
        ("0.0.0.0:8001", "http://127.0.0.1:8001"),
    ],
)
def test_the_url_reaches_the_address_of_any_family(listen: str, url: str) -> None:
    assert SimulatedCluster(options=ClusterOptions(listen=listen)).url == url


@pytest.mark.parametrize("listen", ["nowhere", "127.0.0.1:65536", "127.0.0.1:²"])
def test_an_invalid_address_is_refused(listen: str) -> None:
    with pytest.raises(ValueError, match=f"'{listen}' is not HOST:PORT"):
        SimulatedCluster(options=ClusterOptions(listen=listen))


CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"
STORAGE_CLASSES = "/apis/storage.k8s.io/v1/storageclasses"


def storage_class(provisioner: str, mode: str) -> Json:
    return {"metadata": {"name": "fast"}, "provisioner": provisioner, "volumeBindingMode": mode}


def volume(name: str, size: str) -> Json:
    spec = {
        "capacity": {"storage": size},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "fast",
        "hostPath": {"path": "/data"},
    }
    return {"metadata": {"name": name}, "spec": spec}


def claim(size: str) -> Json:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "fast",
        "resources": {"requests": {"storage": size}},
    }
    return {"metadata": {"name": "c"}, "spec": spec}


async def test_a_claim_is_bound_to_the_smallest_volume_that_fits(api: ApiClient) -> None:
    await api.create(STORAGE_CLASSES, storage_class("kubernetes.io/no-provisioner", "Immediate"))
    for name, size in (("small", "1Gi"), ("large", "100Gi"), ("right", "10Gi")):
        await api.create(VOLUMES, volume(name, size))
    await api.create(CLAIMS, claim("5Gi"))
    bound_claim = await until(api, CLAIMS, "c", has_phase("Bound"))
    assert bound_claim["spec"]["volumeName"] == "right"
    assert (await api.get(f"{VOLUMES}/right")).body["spec"]["claimRef"]["name"] == "c"
    await until(api, VOLUMES, "small", has_phase("Available"))
    await api.delete(f"{CLAIMS}/c")
    await until(api, VOLUMES, "right", has_phase("Released"))


async def test_a_waiting_claim_is_bound_to_the_volume_that_the_scheduler_chose(
    api: ApiClient,
) -> None:
    waiting = storage_class("kubernetes.io/no-provisioner", "WaitForFirstConsumer")
    await api.create(STORAGE_CLASSES, waiting)
    await api.create(VOLUMES, volume("one", "10Gi"))
    await api.create(CLAIMS, claim("5Gi"))
    reference = {"claimRef": {"namespace": "default", "name": "c"}}
    await api.patch(f"{VOLUMES}/one", {"spec": reference})
    bound_claim = await until(api, CLAIMS, "c", has_phase("Bound"))
    assert bound_claim["spec"]["volumeName"] == "one"


async def test_a_claim_is_provisioned_on_its_selected_node(api: ApiClient) -> None:
    await api.create(STORAGE_CLASSES, storage_class("example.com/disk", "WaitForFirstConsumer"))
    created = await api.create(CLAIMS, claim("5Gi"))
    selected = {"volume.kubernetes.io/selected-node": "n"}
    await api.patch(f"{CLAIMS}/c", {"metadata": {"annotations": selected}})
    bound_claim = await until(api, CLAIMS, "c", has_phase("Bound"))
    assert bound_claim["spec"]["volumeName"] == f"pvc-{created['metadata']['uid']}"
    made = (await api.get(f"{VOLUMES}/{bound_claim['spec']['volumeName']}")).body
    (term,) = made["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert term["matchExpressions"][0]["values"] == ["n"]
    async with expect_gone(api, VOLUMES, made["metadata"]["name"]):
        await api.delete(f"{CLAIMS}/c")


@pytest.mark.parametrize("sends_bookmarks", [True, False])
async def test_bookmarks_can_be_left_out(sends_bookmarks: bool) -> None:
    options = ClusterOptions(with_controllers=False, sends_bookmarks=sends_bookmarks)
    async with SimulatedCluster(options=options) as cluster, ApiClient(cluster.url, "") as api:
        query = f"resourceVersion={await api.revision()}&allowWatchBookmarks=1&timeoutSeconds=1"
        async with api.watch(PODS, query) as watch:
            types = [event["type"] for event in await watch.rest()]
    assert types == ["BOOKMARK"] * sends_bookmarks


async def test_the_end_of_the_initial_events_is_marked_without_bookmarks() -> None:
    options = ClusterOptions(with_controllers=False, sends_bookmarks=False)
    async with SimulatedCluster(options=options) as cluster, ApiClient(cluster.url, "") as api:
        query = "resourceVersion=0&allowWatchBookmarks=1&timeoutSeconds=1"
        async with api.watch(PODS, query) as watch:
            assert [event["type"] for event in await watch.rest()] == ["BOOKMARK"]
