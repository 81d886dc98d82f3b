"""The typed clients, which reject answers with missing fields or fields of wrong types."""

import asyncio
import queue
import threading
from typing import Any

import kubernetes.client
import kubernetes.informer
import kubernetes.leaderelection.electionconfig
import kubernetes.leaderelection.leaderelection
import kubernetes.leaderelection.resourcelock.leaselock
import kubernetes.utils
import pytest
from kubernetes.client.exceptions import ApiException

from simcluster.tests.contract.requests import TEMPLATE, deployment
from simcluster.tests.support.api_client import NODES, ApiClient, node, pod
from simcluster.tests.support.timeouts import WAIT_TIMEOUT_S

Json = dict[str, Any]
Client = kubernetes.client.ApiClient
# What the package does not type.
Utils: Any = kubernetes.utils
Informer: Any = kubernetes.informer.SharedInformer
Election: Any = kubernetes.leaderelection.leaderelection.LeaderElection
ElectionConfig: Any = kubernetes.leaderelection.electionconfig.Config
Lock: Any = kubernetes.leaderelection.resourcelock.leaselock.LeaseLock

APPLY = "application/apply-patch+yaml"
CERTIFICATE_REQUEST = (
    "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlHTU1FQUNBUUF3RFRFTE1Ba0dBMVVFQXd3"
    "Q2JXVXdLakFGQmdNclpYQURJUUFXbXlFYVFnK0IxNEk0d20yaQpnWWYyN2Q2eEF1QlA3YzlvT0V2L3RObEtM"
    "YUFBTUFVR0F5dGxjQU5CQUFCYkhTVnJSNHQzMjhEY0xsdjVScmdhCmRZckJWSENsOTc5bzJ5VWJ6VzExVG5I"
    "L04xbWdyeUZxTUoxc2YyZStSdkxTN3dhNU16ZU5DQ2E1V0pIUGJ3Zz0KLS0tLS1FTkQgQ0VSVElGSUNBVEUg"
    "UkVRVUVTVC0tLS0tCg=="
)
"""A certificate signing request in base64; its key was discarded."""
# The client insists on an eventTime, which core Events need not have.
_UNREADABLE = ("EventsV1Api", "list_event_for_all_namespaces")
OBJECTS: list[Json] = [
    deployment("read"),
    {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "read"},
        "spec": {
            "schedule": "@daily",
            "jobTemplate": {
                "spec": {"template": {"spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}}
            },
        },
    },
    {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "read"},
        "spec": {"maxReplicas": 2, "scaleTargetRef": {"kind": "Deployment", "name": "read"}},
    },
    {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "read"},
        "spec": {"maxUnavailable": "50%", "selector": {"matchLabels": {"app": "w"}}},
    },
    {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": "read"},
        "spec": {"podSelector": {}},
    },
    {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "read"},
        "spec": {"selector": {"app": "w"}, "ports": [{"port": 80}]},
    },
]
"""One object of each kind, created by the client's ``create_from_yaml``."""


@pytest.fixture
async def made(http: ApiClient, sync_client: Client) -> list[Any]:
    """The created objects, as the client decoded them from the answers."""
    del http
    made = await asyncio.to_thread(Utils.create_from_yaml, sync_client, yaml_objects=OBJECTS)
    return [found for each in made for found in each]


def _lists(client: Client) -> list[tuple[str, str, Any]]:
    """The list methods of all APIs, across namespaces."""
    found = []
    for name in dir(kubernetes.client):
        made: Any = getattr(kubernetes.client, name)
        if not name.endswith("Api") or name == "CustomObjectsApi" or not callable(made):
            continue
        api = made(client)
        for call in dir(api):
            if not call.startswith("list_") or call.startswith("list_namespaced_"):
                continue
            if not call.endswith(("_with_http_info", "_without_preload_content")):
                found.append((name, call, getattr(api, call)))
    return found


async def test_the_client_decodes_every_list(made: list[Any], sync_client: Client) -> None:
    assert len(made) == len(OBJECTS)

    def kinds_read() -> set[str]:
        kinds = set()
        for api, name, call in _lists(sync_client):
            if (api, name) == _UNREADABLE:
                continue
            try:
                kinds.add(call().kind)
            except ApiException as error:
                if error.status != 404:
                    raise
        return kinds

    kinds = await asyncio.to_thread(kinds_read)
    assert {f"{each['kind']}List" for each in OBJECTS} <= kinds
    assert {"APIServiceList", "ServiceCIDRList"} <= kinds


