"""PUT and PATCH: conflicts, kinds of patches, immutable fields and generations."""

from typing import Any

import pytest

from simcluster.tests.contract import requests as sent
from simcluster.tests.contract.causes import causes
from simcluster.tests.contract.requests import deployment
from simcluster.tests.support.api_client import (
    JSON_PATCH,
    MERGE,
    STRATEGIC,
    ApiClient,
    config_map,
    node,
    pod,
)

Json = dict[str, Any]

MODIFIED = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


async def test_a_put_must_name_the_same_object_as_the_url(api: ApiClient) -> None:
    await api.create(sent.CONFIG_MAPS, config_map())
    other = await api.put(f"{sent.CONFIG_MAPS}/a", config_map("b"))
    assert other.status == 400
    assert other.body["message"] == (
        "the name of the object (b) does not match the name on the URL (a)"
    )
    nameless = await api.put(f"{sent.CONFIG_MAPS}/a", {"metadata": {}, "data": {}})
    assert nameless.status == 400
    assert nameless.body["message"] == (
        "the name of the object (a based on URL) was undeterminable: name must be provided"
    )


async def test_a_put_for_another_uid_is_a_conflict(api: ApiClient) -> None:
    created = await api.create(sent.CONFIG_MAPS, config_map())
    body = config_map()
    body["metadata"]["uid"] = "0-0"
    reply = await api.put(f"{sent.CONFIG_MAPS}/a", body)
    assert reply.status == 409
    assert reply.body["message"] == (
        'Operation cannot be fulfilled on configmaps "a": StorageError: invalid object, Code: 4, '
        "Key: /registry/configmaps/default/a, ResourceVersion: 0, AdditionalErrorMsg: "
        "Precondition failed: UID in precondition: 0-0, UID in object meta: "
        f"{created['metadata']['uid']}"
    )


@pytest.mark.parametrize("content_type", [MERGE, STRATEGIC])
async def test_a_patch_with_an_old_resource_version_is_a_conflict(
    api: ApiClient, content_type: str
) -> None:
    await api.create(sent.CONFIG_MAPS, config_map())
    stale = {"metadata": {"resourceVersion": "1"}, "data": {"c": "d"}}
    reply = await api.patch(f"{sent.CONFIG_MAPS}/a", stale, content_type)
    assert (reply.status, reply.body["reason"]) == (409, "Conflict")
    assert reply.body["message"] == f'Operation cannot be fulfilled on configmaps "a": {MODIFIED}'
    assert reply.body["details"] == {"name": "a", "kind": "configmaps"}


async def test_a_write_without_changes_keeps_the_revision(api: ApiClient) -> None:
    created = await api.create(sent.DEPLOYMENTS, deployment())
    path = f"{sent.DEPLOYMENTS}/w"
    for content_type in (MERGE, STRATEGIC):
        same = (await api.patch(path, {"spec": {"replicas": 1}}, content_type)).body
        assert same["metadata"] == created["metadata"]
    assert (await api.put(path, created)).body["metadata"] == created["metadata"]


async def test_generation_counts_the_spec_and_nothing_else(api: ApiClient) -> None:
    await api.create(sent.DEPLOYMENTS, deployment())
    path = f"{sent.DEPLOYMENTS}/w"
    labelled = (await api.patch(path, {"metadata": {"labels": {"a": "b"}}}, MERGE)).body
    assert labelled["metadata"]["generation"] == 1
    status = {"status": {"replicas": 1}, "spec": {"replicas": 7}}
    written = (await api.patch(f"{path}/status", status, MERGE)).body
    assert (written["metadata"]["generation"], written["spec"]["replicas"]) == (1, 1)
    assert written["status"] == {"replicas": 1}
    scaled = (
        await api.patch(path, {"spec": {"replicas": 2}, "status": {"replicas": 9}}, MERGE)
    ).body
    assert (scaled["metadata"]["generation"], scaled["status"]["replicas"]) == (2, 1)


