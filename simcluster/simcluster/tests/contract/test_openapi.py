"""The OpenAPI documents that ``kubectl explain`` and ``kubectl apply`` read."""

from typing import Any

import pytest

from simcluster.tests.support.api_client import ApiClient

Json = dict[str, Any]

POD_SPEC = "io.k8s.api.core.v1.PodSpec"


async def document(http: ApiClient, group_version: str) -> Json:
    """The document of a group version, read from its address in the index."""
    index = (await http.get("/openapi/v3")).body["paths"]
    reply = await http.get(index[group_version]["serverRelativeURL"])
    assert reply.status == 200
    return reply.body


async def test_addresses_in_the_index_contain_the_hash_of_the_document(http: ApiClient) -> None:
    index = (await http.get("/openapi/v3")).body["paths"]
    assert {"api/v1", "apis/apps/v1", "apis/batch/v1"} <= set(index)
    url = index["apis/apps/v1"]["serverRelativeURL"]
    path, _, digest = url.partition("?hash=")
    assert path == "/openapi/v3/apis/apps/v1"
    assert len(digest) == 128
    reply = await http.get(url)
    assert "immutable" in reply.headers["Cache-Control"]


async def test_the_fields_of_a_pod_have_types_and_descriptions(http: ApiClient) -> None:
    body = await document(http, "api/v1")
    assert body["openapi"].startswith("3.0")
    schemas = body["components"]["schemas"]
    spec = schemas[POD_SPEC]
    assert spec["required"] == ["containers"]
    assert spec["properties"]["nodeName"]["type"] == "string"
    assert "scheduler" in spec["properties"]["schedulerName"]["description"]
    assert spec["properties"]["priority"]["type"] == "integer"
    pod = schemas["io.k8s.api.core.v1.Pod"]
    gvk = {"group": "", "kind": "Pod", "version": "v1"}
    assert pod["x-kubernetes-group-version-kind"] == [gvk]
    assert pod["properties"]["spec"]["allOf"] == [{"$ref": f"#/components/schemas/{POD_SPEC}"}]


async def test_lists_have_merge_strategies(http: ApiClient) -> None:
    schemas = (await document(http, "api/v1"))["components"]["schemas"]
    containers = schemas[POD_SPEC]["properties"]["containers"]
    assert containers["x-kubernetes-patch-merge-key"] == "name"
    assert containers["x-kubernetes-patch-strategy"] == "merge"
    assert containers["x-kubernetes-list-type"] == "map"
    ports = schemas["io.k8s.api.core.v1.Container"]["properties"]["ports"]
    assert ports["x-kubernetes-patch-merge-key"] == "containerPort"
    assert ports["x-kubernetes-list-map-keys"] == ["containerPort", "protocol"]
    volumes = schemas[POD_SPEC]["properties"]["volumes"]
    assert volumes["x-kubernetes-patch-strategy"] == "merge,retainKeys"
    tolerations = schemas[POD_SPEC]["properties"]["tolerations"]
    assert tolerations["x-kubernetes-list-type"] == "atomic"


@pytest.mark.parametrize(
    ("group_version", "path"),
    [
        ("api/v1", "/api/v1/namespaces/{namespace}/pods/{name}"),
        ("apis/apps/v1", "/apis/apps/v1/namespaces/{namespace}/deployments/{name}"),
        ("apis/scheduling.k8s.io/v1", "/apis/scheduling.k8s.io/v1/priorityclasses/{name}"),
    ],
)
async def test_paths_have_a_kind_and_the_field_validation_parameter(
    http: ApiClient, group_version: str, path: str
) -> None:
    body = await document(http, group_version)
    patch = body["paths"][path]["patch"]
    assert set(patch["x-kubernetes-group-version-kind"]) == {"group", "kind", "version"}
    assert patch["x-kubernetes-action"] == "patch"
    names = {parameter.get("name") for parameter in patch["parameters"]}
    assert {"dryRun", "fieldManager", "fieldValidation", "force"} <= names
    assert "application/strategic-merge-patch+json" in patch["requestBody"]["content"]


async def test_every_reference_exists(http: ApiClient) -> None:
    for group_version in (await http.get("/openapi/v3")).body["paths"]:
        if not group_version.startswith("api"):
            continue
        body = await document(http, group_version)
        schemas = body.get("components", {}).get("schemas", {})
        missing = [name for name in references(body) if name not in schemas]
        assert not missing, (group_version, missing)


def references(value: object) -> list[str]:
    """The schemas that a part of a document references."""
    if isinstance(value, list):
        return [found for item in value for found in references(item)]
    if not isinstance(value, dict):
        return []
    found = [name for item in value.values() for name in references(item)]
    reference = value.get("$ref")
    if isinstance(reference, str):
        found.append(reference.removeprefix("#/components/schemas/"))
    return found


async def test_the_openapi_v2_document_is_served(http: ApiClient) -> None:
    body = (await http.get("/openapi/v2")).body
    assert body["swagger"] == "2.0"
    assert "nodeName" in body["definitions"][POD_SPEC]["properties"]