async def test_replacing_an_object_with_itself_changes_nothing(
    http: ApiClient, sync_client: Client
) -> None:
    core: Any = kubernetes.client.CoreV1Api(sync_client)
    apps: Any = kubernetes.client.AppsV1Api(sync_client)
    await http.create(NODES, node("back"))

    def versions() -> list[tuple[str, str]]:
        body = deployment("back")
        apps.create_namespaced_deployment("default", body)
        core.create_namespaced_pod("default", pod("back"))
        pairs = (
            (apps.read_namespaced_deployment, apps.replace_namespaced_deployment),
            (core.read_namespaced_pod, core.replace_namespaced_pod),
            (core.read_namespaced_pod, core.replace_namespaced_pod_status),
        )
        found = []
        for read, replace in pairs:
            before = read("back", "default")
            after = replace("back", "default", before)
            found.append((before.metadata.resource_version, after.metadata.resource_version))
        one = core.read_node("back")
        found.append((one.metadata.resource_version, core.replace_node("back", one).metadata))
        return [(str(x), str(getattr(y, "resource_version", y))) for x, y in found]

    for before, after in await asyncio.to_thread(versions):
        assert before == after


async def test_items_of_yaml_lists_are_created_one_by_one(sync_client: Client) -> None:
    body = {
        "apiVersion": "v1",
        "kind": "List",
        "items": [
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "listed"}},
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "listed"}},
        ],
    }
    made = await asyncio.to_thread(Utils.create_from_yaml, sync_client, yaml_objects=[body])
    assert [each.kind for each in made[0]] == ["ConfigMap", "Secret"]
    with pytest.raises(Utils.FailToCreateError) as caught:
        await asyncio.to_thread(Utils.create_from_yaml, sync_client, yaml_objects=[body])
    assert [error.status for error in caught.value.api_exceptions] == [409, 409]


async def test_the_client_applies_yaml(sync_client: Client) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "ap"}, "data": {"a": "b"}}
    for _ in range(2):
        made = await asyncio.to_thread(
            lambda: Utils.create_from_yaml(sync_client, yaml_objects=[body], apply=True)
        )
    entry = made[0][0].metadata.managedFields[0]
    assert (entry.manager, entry.operation) == ("python-client", "Apply")


async def test_a_pod_without_a_node_has_no_log(sync_client: Client) -> None:
    core: Any = kubernetes.client.CoreV1Api(sync_client)
    await asyncio.to_thread(core.create_namespaced_pod, "default", pod("silent"))
    assert await asyncio.to_thread(core.read_namespaced_pod_log, "silent", "default") is None
    with pytest.raises(ApiException) as caught:
        await asyncio.to_thread(
            lambda: core.read_namespaced_pod_log("silent", "default", container="third")
        )
    assert caught.value.status == 400


async def test_a_deletion_can_have_a_resource_version_as_precondition(sync_client: Client) -> None:
    core: Any = kubernetes.client.CoreV1Api(sync_client)
    made = await asyncio.to_thread(core.create_namespaced_pod, "default", pod("tied"))

    def delete(version: str) -> Any:
        options = kubernetes.client.V1DeleteOptions(
            grace_period_seconds=0,
            preconditions=kubernetes.client.V1Preconditions(resource_version=version),
        )
        return core.delete_namespaced_pod("tied", "default", body=options)

    with pytest.raises(ApiException) as caught:
        await asyncio.to_thread(delete, "1")
    assert caught.value.status == 409
    gone = await asyncio.to_thread(delete, made.metadata.resource_version)
    assert gone.metadata.uid == made.metadata.uid


async def test_a_status_can_be_applied(sync_client: Client) -> None:
    core: Any = kubernetes.client.CoreV1Api(sync_client)
    await asyncio.to_thread(core.create_namespaced_pod, "default", pod("applied"))
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "applied"},
        "status": {"conditions": [{"type": "example.com/Mine", "status": "True"}]},
    }
    changed = await asyncio.to_thread(
        lambda: core.patch_namespaced_pod_status(
            "applied", "default", body, field_manager="me", force=True, _content_type=APPLY
        )
    )
    assert [each.type for each in changed.status.conditions] == ["example.com/Mine"]
    entry = changed.metadata.managed_fields[0]
    assert (entry.manager, entry.operation, entry.subresource) == ("me", "Apply", "status")


