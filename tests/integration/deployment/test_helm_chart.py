"""The Helm chart makes the objects of the kustomizations, and its values do what they say."""

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml

from simcluster import ClusterOptions, SimulatedCluster
from simcluster.tests.support.api_servers import self_signed_certificate
from simcluster.tests.support.kubectl import kubectl_for
from tests.docs.pages import DOCS, blocks
from tests.integration.deployment.charts import CHART, RefusedError, helm, needs_helm, rendered
from tests.integration.deployment.deployed import (
    MANIFESTS,
    ROOT,
    Json,
    arguments,
    container,
    installed,
    needs_kubectl,
    options_of,
    pod_spec,
    the,
    with_component,
)

pytestmark = [needs_helm, needs_kubectl]

OVERLAYS = MANIFESTS / "overlays"
RENAMED = ("--values", str(CHART / "values/renamed.yaml"))
INSTEAD = ("--values", str(CHART / "values/default-scheduler.yaml"))
WITH_MONITORING = ("--set", "monitoring.enabled=true")
WITH_POLICY = ("--set", "networkPolicy.enabled=true")
#: Labels and annotations that Helm reads or asks for.
OF_HELM = {
    "app.kubernetes.io/instance",
    "app.kubernetes.io/managed-by",
    "helm.sh/resource-policy",
}
#: kustomize adds a suffix to every name, the chart to the name of the release.
SUFFIXED = re.compile(r"^stowage-(auth-delegator|metrics-reader|dashboard)-batch$")

Key = tuple[str, str, str]


def _by_key(objects: Sequence[Json]) -> dict[Key, Json]:
    """The objects without what Helm and kustomize do each in their own way."""
    found = {}
    for each in objects:
        obj = _without_marks_of_helm(each)
        metadata = obj["metadata"]
        if not metadata.get("annotations"):
            metadata.pop("annotations", None)
        metadata["name"] = SUFFIXED.sub(r"stowage-batch-\1", metadata["name"])
        if "config.yaml" in obj.get("data", {}):
            obj["data"]["config.yaml"] = yaml.safe_load(obj["data"]["config.yaml"])
        # Helm makes the namespace by --create-namespace.
        if obj["kind"] != "Namespace":
            found[obj["kind"], metadata.get("namespace", ""), metadata["name"]] = obj
    return found


def _without_marks_of_helm(value: Json) -> Json:
    kept: Json = {}
    for key, inner in value.items():
        if key in OF_HELM:
            continue
        if isinstance(inner, dict):
            kept[key] = _without_marks_of_helm(inner)
        elif isinstance(inner, list):
            kept[key] = [
                _without_marks_of_helm(each) if isinstance(each, dict) else each for each in inner
            ]
        else:
            kept[key] = inner
    return kept


def _check_equal(chart: list[Json], objects: list[Json]) -> None:
    ours, theirs = _by_key(chart), _by_key(objects)
    assert ours.keys() == theirs.keys()
    for key, obj in theirs.items():
        assert ours[key] == obj, key


@pytest.mark.parametrize(
    ("folder", "values"),
    [
        (MANIFESTS, ()),
        (OVERLAYS / "monitoring", WITH_MONITORING),
        (OVERLAYS / "network-policy", WITH_POLICY),
        (OVERLAYS / "default-scheduler", INSTEAD),
    ],
    ids=["the defaults", "monitoring", "network-policy", "default-scheduler"],
)
def test_values_make_the_objects_of_a_kustomization(folder: Path, values: Sequence[str]) -> None:
    _check_equal(rendered(*values), installed(folder))


@pytest.mark.parametrize(
    ("component", "values"), [("monitoring", WITH_MONITORING), ("network-policy", WITH_POLICY)]
)
def test_another_release_makes_the_objects_of_the_renamed_overlay(
    component: str, values: Sequence[str], tmp_path: Path
) -> None:
    objects = with_component("renamed", component, tmp_path)
    names = {"release": "stowage-batch", "namespace": "batch-scheduling"}
    _check_equal(rendered(*RENAMED, *values, **names), objects)


