"""The manifests' roles let the scheduler do its work, and nothing in them is left unused."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
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
from simcluster.tests.integration.test_kubectl import kubectl_for
from simcluster.tests.support.api_client import MERGE, NODES, PODS, ApiClient, node, pod
from simcluster.tests.support.api_servers import ApiServerUnderTest, self_signed_certificate
from simcluster.tests.support.timeouts import WAIT_TIMEOUT_S
from tests.integration.deployed import (
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
from tests.integration.volume_objects import (
    HOSTNAME,
    LOCAL,
    MADE,
    VolumeController,
    claim,
    using,
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


class Grant(NamedTuple):
    """One verb on one resource, the smallest thing a rule can give."""

    role: str
    rule: int
    group: str
    resource: str
    verb: str

    def __str__(self) -> str:
        """As ``kubectl auth can-i`` would be asked."""
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
    """A request of the scheduler, and whether it was let through."""

    attributes: Attributes
    decision: Decision


async def _eventually(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(WAIT_TIMEOUT_S):
        while not await condition():  # noqa: ASYNC110 - the server tells nobody
            await asyncio.sleep(0.02)


class RuleCase(NamedTuple):
    """A scheduler that runs in an embedded cluster with the rights of its service account."""

    api: ApiClient
    cluster: SimulatedCluster
    url: str


@asynccontextmanager
async def _told(
    objects: Sequence[Json], folder: Path, requests: list[Request]
) -> AsyncIterator[RuleCase]:
    """Deploy ``objects`` where roles count, and collect what the scheduler asks for."""
    user = service_account_user(NAMESPACE, "stowage")
    options = ClusterOptions(
        token=TOKEN,
        users={SERVICE_ACCOUNT_TOKEN: user},
        rbac=True,
        with_kubelet=False,
        with_controllers=False,
    )
    async with (
        SimulatedCluster(options=options) as cluster,
        ApiClient(cluster.url, TOKEN) as api,
    ):

        def audit(asking: User, attributes: Attributes, decision: Decision) -> None:
            if asking == user:
                requests.append(Request(attributes, decision))

        cluster.server.access.audit = audit
        await apply(api, objects)
        kubeconfig = write_kubeconfig(folder / "kubeconfig", cluster.url, SERVICE_ACCOUNT_TOKEN)
        async with running(await deployed_options(objects, kubeconfig)) as url:
            yield RuleCase(api, cluster, url)


async def _metrics_status(url: str, token: str = TOKEN) -> int:
    """What somebody is answered, the cluster's administrator by default, who asks for metrics."""
    async with serving_client(url, token) as client, client.get("/metrics") as answer:
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


async def _create_pods_with_claims(story: RuleCase) -> None:
    """A volume to give away, a claim to send to a node, and the answers to both lost."""
    for path in ("/persistentvolumes/data-volume$", f"/persistentvolumeclaims/data-{MADE}$"):
        lost = FaultRule("PATCH", path, is_applied=True, is_dropped=True)
        story.cluster.faults.add(lost)
    await story.api.patch(f"{NODES}/n1", {"metadata": {"labels": {HOSTNAME: "n1"}}}, MERGE)
    volumes = VolumeController(story.api)
    await volumes.add_classes()
    await volumes.add_volume(volume("data-volume", "n1"))
    for class_name in (LOCAL, MADE):
        await volumes.add_claim(claim(f"data-{class_name}", class_name))
        uses = using(f"data-{class_name}")
        await story.api.create(PODS, pod(class_name, schedulerName="stowage", volumes=uses))
    await volumes.claim_of_volume("data-volume")
    await volumes.bind(f"data-{LOCAL}", "data-volume")
    await volumes.provision(f"data-{MADE}")
    for class_name in (LOCAL, MADE):
        await _eventually(partial(_is_bound, story.api, class_name))


