"""POST: bodies, unknown and duplicate fields, dry runs, names and namespaces."""

from typing import Any

import pytest

from simcluster.tests.contract import requests as sent
from simcluster.tests.contract.causes import INVALID, causes
from simcluster.tests.contract.requests import deployment
from simcluster.tests.support.api_client import ApiClient, config_map, pod

Json = dict[str, Any]

MISMATCHES: list[tuple[str, Json, str]] = [
    (
        sent.PODS,
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}},
        'ConfigMap in version "v1" cannot be handled as a Pod',
    ),
    (
        sent.PODS,
        {**pod(), "apiVersion": "v7"},
        (
            'Pod in version "v7" cannot be handled as a Pod: no kind "Pod" is registered for '
            'version "v7" in scheme'
        ),
    ),
    (
        sent.PODS,
        {**pod(), "metadata": {"name": "a", "namespace": "other"}},
        "the namespace of the provided object does not match the namespace sent on the request",
    ),
    (
        sent.PODS,
        pod(containers="many"),
        (
            'Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal string into Go '
            "struct field PodSpec.spec.containers of type []v1.Container"
        ),
    ),
    (
        sent.PODS,
        pod(containers=[{"name": "c", "resources": {"limits": {"cpu": "a lot"}}}]),
        (
            'Pod in version "v1" cannot be handled as a Pod: quantities must match the regular '
            "expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        ),
    ),
    (
        sent.CONFIG_MAPS,
        {"metadata": {"name": "a"}, "data": {"a": 1}},
        (
            'ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal '
            "number into Go struct field ConfigMap.data of type string"
        ),
    ),
]


@pytest.mark.parametrize(("path", "body", "message"), MISMATCHES)
async def test_a_body_that_is_not_the_expected_object_is_a_bad_request(
    api: ApiClient, path: str, body: Json, message: str
) -> None:
    reply = await api.post(path, body)
    assert (reply.status, reply.body["reason"]) == (400, "BadRequest")
    assert reply.body["message"].startswith(message)


UNKNOWN = {**pod("u"), "colour": "red"}


async def test_unknown_fields_are_dropped_with_a_warning(api: ApiClient) -> None:
    reply = await api.post(sent.PODS, UNKNOWN)
    assert reply.status == 201
    assert reply.headers["Warning"] == '299 - "unknown field \\"colour\\""'
    assert "colour" not in reply.body
    ignored = await api.post(f"{sent.PODS}?fieldValidation=Ignore&dryRun=All", {**pod("v"), "x": 1})
    assert (ignored.status, "Warning" in ignored.headers) == (201, False)


async def test_unknown_fields_are_refused_with_strict_validation(api: ApiClient) -> None:
    body = pod("u", flavour=1)
    reply = await api.post(f"{sent.PODS}?fieldValidation=Strict", body)
    assert reply.status == 400
    assert reply.body["message"] == (
        'Pod in version "v1" cannot be handled as a Pod: strict decoding error: unknown field '
        '"spec.flavour"'
    )


async def test_duplicate_fields_are_reported_too(api: ApiClient) -> None:
    url = f"{sent.CONFIG_MAPS}?fieldValidation=Strict"
    text = '{"metadata":{"name":"a"},"data":{"x":"1","x":"2"}}'
    reply = await api.post(url, text.encode())
    assert reply.status == 400
    assert reply.body["message"] == (
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: '
        'duplicate field "data.x"'
    )


YAML_WITH_DUPLICATES = b"""\
metadata:
  name: a
  name: b
data: {x: "1", x: "2"}
unknown: 1
data:
  y: "3"
"""
LINES = [
    'line 3: key "name" already set in map',
    'line 4: key "x" already set in map',
    'line 7: key "data" already set in map',
]


async def test_duplicate_keys_of_yaml_are_refused_by_their_lines(api: ApiClient) -> None:
    url = f"{sent.CONFIG_MAPS}?fieldValidation=Strict"
    reply = await api.request("POST", url, YAML_WITH_DUPLICATES, "application/yaml")
    assert reply.status == 400
    lines = "\n  ".join(LINES)
    assert reply.body["message"] == (
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: yaml: '
        f'unmarshal errors:\n  {lines}, unknown field "unknown"'
    )


async def test_duplicate_keys_of_yaml_cause_warnings(api: ApiClient) -> None:
    reply = await api.request("POST", sent.CONFIG_MAPS, YAML_WITH_DUPLICATES, "application/yaml")
    assert (reply.status, reply.body["metadata"]["name"]) == (201, "b")
    assert reply.body["data"] == {"y": "3"}
    assert reply.warnings == [*LINES, 'unknown field "unknown"']