def test_a_packaged_chart_makes_the_same_objects(tmp_path: Path) -> None:
    """A package has the files that are symbolic links in the checkout."""
    helm("package", str(CHART), "--destination", str(tmp_path))
    (package,) = tmp_path.glob("*.tgz")
    flags = ("--namespace", "stowage-system", *WITH_MONITORING)
    text = helm("template", "stowage", str(package), *flags)
    assert list(yaml.safe_load_all(text)) == rendered(*WITH_MONITORING)


def test_the_network_policy_lets_through_what_the_scheduler_serves_and_asks() -> None:
    extender = '[{"to": [{"podSelector": {"matchLabels": {"app": "extender"}}}]}]'
    objects = rendered(*WITH_POLICY, "--set-json", f"networkPolicy.extraEgress={extender}")
    spec = the(objects, "NetworkPolicy")["spec"]
    labels = the(objects, "Deployment")["spec"]["template"]["metadata"]["labels"]
    assert spec["podSelector"]["matchLabels"].items() <= labels.items()
    (served,) = spec["ingress"]
    assert [each["port"] for each in served["ports"]] == [
        container(objects)["ports"][0]["containerPort"]
    ]
    assert "from" not in served
    api_server, dns, more = spec["egress"]
    assert [each["port"] for each in api_server["ports"]] == [443, 6443]
    assert {(each["port"], each["protocol"]) for each in dns["ports"]} == {(53, "UDP"), (53, "TCP")}
    assert more["to"][0]["podSelector"]["matchLabels"] == {"app": "extender"}


def test_every_name_of_a_release_agrees() -> None:
    objects = rendered(*WITH_MONITORING, *WITH_POLICY, release="blue", namespace="elsewhere")
    assert {found["metadata"]["name"] for found in objects} == {
        "blue-stowage",
        *(f"blue-stowage-{part}" for part in ("auth-delegator", "metrics-reader", "dashboard")),
    }
    assert pod_spec(objects)["serviceAccountName"] == "blue-stowage"
    assert the(objects, "Role")["rules"][1]["resourceNames"] == ["blue-stowage"]
    namespaces = {found["metadata"].get("namespace", "elsewhere") for found in objects}
    assert namespaces == {"elsewhere"}
    selected = the(objects, "ServiceMonitor")["spec"]["selector"]["matchLabels"].items()
    assert selected <= the(objects, "Service")["metadata"]["labels"].items()
    for rule in the(objects, "PrometheusRule")["spec"]["groups"][0]["rules"]:
        for pattern in re.findall(r'job=~"([^"]+)"', rule["expr"]):
            assert re.fullmatch(pattern, "blue-stowage")
        if rule["alert"] == "StowageAbsent":
            assert 'job="blue-stowage", namespace="elsewhere"' in rule["expr"]


def test_two_releases_in_a_namespace_share_no_pods() -> None:
    blue, green = rendered(release="stowage-blue"), rendered(release="stowage-green")
    labels = the(green, "Deployment")["spec"]["template"]["metadata"]["labels"].items()
    for kind in ("Deployment", "PodDisruptionBudget"):
        selector = the(blue, kind)["spec"]["selector"]["matchLabels"]
        assert not selector.items() <= labels
    assert not the(blue, "Service")["spec"]["selector"].items() <= labels


def test_values_set_replicas_resources_and_flags() -> None:
    objects = rendered(
        *("--set", "replicas=3", "--set", "resources.limits.memory=4Gi"),
        *("--set-json", 'extraArgs=["-v=4"]', "--set", "image.repository=registry/stowage"),
        *("--set", "image.pullPolicy=Always", "--set", "nodeSelector.pool=control"),
        *("--set", "imagePullSecrets[0].name=registry"),
    )
    spec = pod_spec(objects)
    assert the(objects, "Deployment")["spec"]["replicas"] == 3
    assert container(objects)["resources"]["limits"] == {"memory": "4Gi"}
    assert container(objects)["resources"]["requests"]["cpu"] == "500m"
    assert arguments(objects)[-1] == "-v=4"
    assert re.fullmatch(r"registry/stowage:\d\S+", container(objects)["image"])
    assert container(objects)["imagePullPolicy"] == "Always"
    assert spec["nodeSelector"] == {"pool": "control"}
    assert spec["imagePullSecrets"] == [{"name": "registry"}]