async def _work_is_done(api: ApiClient) -> None:
    """One pod gets its node, the other is told why not; the Lease is held."""
    await _eventually(lambda: _is_bound(api, "placed"))

    async def scheduled_is_told() -> bool:
        return bool(await _events_of(api, "placed", "Scheduled"))

    async def failure_is_told() -> bool:
        return bool(await _events_of(api, "picky", "FailedScheduling"))

    async def lease_is_held() -> bool:
        answer = await api.get(LEASE)
        return answer.status == 200 and bool(answer.body["spec"].get("holderIdentity"))

    await _eventually(scheduled_is_told)
    await _eventually(failure_is_told)
    await _eventually(lambda: _says_unschedulable(api, "picky"))
    await _eventually(lease_is_held)


async def _failure_repeats(api: ApiClient) -> None:
    """The node fits, but is cordoned; then it is as before, and so is the reason."""

    async def failures() -> list[Json]:
        return await _events_of(api, "picky", "FailedScheduling")

    async def has_another_reason() -> bool:
        return len(await failures()) > 1

    async def is_counted() -> bool:
        return any(event.get("series") for event in await failures())

    change = {"metadata": {"labels": {"disk": "ssd"}}, "spec": {"unschedulable": True}}
    await api.patch(f"{NODES}/n1", change, MERGE)
    await _eventually(has_another_reason)
    change_back = {"metadata": {"labels": {"disk": None}}, "spec": {"unschedulable": None}}
    await api.patch(f"{NODES}/n1", change_back, MERGE)
    await _eventually(is_counted)


async def _whole_story(folder: Path) -> list[Request]:
    """Everything the scheduler asks for, in a life with trouble and a preemption."""
    requests: list[Request] = []
    async with _told(installed(), folder, requests) as story:
        lost_answer = FaultRule("POST", "/binding$", times=1, is_applied=True, is_dropped=True)
        story.cluster.faults.add(lost_answer)
        await _create_pods(story.api)
        await _work_is_done(story.api)
        await _failure_repeats(story.api)
        await _create_pods_with_claims(story)
        await _room_is_made(story.api)
        assert await _metrics_status(story.url) == 200
    return requests


async def _room_is_made(api: ApiClient) -> None:
    """A pod that matters takes the place of one that does not."""
    await api.create(PRIORITY_CLASSES, {"metadata": {"name": "high"}, "value": 1000})
    whole_node = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "4"}}}]
    humble = pod("humble", schedulerName="stowage", containers=whole_node)
    humble["spec"]["terminationGracePeriodSeconds"] = 0
    await api.create(PODS, humble)
    await _eventually(lambda: _is_bound(api, "humble"))
    urgent = pod("urgent", schedulerName="stowage", containers=whole_node)
    await api.create(PODS, {**urgent, "spec": {**urgent["spec"], "priorityClassName": "high"}})
    await _eventually(lambda: _is_bound(api, "urgent"))


@pytest.fixture(scope="module")
def requests(tmp_path_factory: pytest.TempPathFactory) -> list[Request]:
    """What a scheduler with the manifests' roles asked for while it did all its work."""
    return asyncio.run(_whole_story(tmp_path_factory.mktemp("deployed")))


def test_the_manifests_rights_suffice(requests: list[Request]) -> None:
    asked = {(found.attributes.verb, found.attributes.resource) for found in requests}
    assert {("create", "pods"), ("patch", "events"), ("update", "leases")} <= asked
    assert {("create", "tokenreviews"), ("create", "subjectaccessreviews")} <= asked
    assert [found for found in requests if not found.decision.is_allowed] == []