async def test_the_scale_subresource_changes_the_replicas_of_the_object(api: ApiClient) -> None:
    await api.create(sent.DEPLOYMENTS, deployment())
    path = f"{sent.DEPLOYMENTS}/w/scale"
    scale = (await api.get(path)).body
    assert (scale["kind"], scale["spec"]) == ("Scale", {"replicas": 1})
    assert scale["status"] == {"replicas": 0, "selector": "app=w"}
    changed = await api.patch(path, {"spec": {"replicas": 3}}, MERGE)
    assert changed.body["spec"] == {"replicas": 3}
    assert (await api.get(f"{sent.DEPLOYMENTS}/w")).body["spec"]["replicas"] == 3


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


FIXED: list[tuple[Json, str, str]] = [
    ({"nodeName": "n"}, "spec", "Forbidden: pod updates may not change fields other than"),
    (
        {"tolerations": [{"operator": "Exists"}]},
        "spec.tolerations",
        "Forbidden: existing toleration can not be modified",
    ),
    (
        {"schedulingGates": [{"name": "example.com/new"}]},
        "spec.schedulingGates[0].name",
        "Forbidden: only deletion is allowed, but found new scheduling gate 'example.com/new'",
    ),
    ({"containers": []}, "spec.containers", "Required value"),
]


@pytest.mark.parametrize(("change", "field", "message"), FIXED)
async def test_immutable_fields_of_a_pod_cannot_be_changed(
    api: ApiClient, change: Json, field: str, message: str
) -> None:
    await api.create(sent.PODS, pod())
    reply = await api.patch(f"{sent.PODS}/a", {"spec": change}, MERGE)
    found = causes(reply)
    assert any(cause[1] == field and cause[2].startswith(message) for cause in found), found


async def test_mutable_fields_of_a_pod_can_be_changed(api: ApiClient) -> None:
    await api.create(sent.PODS, pod())
    image = {"spec": {"containers": [{"name": "c", "image": "x:2"}]}}
    changed = (await api.patch(f"{sent.PODS}/a", image)).body
    assert changed["spec"]["containers"][0]["image"] == "x:2"
    assert changed["metadata"]["generation"] == 2
    deadline = (await api.patch(f"{sent.PODS}/a", {"spec": {"activeDeadlineSeconds": 5}})).body
    assert deadline["spec"]["activeDeadlineSeconds"] == 5
    longer = await api.patch(f"{sent.PODS}/a", {"spec": {"activeDeadlineSeconds": 50}})
    assert causes(longer)[0][2] == (
        "Invalid value: 50: must be less than or equal to previous value"
    )


async def test_an_immutable_config_map_cannot_be_changed(api: ApiClient) -> None:
    await api.create(sent.CONFIG_MAPS, {**config_map(), "immutable": True})
    reply = await api.patch(f"{sent.CONFIG_MAPS}/a", {"data": {"a": "c"}}, MERGE)
    assert causes(reply) == [
        ("FieldValueForbidden", "data", "Forbidden: field is immutable when `immutable` is set")
    ]


async def test_a_condition_without_a_transition_time_gets_null(api: ApiClient) -> None:
    await api.create(sent.PODS, pod())
    condition = {"type": "example.com/One", "status": "True"}
    changed = await api.patch(f"{sent.PODS}/a/status", {"status": {"conditions": [condition]}})
    assert changed.body["status"]["conditions"] == [
        {**condition, "lastProbeTime": None, "lastTransitionTime": None}
    ]


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (
            {"capacity": {"cpu": "-1"}},
            'status.capacity.cpu: Invalid value: "-1": must be greater than or equal to 0',
        ),
        (
            {"allocatable": {"example.com/gpu": "1500m"}},
            'status.allocatable.example.com/gpu: Invalid value: "1500m": must be an integer',
        ),
        (
            {"addresses": [{"type": "InternalIP", "address": "10.0.0.1"}] * 2},
            'status.addresses[1]: Duplicate value: {"Type":"InternalIP","Address":"10.0.0.1"}',
        ),
    ],
)
async def test_the_status_of_a_node_is_validated(
    api: ApiClient, status: Json, message: str
) -> None:
    await api.create(sent.NODES, node("n"))
    reply = await api.patch(f"{sent.NODES}/n/status", {"status": status}, MERGE)
    assert (reply.status, reply.body["message"]) == (422, f'Node "n" is invalid: {message}')