def test_roles_and_the_configuration_can_be_left_to_others() -> None:
    flags = ("--set", "rbac.create=false", "--set", "configuration=null")
    kinds = sorted(found["kind"] for found in rendered(*flags))
    assert kinds == ["Deployment", "PodDisruptionBudget", "Service", "ServiceAccount"]


def test_a_base_url_makes_links_of_the_runbooks() -> None:
    url = "https://documents/reference/alerts.html"
    flags = ("--set", f"monitoring.runbookUrl={url}", "--set", "monitoring.labels.release=prom")
    objects = rendered(*WITH_MONITORING, *flags)
    for kind in ("PrometheusRule", "ServiceMonitor"):
        assert the(objects, kind)["metadata"]["labels"]["release"] == "prom"
    for rule in the(objects, "PrometheusRule")["spec"]["groups"][0]["rules"]:
        assert rule["annotations"]["runbook_url"] == f"{url}#{rule['alert'].lower()}"


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ("replicas=two", "replicas"),
        ("replica=3", "replica"),
        ("nameOverride=scheduler", "nameOverride"),
        ("monitoring.enable=true", "monitoring"),
        ("plugins[0].image=a", "plugins.0"),
        ("networkPolicy.apiServerPorts[0]=99999", "networkPolicy.apiServerPorts.0"),
    ],
)
def test_a_wrong_value_is_refused_with_its_name(value: str, named: str) -> None:
    with pytest.raises(RefusedError, match=re.escape(named)):
        rendered("--set", value)


def test_the_chart_has_the_version_of_the_package() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    version = (ROOT / "scheduler/stowage/VERSION").read_text().strip()
    assert (chart["version"], chart["appVersion"]) == (version, version)
    assert "0 chart(s) failed" in helm("lint", "--strict", str(CHART))


async def test_a_release_is_installed_upgraded_and_removed(tmp_path: Path) -> None:
    options = ClusterOptions(with_kubelet=False)
    async with SimulatedCluster(options=options) as cluster:
        kubectl = kubectl_for(cluster, tmp_path)
        kubeconfig = cluster.write_kubeconfig(tmp_path / "kubeconfig")
        names = ("stowage", "--namespace", "stowage-system")

        async def run(command: str, *flags: str) -> str:
            arguments = (command, *names, *flags)
            return await asyncio.to_thread(helm, *arguments, kubeconfig=kubeconfig)

        async def configuration() -> str:
            the_map = ("configmap", "stowage", "-n", "stowage-system")
            return await kubectl("get", *the_map, "-o", r"jsonpath={.data.config\.yaml}")

        async def edit() -> None:
            patch = json.dumps({"data": {"config.yaml": "edited"}})
            await kubectl("patch", "cm", "stowage", "-n", "stowage-system", "--patch", patch)

        notes = await run("install", str(CHART), "--create-namespace")
        assert "\n  stowage\n" in notes
        assert "schedulerName: stowage" in await configuration()
        await edit()
        await run("upgrade", str(CHART), "--set", "replicas=3")
        assert "schedulerName: stowage" in await configuration()
        replicas = ("deployment", "stowage", "-o", "jsonpath={.spec.replicas}")
        assert await kubectl("get", *replicas, "-n", "stowage-system") == "3"
        # From now on the ConfigMap is the user's.
        for _ in range(2):
            notes = await run("upgrade", str(CHART), "--set", "configuration=null")
            assert "stowage-system/stowage, key config.yaml, which is yours" in notes
            await edit()
        await run("upgrade", str(CHART), "--set", "configuration=null,replicas=1")
        assert await configuration() == "edited"
        await run("uninstall")
        assert await configuration() == "edited"
        left = await kubectl("get", "deployment,role,clusterrole", "-A", "-o", "name")
        assert "stowage" not in left


