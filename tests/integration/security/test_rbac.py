"""The roles of the manifests grant what the scheduler needs, and nothing else."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from simcluster import (
    ClusterOptions,
    FaultRule,
    SimulatedCluster,
    service_account_user,
    write_kubeconfig,
)
from simcluster.auth.rbac import Decision, rule_allows
from simcluster.auth.request_attributes import Attributes
from simcluster.auth.users import User
from simcluster.features import read_features
from simcluster.tests.support.api_client import MERGE, NODES, PODS, ApiClient, node, pod
from simcluster.tests.support.api_servers import ApiServerUnderTest, self_signed_certificate
from simcluster.tests.support.kubectl import kubectl_for
from simcluster.tests.support.timeouts import wait_until
from tests.integration.deployment.deployed import (
    MANIFESTS,
    CannotStartError,
    apply,
    deployed_options,
    installed,
    kustomized,
    needs_kubectl,
    running,
    serving_client,
    the,
)
from tests.integration.scheduling import device_objects
from tests.integration.scheduling.volume_objects import (
    HOSTNAME,
    LOCAL,
    PROVISIONED,
    VolumeController,
    claim,
    claim_volumes,
    volume,
)

pytestmark = needs_kubectl

Json = dict[str, Any]

NAMESPACE = "stowage-system"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
PRIORITY_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/stowage"
TOKEN = "administrator"
SERVICE_ACCOUNT_TOKEN = "service-account"
POD_GROUPS = "/apis/scheduling.k8s.io/v1alpha2/namespaces/default/podgroups"
COSCHEDULING = MANIFESTS.parent / "examples" / "gangs" / "coscheduling-definition.yaml"
METRICS_PATHS = ("/metrics", "/metrics/resources", "/metrics/slis")


class Grant(NamedTuple):
    """One verb on one resource, granted by a rule."""

    role: str
    rule: int
    group: str
    resource: str
    verb: str

    def __str__(self) -> str:
        """The arguments of ``kubectl auth can-i``."""
        return f"{self.verb} {self.resource}{self.group and '.'}{self.group}"


def _roles() -> list[Json]:
    files = (MANIFESTS / "base" / name for name in ("cluster-role.yaml", "role.yaml"))
    documents = [found for file in files for found in yaml.safe_load_all(file.read_text())]
    return [found for found in documents if found["kind"] in {"ClusterRole", "Role"}]


def _grants() -> Iterator[Grant]:
    for role in _roles():
        for index, rule in enumerate(role["rules"]):
            for group in rule["apiGroups"]:
                for resource in rule["resources"]:
                    for verb in rule["verbs"]:
                        yield Grant(role["kind"], index, group, resource, verb)


GRANTS = list(_grants())
RULES = list(dict.fromkeys((grant.role, grant.rule) for grant in GRANTS))


class Request(NamedTuple):
    """A request of the scheduler, and whether it was allowed."""

    attributes: Attributes
    decision: Decision


class DeployedScheduler(NamedTuple):
    """A scheduler with the rights of its service account, in a simulated cluster."""

    api: ApiClient
    cluster: SimulatedCluster
    url: str


@asynccontextmanager
async def _deployed_scheduler(
    objects: Sequence[Json], folder: Path, requests: list[Request]
) -> AsyncIterator[DeployedScheduler]:
    """Deploy ``objects`` in a cluster with RBAC, and collect the scheduler's requests."""
    user = service_account_user(NAMESPACE, "stowage")
    options = ClusterOptions(
        token=TOKEN,
        users={SERVICE_ACCOUNT_TOKEN: user},
        rbac=True,
        with_kubelet=False,
        with_controllers=False,
        gates=read_features(["GenericWorkload=true"], ["scheduling.k8s.io/v1alpha2=true"]),
    )
    async with (
        SimulatedCluster(options=options) as cluster,
        ApiClient(cluster.url, TOKEN) as api,
    ):

        def audit(asking: User, attributes: Attributes, decision: Decision) -> None:
            if asking == user:
                requests.append(Request(attributes, decision))

        cluster.server.access.audit = audit
        await apply(api, [*objects, yaml.safe_load(COSCHEDULING.read_text())])
        kubeconfig = write_kubeconfig(folder / "kubeconfig", cluster.url, SERVICE_ACCOUNT_TOKEN)
        async with running(await deployed_options(objects, kubeconfig)) as url:
            yield DeployedScheduler(api, cluster, url)


