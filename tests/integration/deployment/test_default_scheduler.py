"""Stowage instead of kube-scheduler: the overlay, the static pod, and the Lease of both."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from simcluster import ClusterOptions, SimulatedCluster, service_account_user, write_kubeconfig
from simcluster.auth.rbac import Decision
from simcluster.auth.request_attributes import Attributes
from simcluster.auth.users import User
from simcluster.tests.support.api_client import MERGE, NODES, PODS, ApiClient, node, pod, until
from simcluster.tests.support.kubectl import kubectl_for
from simcluster.tests.support.timeouts import wait_until
from tests.integration.deployment.deployed import (
    MANIFESTS,
    ROOT,
    apply,
    container,
    deployed_options,
    installed,
    kustomized,
    needs_kubectl,
    options_of,
    running,
    the,
)

pytestmark = needs_kubectl

Json = dict[str, Any]

OVERLAY = MANIFESTS / "overlays" / "default-scheduler"
STATIC_POD = MANIFESTS / "static-pod" / "stowage.yaml"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
COSCHEDULING = ROOT / "examples/gangs/coscheduling-definition.yaml"
COSCHEDULING_GROUPS = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/podgroups"
KUBE_SCHEDULER = User("system:kube-scheduler", ("system:authenticated",))
ADMINISTRATOR = "administrator"


@dataclass
class _Requests:
    """The requests of the scheduler, as verb, resource and name."""

    all: Counter[str] = field(default_factory=Counter)
    refused: list[str] = field(default_factory=list)


@asynccontextmanager
async def _cluster(user: User) -> AsyncIterator[tuple[SimulatedCluster, ApiClient, _Requests]]:
    """A cluster with RBAC, and the requests of a user whose token is ``scheduler``."""
    requests = _Requests()
    options = ClusterOptions(
        token=ADMINISTRATOR,
        users={"scheduler": user},
        rbac=True,
        with_kubelet=False,
        with_controllers=False,
    )

    def audit(asking: User, attributes: Attributes, decision: Decision) -> None:
        if asking != user:
            return
        request = f"{attributes.verb} {attributes.resource} {attributes.name}"
        requests.all[request] += 1
        if not decision.is_allowed:
            requests.refused.append(request)

    async with (
        SimulatedCluster(options=options) as cluster,
        ApiClient(cluster.url, ADMINISTRATOR) as api,
    ):
        cluster.server.access.audit = audit
        await api.create(NODES, node("n1"))
        yield cluster, api, requests


def _is_bound(found: Json) -> bool:
    return bool(found["spec"].get("nodeName"))


async def _hold_the_lease(api: ApiClient, holder: str) -> None:
    spec = {
        "holderIdentity": holder,
        "leaseDurationSeconds": 3600,
        "acquireTime": "2026-01-01T00:00:00.000000Z",
        "renewTime": "2026-01-01T00:00:00.000000Z",
        "leaseTransitions": 1,
    }
    await api.create(LEASES, {"metadata": {"name": "kube-scheduler"}, "spec": spec})


async def test_the_overlay_takes_over_from_kube_scheduler_and_gives_back(tmp_path: Path) -> None:
    objects = installed(OVERLAY)
    user = service_account_user("stowage-system", "stowage")
    async with _cluster(user) as (cluster, api, requests):
        await apply(api, objects)
        await _hold_the_lease(api, "kube-scheduler-of-the-control-plane")
        await api.create(PODS, pod("a", schedulerName="default-scheduler"))
        kubeconfig = write_kubeconfig(tmp_path / "kubeconfig", cluster.url, "scheduler")
        async with running(await deployed_options(objects, kubeconfig)):
            await wait_until(lambda: requests.all["get leases kube-scheduler"] > 1)
            assert not _is_bound((await api.get(f"{PODS}/a")).body)
            released = {"spec": {"holderIdentity": "", "leaseDurationSeconds": 1}}
            await api.patch(f"{LEASES}/kube-scheduler", released, MERGE)
            await until(api, PODS, "a", _is_bound)
            lease = (await api.get(f"{LEASES}/kube-scheduler")).body
            assert lease["spec"]["holderIdentity"]
        lease = (await api.get(f"{LEASES}/kube-scheduler")).body
        assert not lease["spec"].get("holderIdentity")
        assert requests.refused == []


def test_the_overlay_asks_for_no_lease_of_its_own() -> None:
    objects = kustomized(OVERLAY)
    assert [rule["resources"] for rule in the(objects, "Role", "stowage")["rules"]] == [
        ["configmaps"]
    ]
    own = the(objects, "Role", "stowage-lease")
    binding = the(objects, "RoleBinding", "stowage-lease")
    assert own["metadata"]["namespace"] == binding["metadata"]["namespace"] == "kube-system"
    assert own["rules"][1]["resourceNames"] == ["kube-scheduler"]


def test_the_overlays_pods_outlive_an_outage_of_their_nodes() -> None:
    """Their successors would find no scheduler."""
    spec = the(kustomized(OVERLAY), "Deployment")["spec"]["template"]["spec"]
    forever = [found for found in spec["tolerations"] if found.get("effect") == "NoExecute"]
    assert {found["key"] for found in forever} == {
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    }
    assert not any("tolerationSeconds" in found for found in forever)


def _static_pod() -> Json:
    found: Json = yaml.safe_load(STATIC_POD.read_text())
    return found


def _on_this_host(arguments: Sequence[str], kubeconfig: Path) -> list[str]:
    config = OVERLAY / "configuration" / "config.yaml"
    files = {
        "/etc/kubernetes/scheduler.conf": str(kubeconfig),
        "/etc/kubernetes/stowage.yaml": str(config),
    }
    flags = (argument.partition("=") for argument in arguments)
    return [f"{flag}{equals}{files.get(value, value)}" for flag, equals, value in flags]


async def test_the_static_pod_schedules_with_the_rights_of_kube_scheduler(tmp_path: Path) -> None:
    (scheduler,) = _static_pod()["spec"]["containers"]
    async with _cluster(KUBE_SCHEDULER) as (cluster, api, requests):
        await api.create(PODS, pod("a", schedulerName="default-scheduler"))
        picky = pod("picky", schedulerName="default-scheduler", nodeSelector={"disk": "ssd"})
        await api.create(PODS, picky)
        kubeconfig = write_kubeconfig(tmp_path / "kubeconfig", cluster.url, "scheduler")
        command_line = _on_this_host(scheduler["args"], kubeconfig)
        async with running(await asyncio.to_thread(options_of, command_line)):
            await until(api, PODS, "a", _is_bound)
            await until(api, PODS, "picky", lambda found: bool(found["status"].get("conditions")))
            lease = (await api.get(f"{LEASES}/kube-scheduler")).body
            assert lease["spec"]["holderIdentity"]
        assert requests.refused == []


async def test_the_static_pod_reads_the_groups_of_coscheduling_with_the_right_of_the_page(
    tmp_path: Path,
) -> None:
    (scheduler,) = _static_pod()["spec"]["containers"]
    labels = {"scheduling.x-k8s.io/pod-group": "simulation"}
    async with _cluster(KUBE_SCHEDULER) as (cluster, api, requests):
        await apply(api, [yaml.safe_load(COSCHEDULING.read_text())])
        group = {
            "apiVersion": "scheduling.x-k8s.io/v1alpha1",
            "kind": "PodGroup",
            "metadata": {"name": "simulation"},
            "spec": {"minMember": 1},
        }
        await api.create(COSCHEDULING_GROUPS, group)
        member = pod("member", schedulerName="default-scheduler")
        await api.create(PODS, {**member, "metadata": {**member["metadata"], "labels": labels}})
        kubeconfig = write_kubeconfig(tmp_path / "scheduler.conf", cluster.url, "scheduler")
        command_line = _on_this_host(scheduler["args"], kubeconfig)
        async with running(await asyncio.to_thread(options_of, command_line)):
            await wait_until(lambda: "list podgroups " in requests.refused)
            assert not _is_bound((await api.get(f"{PODS}/member")).body)
            await apply(api, _role_of_the_page("stowage-coscheduling"))
            await until(api, PODS, "member", _is_bound)


def _role_of_the_page(name: str) -> list[Json]:
    """The role and the binding that the page creates; kubectl sends no token without TLS."""
    page = (ROOT / "docs/how-to/replace-kube-scheduler.md").read_text().replace("\\\n", "")
    lines = [line.split() for line in page.splitlines() if f" {name} " in line]
    role, binding = ({key: value for key, _, value in _flags(line)} for line in lines)
    resource, _, group = role["--resource"].partition(".")
    rule = {"apiGroups": [group], "resources": [resource], "verbs": role["--verb"].split(",")}
    api = "rbac.authorization.k8s.io"
    version, metadata = {"apiVersion": f"{api}/v1"}, {"metadata": {"name": name}}
    referred = {"apiGroup": api, "kind": "ClusterRole", "name": binding["--clusterrole"]}
    subjects = [{"apiGroup": api, "kind": "User", "name": binding["--user"]}]
    return [
        {**version, "kind": "ClusterRole", **metadata, "rules": [rule]},
        {**version, "kind": "ClusterRoleBinding", **metadata}
        | {"roleRef": referred, "subjects": subjects},
    ]


def _flags(words: Sequence[str]) -> list[tuple[str, str, str]]:
    return [word.partition("=") for word in words if word.startswith("--")]


def test_the_static_pod_is_the_deployments_on_a_node() -> None:
    spec = _static_pod()["spec"]
    (scheduler,), deployed = spec["containers"], container(kustomized())
    assert scheduler["image"] == deployed["image"]
    assert scheduler["resources"] == deployed["resources"]
    assert scheduler["securityContext"] == deployed["securityContext"]
    mounted = {found["mountPath"] for found in scheduler["volumeMounts"]}
    read = {value for _, _, value in (each.partition("=") for each in scheduler["args"])}
    assert {path for path in read if path.startswith("/")} <= mounted
    # What a static pod cannot have: the kubelet starts it without the API server.
    assert not {"serviceAccountName", "schedulerName"} & spec.keys()
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        get = {**scheduler[probe]["httpGet"], "port": "https"}
        assert get.pop("host") == "127.0.0.1"
        assert {**scheduler[probe], "httpGet": get} == deployed[probe]


async def test_a_replica_is_bound_by_hand_as_the_page_says(tmp_path: Path) -> None:
    name = "stowage-1"
    page = (ROOT / "docs/how-to/replace-kube-scheduler.md").read_text()
    block = next(found for found in page.split("```") if "/binding <<END" in found)
    body = block[block.index("\n{\n") : block.rindex("}") + 1]
    body = body.replace("$POD", name).replace("$NODE", "n1")
    async with SimulatedCluster() as cluster, ApiClient(cluster.url, "") as api:
        await api.create("/api/v1/namespaces", {"metadata": {"name": "stowage-system"}})
        pods = "/api/v1/namespaces/stowage-system/pods"
        await api.create(NODES, node("n1"))
        await api.create(pods, pod(name) | {"metadata": {"name": name}})
        kubectl = kubectl_for(cluster, tmp_path)
        path = f"/api/v1/namespaces/stowage-system/pods/{name}/binding"
        await kubectl("create", "--raw", path, "-f", "-", stdin=json.dumps(json.loads(body)))
        assert _is_bound((await api.get(f"{pods}/{name}")).body)
