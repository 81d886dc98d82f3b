"""Discovery: groups, versions, kinds, and health."""

import base64
import hashlib
from typing import Any

import pytest

from simcluster.tests.support.api_client import ApiClient

Json = dict[str, Any]

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
GROUPS = [
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "discovery.k8s.io",
    "resource.k8s.io",
]
ALL_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]


async def resources(http: ApiClient, path: str) -> dict[str, Json]:
    """The resources of a group version, by name."""
    listed = (await http.get(path)).body["resources"]
    names = [found["name"] for found in listed]
    assert names == sorted(names, key=lambda name: name.split("/"))
    return {found["name"]: found for found in listed}


async def test_the_core_group_lists_its_version_and_server_address(
    http: ApiClient,
) -> None:
    body = (await http.get("/api")).body
    assert (body["kind"], body["versions"]) == ("APIVersions", ["v1"])
    (address,) = body["serverAddressByClientCIDRs"]
    assert address["clientCIDR"] == "0.0.0.0/0"
    assert ":" in address["serverAddress"]


async def test_groups_are_listed_in_the_order_of_preference(http: ApiClient) -> None:
    body = (await http.get("/apis")).body
    assert (body["kind"], body["apiVersion"]) == ("APIGroupList", "v1")
    names = [group["name"] for group in body["groups"]]
    assert [name for name in names if name in GROUPS] == GROUPS
    apps = next(group for group in body["groups"] if group["name"] == "apps")
    version = {"groupVersion": "apps/v1", "version": "v1"}
    assert apps == {"name": "apps", "versions": [version], "preferredVersion": version}
    alone = (await http.get("/apis/apps")).body
    assert alone == {"kind": "APIGroup", "apiVersion": "v1", **apps}


async def test_a_list_of_core_resources_has_no_api_version(http: ApiClient) -> None:
    body = (await http.get("/api/v1")).body
    assert (body["kind"], body["groupVersion"]) == ("APIResourceList", "v1")
    assert "apiVersion" not in body
    assert (await http.get("/apis/apps/v1")).body["apiVersion"] == "v1"


async def test_pods_are_described_with_names_verbs_and_hash(http: ApiClient) -> None:
    core = await resources(http, "/api/v1")
    assert core["pods"] == {
        "name": "pods",
        "singularName": "pod",
        "namespaced": True,
        "kind": "Pod",
        "verbs": ALL_VERBS,
        "shortNames": ["po"],
        "categories": ["all"],
        "storageVersionHash": "xPOwRZ+Yhw8=",
    }
    assert core["namespaces"]["verbs"] == [verb for verb in ALL_VERBS if verb != "deletecollection"]


@pytest.mark.parametrize(
    ("path", "name", "kind"),
    [
        ("/apis/apps/v1", "deployments", "apps/v1/Deployment"),
        ("/apis/storage.k8s.io/v1", "storageclasses", "storage.k8s.io/v1/StorageClass"),
        ("/apis/events.k8s.io/v1", "events", "/v1/Event"),
    ],
)
async def test_a_storage_version_hash_is_that_of_the_stored_version(
    http: ApiClient, path: str, name: str, kind: str
) -> None:
    digest = hashlib.sha256(kind.encode()).digest()[:8]
    expected = base64.b64encode(digest).decode()
    assert (await resources(http, path))[name]["storageVersionHash"] == expected


async def test_subresources_name_the_kind_they_take(http: ApiClient) -> None:
    core, apps = (
        await resources(http, "/api/v1"),
        await resources(http, "/apis/apps/v1"),
    )
    described: Json = {"singularName": "", "namespaced": True}
    assert core["pods/binding"] == {
        "name": "pods/binding",
        "kind": "Binding",
        "verbs": ["create"],
        **described,
    }
    assert core["pods/eviction"] == {
        "name": "pods/eviction",
        "group": "policy",
        "version": "v1",
        "kind": "Eviction",
        "verbs": ["create"],
        **described,
    }
    assert core["serviceaccounts/token"]["kind"] == "TokenRequest"
    assert core["pods/status"]["verbs"] == ["get", "patch", "update"]
    assert core["pods/exec"] == {
        "name": "pods/exec",
        "kind": "PodExecOptions",
        "verbs": ["create", "get"],
        **described,
    }
    assert apps["deployments/scale"]["group"] == "autoscaling"


async def test_reviews_can_only_be_created(http: ApiClient) -> None:
    found = await resources(http, "/apis/authorization.k8s.io/v1")
    assert found["selfsubjectaccessreviews"]["verbs"] == ["create"]
    assert found["localsubjectaccessreviews"]["namespaced"] is True
    assert "storageVersionHash" not in found["subjectaccessreviews"]