async def _metrics_status(url: str, token: str = TOKEN, path: str = "/metrics") -> int:
    """The status of a request for metrics, by default the cluster administrator's."""
    async with serving_client(url, token) as client, client.get(path) as answer:
        return answer.status


async def _is_bound(api: ApiClient, name: str) -> bool:
    return bool((await api.get(f"{PODS}/{name}")).body["spec"].get("nodeName"))


async def _events_of(api: ApiClient, name: str, reason: str) -> list[Json]:
    items = (await api.get(EVENTS)).body["items"]
    uid = (await api.get(f"{PODS}/{name}")).body["metadata"]["uid"]
    return [item for item in items if item["regarding"]["uid"] == uid and item["reason"] == reason]


async def _says_unschedulable(api: ApiClient, name: str) -> bool:
    conditions = (await api.get(f"{PODS}/{name}")).body["status"].get("conditions") or []
    return any(
        (found["type"], found["status"], found.get("reason"))
        == ("PodScheduled", "False", "Unschedulable")
        for found in conditions
    )


async def _create_pods(api: ApiClient) -> None:
    await api.create(NODES, node("n1"))
    await api.create(PODS, pod("placed", schedulerName="stowage"))
    picky = pod("picky", schedulerName="stowage", nodeSelector={"disk": "ssd"})
    await api.create(PODS, picky)


async def _create_gang(api: ApiClient) -> None:
    group = {"metadata": {"name": "g"}, "spec": {"schedulingPolicy": {"gang": {"minCount": 1}}}}
    await api.create(POD_GROUPS, group)
    member = pod("member", schedulerName="stowage", schedulingGroup={"podGroupName": "g"})
    await api.create(PODS, member)


async def _has_condition(api: ApiClient) -> bool:
    return bool((await api.get(f"{POD_GROUPS}/g")).body["status"].get("conditions"))


async def _create_pods_with_claims(deployed: DeployedScheduler) -> None:
    """Create pods with claims for a local and a provisioned volume; answers to patches are lost."""
    for path in ("/persistentvolumes/data-volume$", f"/persistentvolumeclaims/data-{PROVISIONED}$"):
        lost = FaultRule("PATCH", path, is_applied=True, is_dropped=True)
        deployed.cluster.faults.add(lost)
    await deployed.api.patch(f"{NODES}/n1", {"metadata": {"labels": {HOSTNAME: "n1"}}}, MERGE)
    volumes = VolumeController(deployed.api)
    await volumes.add_classes()
    await volumes.add_volume(volume("data-volume", "n1"))
    for class_name in (LOCAL, PROVISIONED):
        await volumes.add_claim(claim(f"data-{class_name}", class_name))
        uses = claim_volumes(f"data-{class_name}")
        await deployed.api.create(PODS, pod(class_name, schedulerName="stowage", volumes=uses))
    await volumes.claim_of_volume("data-volume")
    await volumes.bind(f"data-{LOCAL}", "data-volume")
    await volumes.provision(f"data-{PROVISIONED}")
    for class_name in (LOCAL, PROVISIONED):
        await wait_until(partial(_is_bound, deployed.api, class_name))


async def _create_pods_with_devices(api: ApiClient) -> None:
    """Create three pods: with a claim, with an extended resource, and with a claim left behind."""
    await api.create(device_objects.CLASSES, device_objects.device_class())
    await api.create(device_objects.SLICES, device_objects.device_slice("n1"))
    await api.create(device_objects.CLAIMS, device_objects.device_claim("device"))
    uses = [{"name": "device", "resourceClaimName": "device"}]
    await api.create(PODS, pod("with-claim", schedulerName="stowage", resourceClaims=uses))
    resources = {"limits": {device_objects.RESOURCE: "1"}}
    containers = [{"name": "c", "image": "i", "resources": resources}]
    extended = partial(pod, schedulerName="stowage", containers=containers)
    await api.create(PODS, extended("extended"))
    gates = [{"name": "wait"}]
    await api.create(PODS, extended("tried-before", schedulingGates=gates))
    gated = (await api.get(f"{PODS}/tried-before")).body
    await api.create(device_objects.CLAIMS, device_objects.stale_extended_claim(gated))
    await api.patch(f"{PODS}/tried-before", {"spec": {"schedulingGates": None}}, MERGE)


