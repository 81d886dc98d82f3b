"""The kinds of patches: how they merge, and which are refused."""

import pytest

from simcluster.tests.contract import requests as sent
from simcluster.tests.contract.requests import deployment
from simcluster.tests.support.api_client import (
    JSON_PATCH,
    MERGE,
    STRATEGIC,
    ApiClient,
    config_map,
    pod,
)

BAD_PATCHES: list[tuple[str, object, int, str]] = [
    (
        JSON_PATCH,
        {"data": {}},
        400,
        (
            "error decoding patch: json: cannot unmarshal object into Go value of type "
            "[]handlers.jsonPatchOp"
        ),
    ),
    (
        JSON_PATCH,
        [{"op": "remove", "path": "/data/missing"}],
        422,
        "the server rejected our request due to an error in our request",
    ),
    (
        MERGE,
        [1],
        400,
        (
            "error decoding patch: json: cannot unmarshal array into Go value of type "
            "map[string]interface {}"
        ),
    ),
    (
        STRATEGIC,
        [1],
        400,
        "json: cannot unmarshal array into Go value of type map[string]interface {}",
    ),
    (
        "application/json",
        {},
        415,
        (
            "the body of the request was in an unknown format - accepted media types include: "
            "application/json-patch+json, application/merge-patch+json, "
            "application/strategic-merge-patch+json, application/apply-patch+yaml"
        ),
    ),
]


@pytest.mark.parametrize(("content_type", "patch", "status", "message"), BAD_PATCHES)
async def test_malformed_patches_are_refused(
    api: ApiClient, content_type: str, patch: object, status: int, message: str
) -> None:
    await api.create(sent.CONFIG_MAPS, config_map())
    reply = await api.patch(f"{sent.CONFIG_MAPS}/a", patch, content_type)
    assert (reply.status, reply.body["message"]) == (status, message)


async def test_a_patch_with_a_value_of_the_wrong_type_is_invalid(api: ApiClient) -> None:
    await api.create(sent.CONFIG_MAPS, config_map())
    reply = await api.patch(f"{sent.CONFIG_MAPS}/a", {"data": {"a": 1}}, STRATEGIC)
    assert reply.status == 422
    assert reply.body["message"].startswith(
        ' "" is invalid: patch: Invalid value: "map[data:map[a:1]]": '
    )


async def test_an_unknown_field_of_a_patch_is_dropped_or_refused(api: ApiClient) -> None:
    await api.create(sent.CONFIG_MAPS, config_map())
    path = f"{sent.CONFIG_MAPS}/a"
    warned = await api.patch(path, {"colour": "red"}, MERGE)
    assert (warned.status, "colour" in warned.body) == (200, False)
    assert warned.headers["Warning"] == '299 - "unknown field \\"colour\\""'
    strict = await api.patch(f"{path}?fieldValidation=Strict", {"colour": "red"}, STRATEGIC)
    assert strict.status == 422
    assert strict.body["message"] == (
        ' "" is invalid: patch: Invalid value: "map[colour:red]": strict decoding error: unknown '
        'field "colour"'
    )


async def test_a_patch_cannot_change_the_name(api: ApiClient) -> None:
    await api.create(sent.CONFIG_MAPS, config_map())
    reply = await api.patch(f"{sent.CONFIG_MAPS}/a", {"metadata": {"name": "b"}}, MERGE)
    assert reply.status == 400
    assert reply.body["message"] == (
        "the name of the object (b) does not match the name on the URL (a)"
    )


async def test_lists_merge_by_their_merge_keys(api: ApiClient) -> None:
    container = {"name": "c", "image": "x:1", "env": [{"name": "A", "value": "1"}]}
    ported = {**container, "ports": [{"containerPort": 80}]}
    body = deployment()
    body["spec"]["template"]["spec"]["containers"] = [ported]
    await api.create(sent.DEPLOYMENTS, body)
    change = {
        "name": "c",
        "env": [{"name": "B", "value": "2"}],
        "ports": [{"containerPort": 80, "name": "web"}],
    }
    patch = {
        "spec": {"template": {"spec": {"containers": [change], "tolerations": [{"key": "t"}]}}}
    }
    reply = await api.patch(f"{sent.DEPLOYMENTS}/w", patch)
    changed = reply.body["spec"]["template"]["spec"]["containers"][0]
    assert {variable["name"] for variable in changed["env"]} == {"A", "B"}
    assert changed["ports"] == [{"name": "web", "containerPort": 80, "protocol": "TCP"}]
    assert changed["image"] == "x:1"


async def test_a_list_item_without_its_merge_key_is_an_error(api: ApiClient) -> None:
    await api.create(sent.DEPLOYMENTS, deployment())
    patch = {"spec": {"template": {"spec": {"containers": [{"image": "x:2"}]}}}}
    reply = await api.patch(f"{sent.DEPLOYMENTS}/w", patch)
    assert reply.status == 500
    assert reply.body["message"] == (
        "map: map[image:x:2] does not contain declared merge key: name"
    )


async def test_a_condition_without_a_transition_time_gets_null(api: ApiClient) -> None:
    await api.create(sent.PODS, pod())
    condition = {"type": "example.com/One", "status": "True"}
    changed = await api.patch(f"{sent.PODS}/a/status", {"status": {"conditions": [condition]}})
    assert changed.body["status"]["conditions"] == [
        {**condition, "lastProbeTime": None, "lastTransitionTime": None}
    ]


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        (b"", "error decoding patch: unexpected end of JSON input"),
        (b"null", "Invalid JSON Patch"),
    ],
)
async def test_an_empty_merge_patch_is_refused(api: ApiClient, patch: bytes, message: str) -> None:
    await api.create(sent.CONFIG_MAPS, config_map())
    reply = await api.patch(f"{sent.CONFIG_MAPS}/a", patch, MERGE)
    assert (reply.status, reply.body["message"]) == (400, message)


async def test_negative_indexes_of_a_json_patch_count_from_the_end(api: ApiClient) -> None:
    body = config_map()
    body["metadata"]["finalizers"] = ["a.b/1", "a.b/2"]
    await api.create(sent.CONFIG_MAPS, body)
    path = f"{sent.CONFIG_MAPS}/a"
    last = "/metadata/finalizers/-1"
    operations = [{"op": "add", "path": last, "value": "a.b/3"}, {"op": "remove", "path": last}]
    reply = await api.patch(f"{path}?dryRun=All", operations, JSON_PATCH)
    assert reply.body["metadata"]["finalizers"] == ["a.b/1", "a.b/2"]
    await api.patch(path, {"metadata": {"finalizers": None}}, MERGE)


async def test_unknown_keys_of_a_json_patch_cause_warnings(api: ApiClient) -> None:
    await api.create(sent.CONFIG_MAPS, config_map())
    operations = [{"op": "test", "path": "/metadata/name", "value": "a", "extra": 1}]
    reply = await api.patch(f"{sent.CONFIG_MAPS}/a", operations, JSON_PATCH)
    assert (reply.status, reply.warnings) == (200, ['json patch unknown field "[0].extra"'])