async def test_aggregated_discovery_lists_all_groups(http: ApiClient) -> None:
    reply = await http.get("/apis", f"{AGGREGATED},application/json")
    assert reply.headers["Content-Type"] == AGGREGATED
    assert (reply.body["kind"], reply.body["apiVersion"]) == (
        "APIGroupDiscoveryList",
        "apidiscovery.k8s.io/v2",
    )
    groups = {group["metadata"]["name"]: group for group in reply.body["items"]}
    (apps,) = groups["apps"]["versions"]
    assert (apps["version"], apps["freshness"]) == ("v1", "Current")
    deployments = next(found for found in apps["resources"] if found["resource"] == "deployments")
    assert deployments["scope"] == "Namespaced"
    assert deployments["singularResource"] == "deployment"
    assert deployments["shortNames"] == ["deploy"]
    assert [found["subresource"] for found in deployments["subresources"]] == ["scale", "status"]
    core = (await http.get("/api", AGGREGATED)).body["items"]
    assert [version["version"] for version in core[0]["versions"]] == ["v1"]


async def test_aggregated_discovery_is_answered_304_to_its_etag(http: ApiClient) -> None:
    first = await http.get("/apis", AGGREGATED)
    tag = first.headers["ETag"]
    again = await http.request("GET", "/apis", accept=AGGREGATED, headers={"If-None-Match": tag})
    assert (again.status, again.text) == (304, "")


async def test_the_version_is_1_36(http: ApiClient, anonymous: ApiClient) -> None:
    body = (await anonymous.get("/version")).body
    assert (body["major"], body["minor"]) == ("1", "36")
    assert body["gitVersion"].startswith("v1.36.")
    assert (await http.get("/version/")).body == body


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/livez/ping", "/readyz/etcd"])
async def test_health_endpoints_need_no_credentials(anonymous: ApiClient, path: str) -> None:
    reply = await anonymous.get(path, "*/*")
    assert (reply.status, reply.text) == (200, "ok")
    assert reply.headers["Content-Type"] == "text/plain; charset=utf-8"


@pytest.mark.parametrize("endpoint", ["healthz", "livez", "readyz"])
async def test_health_is_reported_check_by_check(http: ApiClient, endpoint: str) -> None:
    lines = (await http.get(f"/{endpoint}?verbose&exclude=etcd", "*/*")).text.splitlines()
    assert lines[0] == "[+]ping ok"
    assert "[+]etcd excluded: ok" in lines
    assert lines[-1] == f"{endpoint} check passed"


async def test_metrics_are_in_the_text_format_of_prometheus(http: ApiClient) -> None:
    reply = await http.get("/metrics", "*/*")
    assert reply.headers["Content-Type"].startswith("text/plain; version=0.0.4; charset=utf-8")
    assert "apiserver_request_total{" in reply.text


async def test_every_default_api_group_is_served(http: ApiClient) -> None:
    groups = {found["name"] for found in (await http.get("/apis")).body["groups"]}
    assert groups >= {
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
        "apiregistration.k8s.io",
        "apps",
        "authentication.k8s.io",
        "authorization.k8s.io",
        "autoscaling",
        "batch",
        "certificates.k8s.io",
        "coordination.k8s.io",
        "discovery.k8s.io",
        "events.k8s.io",
        "flowcontrol.apiserver.k8s.io",
        "networking.k8s.io",
        "node.k8s.io",
        "policy",
        "rbac.authorization.k8s.io",
        "resource.k8s.io",
        "scheduling.k8s.io",
        "storage.k8s.io",
    }


async def test_a_new_cluster_has_the_kubernetes_service_and_api_services(http: ApiClient) -> None:
    service = (await http.get("/api/v1/namespaces/default/services/kubernetes")).body
    assert service["metadata"]["labels"] == {"component": "apiserver", "provider": "kubernetes"}
    assert service["spec"]["ports"][0]["port"] == 443
    listed = (await http.get("/apis/apiregistration.k8s.io/v1/apiservices")).body["items"]
    apps = next(found for found in listed if found["metadata"]["name"] == "v1.apps")
    assert apps["status"]["conditions"][0]["status"] == "True"
    assert (apps["spec"]["group"], apps["spec"]["version"]) == ("apps", "v1")


async def test_paths_are_listed_at_the_root(http: ApiClient) -> None:
    paths = (await http.get("/")).body["paths"]
    wanted = {"/api", "/api/v1", "/apis", "/apis/apps", "/apis/apps/v1", "/healthz", "/openapi/v3"}
    assert wanted <= set(paths)
    assert paths == sorted(paths)