async def _wait_for_devices(deployed: DeployedScheduler) -> None:
    """Bind the pods with devices, though the answer to a claim's reservation is lost."""
    path = "/resourceclaims/device/status$"
    lost_answer = FaultRule("PATCH", path, times=1, is_applied=True, is_dropped=True)
    deployed.cluster.faults.add(lost_answer)
    await _create_pods_with_devices(deployed.api)
    for name in ("with-claim", "extended", "tried-before"):
        await wait_until(partial(_is_bound, deployed.api, name))


async def _wait_for_decisions(api: ApiClient) -> None:
    """Wait until one pod is bound, the other is marked unschedulable, and the Lease is held."""
    await wait_until(lambda: _is_bound(api, "placed"))

    async def has_scheduled_event() -> bool:
        return bool(await _events_of(api, "placed", "Scheduled"))

    async def has_failure_event() -> bool:
        return bool(await _events_of(api, "picky", "FailedScheduling"))

    async def is_lease_held() -> bool:
        answer = await api.get(LEASE)
        return answer.status == 200 and bool(answer.body["spec"].get("holderIdentity"))

    await wait_until(has_scheduled_event)
    await wait_until(has_failure_event)
    await wait_until(lambda: _says_unschedulable(api, "picky"))
    await wait_until(is_lease_held)


async def _repeat_failure(api: ApiClient) -> None:
    """Cordon the node for a moment: the pod fails for another reason, then again for the first."""

    async def failures() -> list[Json]:
        return await _events_of(api, "picky", "FailedScheduling")

    async def has_another_reason() -> bool:
        return len(await failures()) > 1

    async def is_counted() -> bool:
        return any(event.get("series") for event in await failures())

    change = {"metadata": {"labels": {"disk": "ssd"}}, "spec": {"unschedulable": True}}
    await api.patch(f"{NODES}/n1", change, MERGE)
    await wait_until(has_another_reason)
    change_back = {"metadata": {"labels": {"disk": None}}, "spec": {"unschedulable": None}}
    await api.patch(f"{NODES}/n1", change_back, MERGE)
    await wait_until(is_counted)


async def _requests_of_all_kinds(folder: Path) -> list[Request]:
    """The requests of a scheduler that does all its work, with lost answers and a preemption."""
    requests: list[Request] = []
    async with _deployed_scheduler(installed(), folder, requests) as deployed:
        lost_answer = FaultRule("POST", "/binding$", times=1, is_applied=True, is_dropped=True)
        deployed.cluster.faults.add(lost_answer)
        await _create_pods(deployed.api)
        await _wait_for_decisions(deployed.api)
        await _repeat_failure(deployed.api)
        await _create_pods_with_claims(deployed)
        await _create_gang(deployed.api)
        await _wait_for_devices(deployed)
        await wait_until(lambda: _has_condition(deployed.api))
        await _preempt(deployed.api)
        assert await _metrics_status(deployed.url) == 200
    return requests


async def _preempt(api: ApiClient) -> None:
    """Create two pods of which the second preempts the first."""
    await api.create(PRIORITY_CLASSES, {"metadata": {"name": "high"}, "value": 1000})
    whole_node = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "4"}}}]
    low = pod("low", schedulerName="stowage", containers=whole_node)
    low["spec"]["terminationGracePeriodSeconds"] = 0
    await api.create(PODS, low)
    await wait_until(lambda: _is_bound(api, "low"))
    high = pod("high", schedulerName="stowage", containers=whole_node)
    await api.create(PODS, {**high, "spec": {**high["spec"], "priorityClassName": "high"}})
    await wait_until(lambda: _is_bound(api, "high"))