async def test_extenders_and_edits_of_the_configuration_need_no_further_right(
    tmp_path: Path,
) -> None:
    objects = installed()
    data = the(objects, "ConfigMap")["data"]
    extender = {"urlPrefix": "http://127.0.0.1:1", "ignorable": True, "weight": 1}
    extender |= {f"{verb}Verb": verb for verb in ("filter", "prioritize", "preempt", "bind")}
    configuration = {**yaml.safe_load(data["config.yaml"]), "extenders": [extender]}
    data["config.yaml"] = yaml.safe_dump(configuration)
    asked: list[Request] = []
    async with _told(objects, tmp_path, asked) as story:
        await _create_pods(story.api)
        await _work_is_done(story.api)
        await _room_is_made(story.api)
        wrong = yaml.safe_dump({**configuration, "podMaxBackoffSeconds": -1})
        path = f"/api/v1/namespaces/{NAMESPACE}/configmaps/stowage"
        await story.api.patch(path, {"data": {"config.yaml": wrong}}, MERGE)

        async def mistake_is_told() -> bool:
            events = await story.api.get(EVENTS.replace("/default/", f"/{NAMESPACE}/"))
            return "InvalidConfiguration" in {each["reason"] for each in events.body["items"]}

        await _eventually(mistake_is_told)
    assert [found for found in asked if not found.decision.is_allowed] == []


@pytest.mark.parametrize("grant", GRANTS, ids=str)
def test_no_right_is_given_that_is_not_used(grant: Grant, requests: list[Request]) -> None:
    rule = _rule_of(grant.role, grant.rule)
    narrowed = {**rule, "apiGroups": [grant.group], "resources": [grant.resource]}
    narrowed["verbs"] = [grant.verb]
    is_used = any(rule_allows(narrowed, found.attributes) for found in requests)
    assert is_used


@pytest.mark.parametrize(("kind", "index"), RULES)
async def test_without_any_one_rule_a_request_is_refused(
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

    # It may not even start: without its configuration it does not.
    with suppress(CannotStartError):
        async with _told(objects, tmp_path, asked) as story:
            await _create_pods(story.api)
            await _eventually(is_refused)
    assert await is_refused()


async def test_a_user_with_the_metrics_role_reads_metrics(tmp_path: Path) -> None:
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
    async with _told(installed(), tmp_path, []) as story:
        assert await _metrics_status(story.url, SERVICE_ACCOUNT_TOKEN) == 403
    async with _told([*installed(), role, binding], tmp_path, []) as story:
        assert await _metrics_status(story.url, SERVICE_ACCOUNT_TOKEN) == 200


async def test_metrics_are_refused_while_access_reviews_fail(tmp_path: Path) -> None:
    delegating = the(installed(), "ClusterRoleBinding", "stowage-auth-delegator")
    objects = [found for found in installed() if found != delegating]
    asked: list[Request] = []
    async with _told(objects, tmp_path, asked) as story:
        assert await _metrics_status(story.url) == 401
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


async def _check_that_roles_count(server: ApiServerUnderTest, token: str) -> None:
    async with ApiClient(server.url, token, server.tls) as stranger:
        reply = await stranger.get("/api/v1/secrets")
    if reply.status == 200:
        pytest.skip("the server does not enforce RBAC")
    user = f"system:serviceaccount:{NAMESPACE}:stowage"
    assert reply.status == 403
    assert reply.body["message"] == (
        f'secrets is forbidden: User "{user}" cannot list resource "secrets" in API group "" at '
        "the cluster scope"
    )


async def test_the_rights_suffice_on_another_api_server(
    api_server: ApiServerUnderTest, api: ApiClient, tmp_path: Path
) -> None:
    if api_server.is_embedded:
        pytest.skip("the embedded cluster is told by the other tests")
    objects = installed()
    await apply(api, [found for found in objects if found["kind"] != "Deployment"])
    token = await _service_account_token(api)
    await _check_that_roles_count(api_server, token)
    kubeconfig: Json = yaml.safe_load(api_server.kubeconfig.read_text())
    kubeconfig["users"][0]["user"] = {"token": token}
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(kubeconfig))
    await api.delete(LEASE)
    async with running(await deployed_options(objects, path)):
        await _create_pods(api)
        await _work_is_done(api)


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
