"""The manifests agree with each other, the command line, the image and the metrics."""

import json
import pwd
import re
import shutil
from pathlib import Path
from typing import Any, NoReturn

import pytest
import yaml

from simcluster import ClusterOptions, SimulatedCluster
from simcluster.tests.support.api_client import NODES, PODS, ApiClient, node, pod, until
from simcluster.tests.support.api_servers import ApiServerUnderTest
from simcluster.tests.support.kubectl import kubectl_for
from stowage.cli.config_file import read_configuration
from tests.integration.deployment.deployed import (
    MANIFESTS,
    ROOT,
    apply,
    container,
    deployed_options,
    installed,
    kustomized,
    needs_kubectl,
    pod_spec,
    running,
    serving_client,
    the,
)

pytestmark = needs_kubectl

Json = dict[str, Any]

MONITORING = MANIFESTS / "overlays" / "monitoring"
RENAMED = MANIFESTS / "overlays" / "renamed"


@pytest.fixture(scope="module")
def objects() -> list[Json]:
    """What a cluster has after the first installation."""
    return installed()


async def test_a_second_kubectl_apply_changes_nothing(objects: list[Json], tmp_path: Path) -> None:
    options = ClusterOptions(with_kubelet=False)
    async with SimulatedCluster(options=options) as cluster:
        kubectl = kubectl_for(cluster, tmp_path)
        created = await kubectl("apply", "-k", str(MANIFESTS))
        created += await kubectl("create", "-k", str(MANIFESTS / "configuration"))
        assert created.count(" created") == len(objects)
        again = await kubectl("apply", "-k", str(MANIFESTS))
        # All but the ConfigMap, which an upgrade leaves alone. kubectl sends a budget's selector
        # each time, for its patch strategy is to replace it.
        assert again.count(" unchanged") == len(objects) - 2
        generation = ("-o", "jsonpath={.metadata.generation}", "-n", "stowage-system")
        assert await kubectl("get", "poddisruptionbudget", "stowage", *generation) == "1"
        async with ApiClient(cluster.url, "") as api:
            path = "/apis/apps/v1/namespaces/stowage-system/deployments"
            await until(api, path, "stowage", lambda it: it["status"].get("replicas") == 2)
        bindings = await kubectl("get", "rolebinding,clusterrolebinding", "-A", "-o", "wide")
        assert "ClusterRole/stowage" in bindings
        assert "stowage-system/stowage" in bindings


async def test_an_upgrade_keeps_the_configuration_that_the_user_edited(tmp_path: Path) -> None:
    async with SimulatedCluster() as cluster:
        kubectl = kubectl_for(cluster, tmp_path)
        await kubectl("apply", "-k", str(MANIFESTS))
        await kubectl("create", "-k", str(MANIFESTS / "configuration"))
        edit = json.dumps({"data": {"config.yaml": "edited"}})
        the_map = ("configmap", "stowage", "-n", "stowage-system")
        await kubectl("patch", *the_map, "--patch", edit)
        await kubectl("apply", "-k", str(MANIFESTS))
        again = await kubectl("create", "-k", str(MANIFESTS / "configuration"), succeeds=False)
        assert "already exists" in again
        assert await kubectl("get", *the_map, "-o", r"jsonpath={.data.config\.yaml}") == "edited"


def test_no_configuration_is_in_what_an_upgrade_applies() -> None:
    for kustomization in MANIFESTS.rglob("kustomization.yaml"):
        folder = kustomization.parent
        if folder.name != "configuration" and "components" not in folder.parts:
            maps = [found for found in kustomized(folder) if found["kind"] == "ConfigMap"]
            assert [found for found in maps if "config.yaml" in found["data"]] == [], folder