@pytest.fixture(scope="module")
def requests(tmp_path_factory: pytest.TempPathFactory) -> list[Request]:
    """The requests of a scheduler with the manifests' roles that did all its work."""
    return asyncio.run(_requests_of_all_kinds(tmp_path_factory.mktemp("deployed")))


def test_the_manifests_roles_allow_every_request(requests: list[Request]) -> None:
    asked = {(found.attributes.verb, found.attributes.resource) for found in requests}
    assert {("create", "pods"), ("patch", "events"), ("update", "leases")} <= asked
    assert {("create", "tokenreviews"), ("create", "subjectaccessreviews")} <= asked
    assert [found for found in requests if not found.decision.is_allowed] == []


async def test_extenders_and_configuration_edits_need_no_further_rights(
    tmp_path: Path,
) -> None:
    objects = installed()
    data = the(objects, "ConfigMap")["data"]
    extender = {"urlPrefix": "http://127.0.0.1:1", "ignorable": True, "weight": 1}
    extender |= {f"{verb}Verb": verb for verb in ("filter", "prioritize", "preempt", "bind")}
    configuration = {**yaml.safe_load(data["config.yaml"]), "extenders": [extender]}
    data["config.yaml"] = yaml.safe_dump(configuration)
    asked: list[Request] = []
    async with _deployed_scheduler(objects, tmp_path, asked) as deployed:
        await _create_pods(deployed.api)
        await _wait_for_decisions(deployed.api)
        await _preempt(deployed.api)
        wrong = yaml.safe_dump({**configuration, "podMaxBackoffSeconds": -1})
        path = f"/api/v1/namespaces/{NAMESPACE}/configmaps/stowage"
        await deployed.api.patch(path, {"data": {"config.yaml": wrong}}, MERGE)

        async def has_event_about_mistake() -> bool:
            events = await deployed.api.get(EVENTS.replace("/default/", f"/{NAMESPACE}/"))
            return "InvalidConfiguration" in {each["reason"] for each in events.body["items"]}

        await wait_until(has_event_about_mistake)
    assert [found for found in asked if not found.decision.is_allowed] == []


@pytest.mark.parametrize("grant", GRANTS, ids=str)
def test_each_granted_right_is_used(grant: Grant, requests: list[Request]) -> None:
    rule = _rule_of(grant.role, grant.rule)
    narrowed = {**rule, "apiGroups": [grant.group], "resources": [grant.resource]}
    narrowed["verbs"] = [grant.verb]
    is_used = any(rule_allows(narrowed, found.attributes) for found in requests)
    assert is_used


@pytest.mark.parametrize(("kind", "index"), RULES)
async def test_a_request_is_refused_when_its_rule_is_removed(
    kind: str, index: int, tmp_path: Path
) -> None:
    rule = _rule_of(kind, index)
    objects = installed()
    rules = the(objects, kind)["rules"]
    assert rules[index] == rule
    del rules[index]
    asked: list[Request] = []

    async def is_refused() -> bool:
        return any(
            not found.decision.is_allowed and rule_allows(rule, found.attributes) for found in asked
        )

    # Without the rule that lets it read its configuration, the scheduler does not start.
    with suppress(CannotStartError):
        async with _deployed_scheduler(objects, tmp_path, asked) as deployed:
            await _create_pods(deployed.api)
            await _create_pods_with_devices(deployed.api)
            await _create_gang(deployed.api)
            await wait_until(is_refused)
    assert await is_refused()


async def test_a_user_with_the_metrics_role_reads_all_metrics(tmp_path: Path) -> None:
    monitored = kustomized(MANIFESTS / "overlays" / "monitoring")
    role = the(monitored, "ClusterRole", "stowage-metrics-reader")
    group = {"kind": "Group", "name": "system:serviceaccounts"}
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "readers"},
        "roleRef": {"kind": "ClusterRole", "name": "stowage-metrics-reader"},
        "subjects": [group],
    }
    async with _deployed_scheduler(installed(), tmp_path, []) as deployed:
        assert await _metrics_status(deployed.url, SERVICE_ACCOUNT_TOKEN) == 403
    async with _deployed_scheduler([*installed(), role, binding], tmp_path, []) as deployed:
        for path in METRICS_PATHS:
            assert await _metrics_status(deployed.url, SERVICE_ACCOUNT_TOKEN, path) == 200, path