async def test_the_user_of_a_certificate_signing_request_is_recorded(sync_client: Client) -> None:
    api: Any = kubernetes.client.CertificatesV1Api(sync_client)
    spec = kubernetes.client.V1CertificateSigningRequestSpec(
        request=CERTIFICATE_REQUEST,
        signer_name="example.com/signer",
        usages=["client auth"],
        username="somebody-else",
    )
    body = kubernetes.client.V1CertificateSigningRequest(
        metadata=kubernetes.client.V1ObjectMeta(name="asked"), spec=spec
    )
    made = await asyncio.to_thread(api.create_certificate_signing_request, body)
    assert made.spec.username not in {"", None, "somebody-else"}
    assert "system:authenticated" in made.spec.groups
    assert made.status is not None
    await asyncio.to_thread(api.delete_certificate_signing_request, "asked")


async def test_an_informer_follows_changes(sync_client: Client) -> None:
    core: Any = kubernetes.client.CoreV1Api(sync_client)
    seen: queue.Queue[tuple[str, str]] = queue.Queue()
    informer = Informer(
        core.list_namespaced_config_map, namespace="default", label_selector="kept=yes"
    )
    for kind in ("ADDED", "MODIFIED", "DELETED"):
        informer.add_event_handler(
            kind, lambda found, kind=kind: seen.put((kind, found.metadata.name))
        )

    def steps() -> None:
        core.create_namespaced_config_map("default", _kept("first"))
        informer.start()
        assert seen.get(timeout=WAIT_TIMEOUT_S) == ("ADDED", "first")
        core.create_namespaced_config_map("default", _kept("second"))
        assert seen.get(timeout=WAIT_TIMEOUT_S) == ("ADDED", "second")
        core.patch_namespaced_config_map("second", "default", {"data": {"a": "b"}})
        assert seen.get(timeout=WAIT_TIMEOUT_S) == ("MODIFIED", "second")
        core.delete_namespaced_config_map("first", "default")
        assert seen.get(timeout=WAIT_TIMEOUT_S) == ("DELETED", "first")
        assert informer.cache.list_keys() == ["default/second"]

    try:
        await asyncio.to_thread(steps)
    finally:
        await asyncio.to_thread(informer.stop)


def _kept(name: str) -> Json:
    return {"metadata": {"name": name, "labels": {"kept": "yes"}}}


class _BreakableLock(Lock):  # type: ignore[misc]
    """The client's lock, which can be made to fail, so that its holder loses the leadership."""

    def __init__(self, name: str, namespace: str, identity: str) -> None:
        super().__init__(name, namespace, identity)
        self.is_broken = False
        self.renewed = threading.Event()

    def update(self, name: str, namespace: str, updated_record: Any) -> bool:
        if self.is_broken:
            return False
        is_renewed = bool(super().update(name, namespace, updated_record))
        if is_renewed:
            self.renewed.set()
        return is_renewed


async def test_the_synchronous_client_elects_a_leader(
    sync_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        kubernetes.client.Configuration, "_default", sync_client.configuration, raising=False
    )
    elected, over = threading.Event(), threading.Event()
    lock = _BreakableLock("synchronous", "default", "me")
    config = ElectionConfig(lock, 3, 2, 1, elected.set, over.set)
    running = threading.Thread(target=Election(config).run)
    running.start()
    try:
        assert await asyncio.to_thread(elected.wait, WAIT_TIMEOUT_S)
        assert await asyncio.to_thread(lock.renewed.wait, WAIT_TIMEOUT_S)
    finally:
        lock.is_broken = True
        await asyncio.to_thread(running.join)
    assert over.is_set()
    api: Any = kubernetes.client.CoordinationV1Api(sync_client)
    lease = await asyncio.to_thread(api.read_namespaced_lease, "synchronous", "default")
    assert (lease.spec.holder_identity, lease.spec.lease_duration_seconds) == ("me", 3)
    assert lease.spec.renew_time > lease.spec.acquire_time