async def test_a_scale_of_the_wrong_type_is_invalid(api: ApiClient) -> None:
    await api.create(sent.DEPLOYMENTS, deployment())
    for spec in ("x", {"replicas": "x"}):
        reply = await api.patch(f"{sent.DEPLOYMENTS}/w/scale", {"spec": spec}, MERGE)
        assert (reply.status, reply.body["details"]["causes"][0]["field"]) == (422, "patch")


async def test_the_provider_id_of_a_node_cannot_be_changed(api: ApiClient) -> None:
    await api.create(sent.NODES, {**node(), "spec": {"providerID": "p"}})
    reply = await api.patch(f"{sent.NODES}/n", {"spec": {"providerID": "q"}}, MERGE)
    message = 'Forbidden: node updates may not change providerID except from "" to valid'
    assert causes(reply) == [("FieldValueForbidden", "spec.providerID", message)]


async def test_ephemeral_containers_are_added_only_through_their_subresource(
    api: ApiClient,
) -> None:
    await api.create(sent.PODS, pod())
    added = {"spec": {"ephemeralContainers": [{"name": "debug", "image": "busybox:1"}]}}
    refused = await api.patch(f"{sent.PODS}/a", added)
    assert refused.status == 422
    reply = await api.patch(f"{sent.PODS}/a/ephemeralcontainers", added)
    assert reply.status == 200
    assert [c["name"] for c in reply.body["spec"]["ephemeralContainers"]] == ["debug"]
    removed = {"spec": {"ephemeralContainers": None}}
    gone = await api.patch(f"{sent.PODS}/a/ephemeralcontainers", removed, MERGE)
    assert causes(gone)[0][1] == "spec.ephemeralContainers"


async def test_an_ephemeral_container_without_a_name_or_an_image_is_invalid(
    api: ApiClient,
) -> None:
    await api.create(sent.PODS, pod())
    incomplete = {"spec": {"ephemeralContainers": [{"image": "busybox:1"}, {"name": "debug"}]}}
    reply = await api.patch(f"{sent.PODS}/a/ephemeralcontainers", incomplete, MERGE)
    assert causes(reply) == [
        ("FieldValueRequired", f"spec.ephemeralContainers[{place}", "Required value")
        for place in ("0].name", "1].image")
    ]


async def test_pod_resources_change_only_through_the_resize_subresource(api: ApiClient) -> None:
    sized = {"name": "c", "image": "x:1", "resources": {"requests": {"cpu": "1"}}}
    await api.create(sent.PODS, pod(containers=[sized]))
    bigger = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]}}
    assert (await api.patch(f"{sent.PODS}/a", bigger)).status == 422
    reply = await api.patch(f"{sent.PODS}/a/resize", bigger)
    assert reply.status == 200
    container = reply.body["spec"]["containers"][0]
    assert container["resources"] == {"requests": {"cpu": "2"}}
    assert reply.body["metadata"]["generation"] == 2


async def test_a_pod_can_be_replaced_with_the_manifest_that_created_it(api: ApiClient) -> None:
    made = await api.create(sent.PODS, pod())
    reply = await api.put(f"{sent.PODS}/a", pod())
    assert reply.status == 200, reply.text
    assert reply.body == made


async def test_removed_default_tolerations_are_added_again(api: ApiClient) -> None:
    made = await api.create(sent.PODS, pod())
    reply = await api.patch(f"{sent.PODS}/a", {"spec": {"tolerations": []}}, MERGE)
    assert reply.body["spec"]["tolerations"] == made["spec"]["tolerations"]
    assert reply.body["metadata"]["generation"] == 1


async def test_a_condition_keeps_its_observed_generation(api: ApiClient) -> None:
    await api.create(sent.PODS, pod())
    condition = {"type": "PodScheduled", "status": "False", "observedGeneration": 1}
    await api.patch(f"{sent.PODS}/a/status", {"status": {"conditions": [condition]}})
    unseen = {"status": {"conditions": [{"type": "PodScheduled", "status": "Unknown"}]}}
    reply = await api.patch(f"{sent.PODS}/a/status", unseen, MERGE)
    assert reply.body["status"]["conditions"][0]["observedGeneration"] == 1