async def test_metrics_are_refused_while_access_reviews_fail(tmp_path: Path) -> None:
    delegating = the(installed(), "ClusterRoleBinding", "stowage-auth-delegator")
    objects = [found for found in installed() if found != delegating]
    asked: list[Request] = []
    async with _deployed_scheduler(objects, tmp_path, asked) as deployed:
        assert await _metrics_status(deployed.url) == 401
    refused = [found.attributes for found in asked if not found.decision.is_allowed]
    assert {(found.verb, found.resource) for found in refused} == {("create", "tokenreviews")}


def _rule_of(kind: str, index: int) -> Json:
    (role,) = [found for found in _roles() if found["kind"] == kind]
    rule: Json = role["rules"][index]
    return rule


async def _service_account_token(api: ApiClient) -> str:
    path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/stowage/token"
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    reply = await api.post(path, request)
    if reply.status == 404:
        pytest.skip("the server has no TokenRequest: it makes no tokens for service accounts")
    assert reply.status == 201, reply.text
    token: str = reply.body["status"]["token"]
    return token


async def _skip_without_rbac(server: ApiServerUnderTest, token: str) -> None:
    async with ApiClient(server.url, token, server.tls) as unprivileged:
        reply = await unprivileged.get("/api/v1/secrets")
    if reply.status == 200:
        pytest.skip("the server does not enforce RBAC")
    user = f"system:serviceaccount:{NAMESPACE}:stowage"
    assert reply.status == 403
    assert reply.body["message"] == (
        f'secrets is forbidden: User "{user}" cannot list resource "secrets" in API group "" at '
        "the cluster scope"
    )


async def test_a_real_api_server_allows_every_request(
    api_server: ApiServerUnderTest, api: ApiClient, tmp_path: Path
) -> None:
    if api_server.is_simulated:
        pytest.skip("the other tests cover the simulated cluster")
    objects = installed()
    await apply(api, [found for found in objects if found["kind"] != "Deployment"])
    token = await _service_account_token(api)
    await _skip_without_rbac(api_server, token)
    kubeconfig: Json = yaml.safe_load(api_server.kubeconfig.read_text())
    kubeconfig["users"][0]["user"] = {"token": token}
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(kubeconfig))
    await api.delete(LEASE)
    async with running(await deployed_options(objects, path)):
        await _create_pods(api)
        await _wait_for_decisions(api)


async def test_kubectl_reports_forbidden_requests(tmp_path: Path) -> None:
    """Kubectl sends tokens over TLS only."""
    certificate, key = self_signed_certificate(tmp_path)
    options = ClusterOptions(
        token=TOKEN,
        users={SERVICE_ACCOUNT_TOKEN: service_account_user(NAMESPACE, "stowage")},
        rbac=True,
        cert_file=certificate,
        key_file=key,
    )
    async with SimulatedCluster(options=options) as cluster:
        kubectl = kubectl_for(cluster, tmp_path)
        await kubectl("apply", "-k", str(MANIFESTS))
        as_stowage = f"--token={SERVICE_ACCOUNT_TOKEN}"
        binding = ("create", "pods", "--subresource=binding")
        assert await kubectl(as_stowage, "auth", "can-i", *binding) == "yes\n"
        refused = await kubectl(as_stowage, "auth", "can-i", "get", "secrets", succeeds=False)
        assert refused == "no\n"
        forbidden = await kubectl(as_stowage, "delete", "nodes", "n1", succeeds=False)
    assert forbidden == (
        'Error from server (Forbidden): nodes "n1" is forbidden: User '
        '"system:serviceaccount:stowage-system:stowage" cannot delete resource "nodes" in API '
        'group "" at the cluster scope\n'
    )