def test_the_values_that_the_page_shows_enable_a_plugin_of_an_image(tmp_path: Path) -> None:
    shown = [each.text for each in blocks(DOCS / "how-to/deploy.md") if each.language == "yaml"]
    (values,) = [text for text in shown if "plugins:" in text]
    file = tmp_path / "values.yaml"
    file.write_text(values)
    objects = rendered("--values", str(file))
    (init,) = pod_spec(objects)["initContainers"]
    assert (init["name"], init["image"]) == ("prefer-disk", "REGISTRY/prefer-disk:1.0.0")
    configuration = yaml.safe_load(the(objects, "ConfigMap")["data"]["config.yaml"])
    (profile,) = configuration["profiles"]
    assert profile["plugins"]["multiPoint"]["enabled"] == [{"name": "PreferDisk", "weight": 50}]


def test_the_values_that_the_page_shows_mount_what_the_flags_name(tmp_path: Path) -> None:
    shown = [each.text for each in blocks(DOCS / "how-to/deploy.md") if each.language == "yaml"]
    (values,) = [text for text in shown if "extraVolumes:" in text]
    file = tmp_path / "values.yaml"
    file.write_text(values)
    objects = rendered("--values", str(file), "--set", "extraEnv[0].name=A,extraEnv[0].value=b")
    volumes = {each["name"]: each for each in pod_spec(objects)["volumes"]}
    assert volumes["serving"]["secret"] == {"secretName": "stowage-serving"}
    mounts = {each["name"]: each["mountPath"] for each in container(objects)["volumeMounts"]}
    assert volumes.keys() == mounts.keys() == {"tmp", "serving", "decisions"}
    flags = container(objects)["args"][-3:]
    for folder, here in ((mounts["serving"], tmp_path), (mounts["decisions"], tmp_path / "log")):
        flags = [flag.replace(f"={folder}", f"={here}") for flag in flags]
    self_signed_certificate(tmp_path)
    decision_log = options_of(["run", f"--kubeconfig={file}", *flags]).decision_log
    assert decision_log is not None
    assert decision_log.directory == tmp_path / "log"
    assert container(objects)["env"][-1] == {"name": "A", "value": "b"}


def test_plugins_of_an_image_are_found_by_the_scheduler(tmp_path: Path) -> None:
    """The init container and the scheduler run with the folders of this machine."""
    objects = rendered("--set", "plugins[0].name=example,plugins[0].image=registry/example:1")
    (init,) = pod_spec(objects)["initContainers"]
    assert init["image"] == "registry/example:1"
    assert init["securityContext"] == container(objects)["securityContext"]
    (mounted,) = init["volumeMounts"]
    (read,) = [each for each in container(objects)["volumeMounts"] if each["name"] == "plugins"]
    assert read["mountPath"] == mounted["mountPath"]
    image, volume = tmp_path / "image", tmp_path / "volume"
    volume.mkdir()
    installed = [*("--no-deps", "--no-index", "--no-build-isolation", "--quiet"), "--target"]
    example = [str(image / "plugins"), str(_copy_of_example(tmp_path))]
    subprocess.run([sys.executable, "-m", "pip", "install", *installed, *example], check=True)
    copy, recursive, source, target = init["command"]
    assert target.rstrip("/") == mounted["mountPath"]
    # pathlib drops the dot at the end, which stands for the content of the folder.
    subprocess.run([copy, recursive, f"{image}{source}", str(volume)], check=True)
    env = {found["name"]: found.get("value") for found in container(objects)["env"]}
    assert env["PYTHONPATH"] == read["mountPath"]
    _check_finds_example(volume, tmp_path / "config.yaml")


def _copy_of_example(folder: Path) -> Path:
    """A copy to build in, so that the checkout stays as it is."""
    copy = folder / "example"
    subprocess.run(["cp", "-r", str(ROOT / "examples/plugins"), str(copy)], check=True)
    return copy


def _check_finds_example(plugins: Path, config: Path) -> None:
    config.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "KubeSchedulerConfiguration",
                "profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "PodsPerNode"}]}}}],
            }
        )
    )
    path = os.pathsep.join((str(plugins), os.environ.get("PYTHONPATH", "")))
    checked = subprocess.run(
        [sys.executable, "-m", "stowage.cli", "config", "check", str(config)],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert checked.returncode == 0, checked.stderr