async def test_the_pod_cidr_of_a_node_cannot_be_changed(api: ApiClient) -> None:
    await api.create(sent.NODES, node())
    first = await api.patch(f"{sent.NODES}/n", {"spec": {"podCIDR": "10.0.0.0/24"}})
    assert first.body["spec"]["podCIDRs"] == ["10.0.0.0/24"]
    second = await api.patch(f"{sent.NODES}/n", {"spec": {"podCIDR": "10.0.1.0/24"}})
    assert causes(second) == [
        (
            "FieldValueForbidden",
            "spec.podCIDRs",
            'Forbidden: node updates may not change podCIDR except from "" to valid',
        )
    ]


async def test_a_scale_must_name_the_same_object_as_the_url(api: ApiClient) -> None:
    await api.create(sent.DEPLOYMENTS, sent.deployment(replicas=0))
    scale = {"metadata": {"name": "other"}, "spec": {"replicas": 1}}
    reply = await api.put(f"{sent.DEPLOYMENTS}/w/scale", scale)
    assert reply.status == 400
    assert reply.body["message"] == (
        "the name of the object (other) does not match the name on the URL (w)"
    )


async def test_the_error_shows_the_changed_immutable_fields_of_a_claim(api: ApiClient) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    await api.create(sent.CLAIMS, {"metadata": {"name": "a"}, "spec": spec})
    larger = {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}
    message = causes(await api.patch(f"{sent.CLAIMS}/a", larger))[0][2]
    assert message.startswith("Forbidden: spec is immutable after creation except")
    assert '-      "storage": "2Gi"\n' in message
    assert '+      "storage": "1Gi"\n' in message


async def test_the_error_shows_the_changed_immutable_fields_of_a_pod(api: ApiClient) -> None:
    await api.create(sent.PODS, pod())
    reply = await api.patch(f"{sent.PODS}/a", {"spec": {"schedulerName": "other"}})
    message = causes(reply)[0][2]
    assert "--- expected\n+++ got\n" in message
    assert '-  "SchedulerName": "nobody",\n' in message
    assert '+  "SchedulerName": "other",\n' in message


async def test_a_resource_version_that_is_no_number_is_an_error(api: ApiClient) -> None:
    await api.create(sent.CONFIG_MAPS, config_map())
    body = config_map()
    body["metadata"]["resourceVersion"] = "abc"
    reply = await api.put(f"{sent.CONFIG_MAPS}/a", body)
    assert (reply.status, reply.body["message"]) == (
        500,
        'strconv.ParseUint: parsing "abc": invalid syntax',
    )


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


@pytest.mark.parametrize("flag", ["false", ""])
async def test_only_an_apply_may_name_force(api: ApiClient, flag: str) -> None:
    await api.create(sent.CONFIG_MAPS, config_map())
    reply = await api.patch(f"{sent.CONFIG_MAPS}/a?force={flag}", {}, MERGE)
    assert reply.status == 422


async def test_a_patch_can_change_the_generate_name(api: ApiClient) -> None:
    await api.create(sent.CONFIG_MAPS, config_map())
    reply = await api.patch(
        f"{sent.CONFIG_MAPS}/a", {"metadata": {"generateName": "other-"}}, MERGE
    )
    assert reply.body["metadata"]["generateName"] == "other-"


async def test_equal_owner_references_are_stored_once(api: ApiClient) -> None:
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u"}
    body = config_map()
    body["metadata"]["ownerReferences"] = [owner, owner]
    warning = (
        ".metadata.ownerReferences contains duplicate entries; API server dedups owner references "
        "in 1.20+, and may reject such requests as early as 1.24; please fix your requests; "
        "duplicate UID(s) observed: u"
    )
    path = f"{sent.CONFIG_MAPS}/a"
    sends = (
        await api.post(f"{sent.CONFIG_MAPS}?dryRun=All", body),
        await api.post(sent.CONFIG_MAPS, body),
        await api.put(f"{path}?dryRun=All", body),
        await api.patch(
            f"{path}?dryRun=All", {"metadata": {"ownerReferences": [owner, owner]}}, MERGE
        ),
    )
    for reply in sends:
        assert reply.body["metadata"]["ownerReferences"] == [owner], reply.text
        assert reply.warnings == [warning]
