"""ResourceQuotas limit what their status says; without controllers a client writes it."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from simcluster.tests.contract.requests import CLAIMS, CONFIG_MAPS, PODS, SERVICES
from simcluster.tests.support.api_client import MERGE, ApiClient, Reply, config_map, pod

Json = dict[str, Any]

QUOTAS = "/api/v1/namespaces/default/resourcequotas"


@pytest.fixture(autouse=True)
async def _nothing_is_left(api: ApiClient) -> AsyncIterator[None]:
    yield
    for path in (QUOTAS, PODS, CLAIMS, CONFIG_MAPS):
        await api.delete(path)


async def limit(
    api: ApiClient, *, used: Json | None = None, spec: Json | None = None, **hard: str
) -> None:
    """Create the quota q, with a status."""
    amounts = {name.replace("__", "/").replace("_", "."): amount for name, amount in hard.items()}
    await api.create(QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": amounts, **(spec or {})}})
    counted = dict.fromkeys(amounts, "0") if used is None else used
    status = {"hard": amounts, "used": counted}
    reply = await api.patch(f"{QUOTAS}/q/status", {"status": status})
    assert reply.status == 200, reply.text


async def used(api: ApiClient) -> Json:
    status: Json = (await api.get(f"{QUOTAS}/q")).body["status"]
    found: Json = status["used"]
    return found


def asking(name: str = "a", **resources: Json) -> Json:
    container = {"name": "c", "image": "x:1", "resources": resources}
    return pod(name, containers=[container])


def refusal(reply: Reply) -> str:
    assert (reply.status, reply.body["reason"]) == (403, "Forbidden"), reply.text
    message: str = reply.body["message"]
    return message.partition(" is forbidden: ")[2]


async def test_a_pod_that_exceeds_a_quota_is_refused(api: ApiClient) -> None:
    await limit(api, pods="1", requests_cpu="1")
    half: Json = {"requests": {"cpu": "500m"}}
    await api.create(PODS, asking(**half))
    assert await used(api) == {"pods": "1", "requests.cpu": "500m"}
    assert refusal(await api.post(PODS, asking("b", **half))) == (
        "exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1"
    )
    more: Json = {"requests": {"cpu": "600m"}}
    assert refusal(await api.post(PODS, asking("b", **more))) == (
        "exceeded quota: q, requested: pods=1,requests.cpu=600m, used: pods=1,requests.cpu=500m, "
        "limited: pods=1,requests.cpu=1"
    )
    assert await used(api) == {"pods": "1", "requests.cpu": "500m"}


async def test_containers_must_name_the_cpu_and_memory_that_a_quota_limits(api: ApiClient) -> None:
    await limit(api, limits_memory="1Gi", requests_cpu="1", requests_ephemeral_storage="1Gi")
    assert refusal(await api.post(PODS, asking(requests={"cpu": "1"}))) == (
        "failed quota: q: must specify limits.memory for: c"
    )
    assert refusal(await api.post(PODS, asking())) == (
        "failed quota: q: must specify limits.memory for: c; requests.cpu for: c"
    )


async def test_a_quota_without_a_status_limits_nothing(api: ApiClient) -> None:
    await api.create(QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "0"}}})
    await api.create(PODS, pod())


async def test_a_quota_whose_usage_is_unknown_admits_nothing(api: ApiClient) -> None:
    await limit(api, pods="1", used={})
    assert refusal(await api.post(PODS, pod())) == "status unknown for quota: q, resources: pods"


async def test_a_dry_run_uses_nothing(api: ApiClient) -> None:
    await limit(api, pods="1")
    assert (await api.post(f"{PODS}?dryRun=All", pod())).status == 201
    assert await used(api) == {"pods": "0"}


async def test_objects_are_counted_by_their_resource(api: ApiClient) -> None:
    await limit(api, configmaps="2", count__configmaps="1", count__deployments_apps="0")
    await api.create(CONFIG_MAPS, config_map("a"))
    assert await used(api) == {
        "configmaps": "1",
        "count/configmaps": "1",
        "count/deployments.apps": "0",
    }
    assert refusal(await api.post(CONFIG_MAPS, config_map("b"))) == (
        "exceeded quota: q, requested: count/configmaps=1, used: count/configmaps=1, "
        "limited: count/configmaps=1"
    )


async def test_only_pods_of_its_scope_count_for_a_quota(api: ApiClient) -> None:
    await limit(api, pods="0", spec={"scopes": ["BestEffort"]})
    assert refusal(await api.post(PODS, pod(containers=[{"name": "c", "image": "x:1"}]))) == (
        "exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0"
    )
    await api.create(PODS, asking(requests={"cpu": "1"}))


async def test_pods_of_a_priority_class_count_for_a_quota_that_selects_it(api: ApiClient) -> None:
    selector = {"scopeName": "PriorityClass", "operator": "In", "values": ["system-node-critical"]}
    await limit(api, pods="0", spec={"scopeSelector": {"matchExpressions": [selector]}})
    critical = pod("a", priorityClassName="system-node-critical")
    assert refusal(await api.post(PODS, critical)).startswith("exceeded quota: q")
    await api.create(PODS, pod("b"))


async def test_claims_count_by_storage_and_storage_class(api: ApiClient) -> None:
    hard = {"gold.storageclass.storage.k8s.io/requests.storage": "2Gi", "requests.storage": "5Gi"}
    await api.create(QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": hard}})
    status = {"hard": hard, "used": dict.fromkeys(hard, "0")}
    await api.patch(f"{QUOTAS}/q/status", {"status": status})

    def claim(name: str, size: str) -> Json:
        resources = {"requests": {"storage": size}}
        spec = {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "gold",
            "resources": resources,
        }
        return {"metadata": {"name": name}, "spec": spec}

    await api.create(CLAIMS, claim("a", "1536Mi"))
    assert await used(api) == dict.fromkeys(hard, "1536Mi")
    name = "gold.storageclass.storage.k8s.io/requests.storage"
    assert refusal(await api.post(CLAIMS, claim("b", "1Gi"))) == (
        f"exceeded quota: q, requested: {name}=1Gi, used: {name}=1536Mi, limited: {name}=2Gi"
    )


async def test_a_service_that_becomes_a_node_port_counts_its_ports(api: ApiClient) -> None:
    await limit(api, services="1", services_nodeports="1")
    ports = [{"name": "a", "port": 1}, {"name": "b", "port": 2}]
    service = {"metadata": {"name": "s"}, "spec": {"ports": ports}}
    await api.create(SERVICES, service)
    try:
        changed = {"spec": {"type": "NodePort"}}
        reply = await api.request("PATCH", f"{SERVICES}/s", changed, MERGE)
        assert refusal(reply) == (
            "exceeded quota: q, requested: services.nodeports=2, used: services.nodeports=0, "
            "limited: services.nodeports=1"
        )
    finally:
        await api.delete(f"{SERVICES}/s")