async def test_duplicate_keys_are_ignored_on_request(api: ApiClient) -> None:
    url = f"{sent.CONFIG_MAPS}?fieldValidation=Ignore"
    reply = await api.request("POST", url, YAML_WITH_DUPLICATES, "application/yaml")
    assert (reply.status, reply.warnings) == (201, [])


async def test_unknown_option_values_are_refused(api: ApiClient) -> None:
    reply = await api.post(f"{sent.CONFIG_MAPS}?dryRun=Some", config_map())
    assert reply.status == 422
    assert reply.body["details"]["kind"] == "CreateOptions"
    assert reply.body["details"]["causes"][0]["field"] == "dryRun"


async def test_a_dry_run_has_the_answer_of_the_real_request(api: ApiClient) -> None:
    reply = await api.post(f"{sent.CONFIG_MAPS}?dryRun=All", config_map("dry"))
    assert reply.status == 201
    assert reply.body["metadata"]["uid"]
    assert "resourceVersion" not in reply.body["metadata"]
    assert (await api.get(f"{sent.CONFIG_MAPS}/dry")).status == 404


async def test_an_existing_object_is_not_created_again(api: ApiClient) -> None:
    await api.create(sent.DEPLOYMENTS, deployment())
    reply = await api.post(sent.DEPLOYMENTS, deployment())
    assert (reply.status, reply.body["reason"]) == (409, "AlreadyExists")
    assert reply.body["message"] == 'deployments.apps "w" already exists'
    assert reply.body["details"] == {"name": "w", "group": "apps", "kind": "deployments"}


async def test_objects_need_an_existing_namespace(api: ApiClient) -> None:
    reply = await api.post("/api/v1/namespaces/nowhere/configmaps", config_map())
    assert (reply.status, reply.body["message"]) == (404, 'namespaces "nowhere" not found')
    assert reply.body["details"] == {"name": "nowhere", "kind": "namespaces"}


async def test_a_terminating_namespace_takes_no_new_objects(api: ApiClient) -> None:
    name = "going-contract"
    await api.post(sent.NAMESPACES, {"metadata": {"name": name, "finalizers": ["example.com/a"]}})
    await api.delete(f"{sent.NAMESPACES}/{name}")
    reply = await api.post(f"/api/v1/namespaces/{name}/configmaps", config_map())
    assert (reply.status, reply.body["reason"]) == (403, "Forbidden")
    assert reply.body["message"] == (
        f'configmaps "a" is forbidden: unable to create new content in namespace {name} because it '
        "is being terminated"
    )
    assert reply.body["details"]["causes"] == [
        {
            "reason": "NamespaceTerminating",
            "message": f"namespace {name} is being terminated",
            "field": "metadata.namespace",
        }
    ]


async def test_a_name_may_be_generated(api: ApiClient) -> None:
    body = config_map()
    body["metadata"] = {"generateName": "made-"}
    created = await api.create(sent.CONFIG_MAPS, body)
    assert len(created["metadata"]["name"]) == len("made-") + 5
    assert created["metadata"]["generateName"] == "made-"


async def test_a_finalizer_must_have_a_domain(api: ApiClient) -> None:
    body = config_map()
    body["metadata"]["finalizers"] = ["mine"]
    reply = await api.post(sent.CONFIG_MAPS, body)
    assert causes(reply) == [
        (
            INVALID,
            "metadata.finalizers[0]",
            (
                'Invalid value: "mine": name is neither a standard finalizer name nor is it fully '
                "qualified"
            ),
        )
    ]


async def test_an_empty_dry_run_is_refused(api: ApiClient) -> None:
    reply = await api.post(f"{sent.CONFIG_MAPS}?dryRun=", config_map())
    assert (reply.status, reply.body["message"]) == (
        422,
        (
            'CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: [""]: supported '
            'values: "All"'
        ),
    )


async def test_the_version_of_an_owner_has_one_slash_at_most(api: ApiClient) -> None:
    body = config_map()
    owner = {"apiVersion": "a/b/c", "kind": "X", "name": "x", "uid": "u"}
    body["metadata"]["ownerReferences"] = [owner]
    reply = await api.post(sent.CONFIG_MAPS, body)
    assert causes(reply) == [
        (
            INVALID,
            "metadata.ownerReferences.apiVersion",
            'Invalid value: "a/b/c": version must not be empty',
        )
    ]


@pytest.mark.parametrize("version", ["0", "abc"])
async def test_a_resource_version_that_names_no_revision_is_ignored(
    api: ApiClient, version: str
) -> None:
    body = config_map()
    body["metadata"]["resourceVersion"] = version
    assert (await api.post(sent.CONFIG_MAPS, body)).status == 201