@pytest.fixture
def _nameless_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """The user of the container is a number: neither /etc/passwd nor the environment names it."""

    def getpwuid(uid: int) -> NoReturn:
        raise KeyError(f"getpwuid(): uid not found: {uid}")

    monkeypatch.setattr(pwd, "getpwuid", getpwuid)
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("_nameless_user")
async def test_a_scheduler_with_the_deployments_flags_schedules_and_answers_probes(
    objects: list[Json], api_server: ApiServerUnderTest, api: ApiClient
) -> None:
    await apply(api, [found for found in objects if found["kind"] != "Deployment"])
    await api.create(NODES, node("n1"))
    await api.create(PODS, pod("a", schedulerName="stowage"))
    options = await deployed_options(objects, api_server.kubeconfig)
    assert options.serving is not None
    assert options.serving.port == container(objects)["ports"][0]["containerPort"]
    async with (
        running(options) as url,
        serving_client(url, "") as kubelet,
        serving_client(url, api_server.token) as prometheus,
    ):
        await until(api, PODS, "a", lambda found: bool(found["spec"].get("nodeName")))
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            get = container(objects)[probe]["httpGet"]
            assert get["scheme"] == "HTTPS"
            async with kubelet.get(get["path"]) as answer:
                assert (answer.status, await answer.text()) == (200, "ok")
        async with prometheus.get("/metrics") as answer:
            exposition = await answer.text()
    _check_metrics_exist(exposition)


def _check_metrics_exist(exposition: str) -> None:
    exported = set(re.findall(r"^# TYPE (\w+) ", exposition, re.MULTILINE))
    sampled = exported | {
        f"{name}{suffix}" for name in exported for suffix in ("_bucket", "_count", "_sum")
    }
    assert _metrics_of_dashboard_and_alerts() <= sampled


def _metrics_of_dashboard_and_alerts() -> set[str]:
    dashboard = json.loads((MANIFESTS / "components/monitoring/stowage.json").read_text())
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    monitored = kustomized(MONITORING)
    for group in the(monitored, "PrometheusRule")["spec"]["groups"]:
        expressions += [rule["expr"] for rule in group["rules"]]
    named = r"\b[a-z]+_[a-z_]+(?=\{)"
    found = [re.findall(named, expression) for expression in expressions]
    assert all(found)
    return {name for names in found for name in names}


def test_the_monitoring_overlay_changes_no_object_of_the_base() -> None:
    objects, monitored = kustomized(), kustomized(MONITORING)
    assert [found for found in objects if found not in monitored] == []
    added = [found["kind"] for found in monitored if found not in objects]
    assert sorted(added) == ["ClusterRole", "ConfigMap", "PrometheusRule", "ServiceMonitor"]
    dashboard = the(monitored, "ConfigMap", "stowage-dashboard")
    assert json.loads(dashboard["data"]["stowage.json"])["title"] == "Stowage"
    endpoint = the(monitored, "ServiceMonitor")["spec"]["endpoints"][0]
    service = the(monitored, "Service")
    assert endpoint["port"] == service["spec"]["ports"][0]["name"]
    selector = the(monitored, "ServiceMonitor")["spec"]["selector"]["matchLabels"]
    assert selector.items() <= service["metadata"]["labels"].items()


def _edited(folder: Path) -> Path:
    """A copy of the manifests after ``kustomize edit set namespace elsewhere``."""
    copy = folder / "manifests"
    shutil.copytree(MANIFESTS, copy)
    for kustomization in (copy / "kustomization.yaml", copy / "configuration/kustomization.yaml"):
        lines = kustomization.read_text().splitlines()
        kept = [line for line in lines if not line.startswith("namespace: ")]
        kustomization.write_text("\n".join([*kept, "namespace: elsewhere\n"]))
    return copy


