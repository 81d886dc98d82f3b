"""PUT and PATCH: conflicts, generations and subresources."""

from typing import Any

import pytest

from simcluster.tests.contract import requests as sent
from simcluster.tests.contract.causes import causes
from simcluster.tests.contract.requests import deployment
from simcluster.tests.support.api_client import MERGE, STRATEGIC, ApiClient, config_map, node, pod

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


async def test_a_scale_must_name_the_same_object_as_the_url(api: ApiClient) -> None:
    await api.create(sent.DEPLOYMENTS, sent.deployment(replicas=0))
    scale = {"metadata": {"name": "other"}, "spec": {"replicas": 1}}
    reply = await api.put(f"{sent.DEPLOYMENTS}/w/scale", scale)
    assert reply.status == 400
    assert reply.body["message"] == (
        "the name of the object (other) does not match the name on the URL (w)"
    )


async def test_a_resource_version_that_is_no_number_is_an_error(api: ApiClient) -> None:
    await api.create(sent.CONFIG_MAPS, config_map())
    body = config_map()
    body["metadata"]["resourceVersion"] = "abc"
    reply = await api.put(f"{sent.CONFIG_MAPS}/a", body)
    assert (reply.status, reply.body["message"]) == (
        500,
        'strconv.ParseUint: parsing "abc": invalid syntax',
    )


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