@pytest.mark.parametrize(
    ("variant", "namespace", "name"),
    [
        ("as it is", "stowage-system", "stowage"),
        ("another namespace", "elsewhere", "stowage"),
        ("renamed", "batch-scheduling", "stowage-batch"),
    ],
)
async def test_names_agree_in_every_variant_of_the_manifests(
    variant: str, namespace: str, name: str, tmp_path: Path
) -> None:
    folders = {"as it is": MANIFESTS, "renamed": RENAMED}
    objects = installed(folders[variant] if variant in folders else _edited(tmp_path))
    assert the(objects, "Namespace")["metadata"]["name"] == namespace
    clusterwide = {"Namespace", "ClusterRole", "ClusterRoleBinding"}
    for found in objects:
        where = found["metadata"].get("namespace")
        assert where == (None if found["kind"] in clusterwide else namespace)
        for subject in found.get("subjects", ()):
            assert (subject["name"], subject["namespace"]) == (name, namespace)
    for binding, role in (("ClusterRoleBinding", "ClusterRole"), ("RoleBinding", "Role")):
        bound = the(objects, binding, name)
        assert bound["roleRef"]["name"] == the(objects, role)["metadata"]["name"] == name
    assert pod_spec(objects)["serviceAccountName"] == name
    named = [rule["resourceNames"] for rule in the(objects, "Role")["rules"][1:]]
    assert named == [[name], [the(objects, "ConfigMap")["metadata"]["name"]]]
    async with SimulatedCluster() as cluster, ApiClient(cluster.url, "") as api:
        await apply(api, objects)
        kubeconfig = cluster.write_kubeconfig(tmp_path / "kubeconfig")
        options = await deployed_options(objects, kubeconfig)
    assert options.config_map is not None
    assert str(options.config_map.reference) == f"{namespace}/{name}:config.yaml"
    assert options.leader_election is not None
    assert options.leader_election.lease_name == name
    assert options.leader_election.lease_namespace == namespace
    assert options.scheduler_names == (name,)


def test_the_pod_meets_the_restricted_pod_security_standard(objects: list[Json]) -> None:
    labels = the(objects, "Namespace")["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"
    spec = pod_spec(objects)
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for found in spec["containers"]:
        assert found["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        # For temporary files such as the self-signed certificate.
        assert "/tmp" in {mounted["mountPath"] for mounted in found["volumeMounts"]}


def test_all_selectors_select_the_pods_of_the_deployment(objects: list[Json]) -> None:
    template = the(objects, "Deployment")["spec"]["template"]
    labels = template["metadata"]["labels"].items()
    selectors = [the(objects, "Deployment")["spec"]["selector"]["matchLabels"]]
    selectors.append(the(objects, "PodDisruptionBudget")["spec"]["selector"]["matchLabels"])
    selectors.append(the(objects, "Service")["spec"]["selector"])
    spread = template["spec"]["topologySpreadConstraints"]
    selectors += [constraint["labelSelector"]["matchLabels"] for constraint in spread]
    assert all(selector.items() <= labels for selector in selectors)


def test_the_deployment_agrees_with_the_dockerfile(objects: list[Json]) -> None:
    version = (ROOT / "scheduler/stowage/VERSION").read_text().strip()
    spec = pod_spec(objects)
    images = {found["image"] for found in spec["containers"]}
    assert images == {f"stowage:{version}"}
    dockerfile = (ROOT / "Dockerfile").read_text()
    user = spec["securityContext"]["runAsUser"]
    assert f"\nUSER {user}:{spec['securityContext']['runAsGroup']}\n" in dockerfile
    assert f"\nEXPOSE {container(objects)['ports'][0]['containerPort']}\n" in dockerfile
    assert '\nENTRYPOINT ["stowage"]\n' in dockerfile
    assert container(objects)["args"][0] == "run"


@pytest.mark.parametrize("file", sorted(MANIFESTS.rglob("config.yaml")), ids=str)
def test_every_configuration_loads(file: Path) -> None:
    assert read_configuration(file).profiles


def test_each_manifest_is_part_of_a_kustomization() -> None:
    for kustomization in MANIFESTS.rglob("kustomization.yaml"):
        content = yaml.safe_load(kustomization.read_text())
        named = {*content.get("resources", ())}
        for generator in content.get("configMapGenerator", ()):
            named |= {*generator["files"]}
        beside = {file.name for file in kustomization.parent.iterdir() if file.is_file()}
        assert beside - named == {"kustomization.yaml"}
