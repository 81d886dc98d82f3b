"""DELETE: preconditions, grace periods, finalizers, propagation policies and collections."""

from typing import Any

import pytest

from simcluster.tests.contract import requests as sent
from simcluster.tests.contract.requests import deployment
from simcluster.tests.support.api_client import MERGE, ApiClient, config_map, pod

Json = dict[str, Any]


async def test_a_deletion_with_a_failed_precondition_is_a_conflict(api: ApiClient) -> None:
    created = (await api.create(sent.PODS, pod()))["metadata"]
    wanted = {"preconditions": {"uid": "0-0"}}
    other = await api.delete(f"{sent.PODS}/a", wanted)
    assert (other.status, other.body["reason"]) == (409, "Conflict")
    assert other.body["message"] == (
        'Operation cannot be fulfilled on Pod "a": the UID in the precondition (0-0) does not '
        f"match the UID in record ({created['uid']}). The object might have been deleted and then "
        "recreated"
    )
    wanted = {"preconditions": {"resourceVersion": "1"}}
    stale = await api.delete(f"{sent.PODS}/a", wanted)
    assert stale.status == 409
    assert stale.body["message"].endswith(
        f"(1) does not match the ResourceVersion in record ({created['resourceVersion']}). The "
        "object might have been modified"
    )
    wanted = {"preconditions": {"uid": created["uid"]}}
    assert (await api.delete(f"{sent.PODS}/a", wanted)).status == 200


async def test_an_object_stays_until_its_finalizers_are_removed(api: ApiClient) -> None:
    body = config_map()
    body["metadata"]["finalizers"] = ["example.com/a", "example.com/b"]
    await api.create(sent.CONFIG_MAPS, body)
    path = f"{sent.CONFIG_MAPS}/a"
    marked = (await api.delete(path)).body
    assert marked["kind"] == "ConfigMap"
    assert marked["metadata"]["deletionTimestamp"]
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 0
    added = {"metadata": {"finalizers": ["example.com/a", "example.com/c"]}}
    refused = await api.patch(path, added, MERGE)
    assert refused.status == 422
    assert refused.body["details"]["causes"][0]["message"] == (
        "Forbidden: no new finalizers can be added if the object is being deleted, found new "
        'finalizers []string{"example.com/c"}'
    )
    await api.patch(path, {"metadata": {"finalizers": ["example.com/b"]}}, MERGE)
    assert (await api.get(path)).status == 200
    last = await api.patch(path, {"metadata": {"finalizers": None}}, MERGE)
    assert last.status == 200
    assert (await api.get(path)).status == 404


@pytest.mark.parametrize(
    ("policy", "finalizer"), [("Orphan", "orphan"), ("Foreground", "foregroundDeletion")]
)
async def test_a_propagation_policy_becomes_a_finalizer(
    api: ApiClient, policy: str, finalizer: str
) -> None:
    await api.create(sent.DEPLOYMENTS, deployment())
    path = f"{sent.DEPLOYMENTS}/w"
    reply = await api.delete(f"{path}?propagationPolicy={policy}")
    assert reply.body["metadata"]["finalizers"] == [finalizer]
    await api.patch(path, {"metadata": {"finalizers": None}}, MERGE)
    assert (await api.get(path)).status == 404


async def test_an_unknown_propagation_policy_is_refused(api: ApiClient) -> None:
    await api.create(sent.DEPLOYMENTS, deployment())
    reply = await api.delete(f"{sent.DEPLOYMENTS}/w", {"propagationPolicy": "Slow"})
    assert reply.status == 422
    assert reply.body["message"] == (
        'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "Slow": '
        'supported values: "Foreground", "Background", "Orphan", "nil"'
    )


async def test_a_finished_deletion_is_answered_with_a_status(api: ApiClient) -> None:
    await api.create(sent.DEPLOYMENTS, deployment())
    created = (await api.get(f"{sent.DEPLOYMENTS}/w")).body["metadata"]
    reply = await api.delete(f"{sent.DEPLOYMENTS}/w")
    details = {"name": "w", "group": "apps", "kind": "deployments", "uid": created["uid"]}
    assert (reply.status, reply.body["status"], reply.body["details"]) == (200, "Success", details)
    missing = await api.delete(f"{sent.DEPLOYMENTS}/w")
    assert (missing.status, missing.body["message"]) == (404, 'deployments.apps "w" not found')


async def test_a_dry_run_deletes_nothing(api: ApiClient) -> None:
    await api.create(sent.CONFIG_MAPS, config_map())
    assert (await api.delete(f"{sent.CONFIG_MAPS}/a?dryRun=All")).status == 200
    assert (await api.get(f"{sent.CONFIG_MAPS}/a")).status == 200


async def test_a_collection_is_deleted_by_selector(api: ApiClient) -> None:
    for name, label in (("a", "x"), ("b", "x"), ("c", "y")):
        body = config_map(name)
        body["metadata"]["labels"] = {"set": label}
        await api.create(sent.CONFIG_MAPS, body)
    reply = await api.delete(f"{sent.CONFIG_MAPS}?labelSelector=set%3Dx")
    assert reply.body["kind"] == "ConfigMapList"
    assert [item["metadata"]["name"] for item in reply.body["items"]] == ["a", "b"]
    left = (await api.get(f"{sent.CONFIG_MAPS}?labelSelector=set")).body["items"]
    assert [item["metadata"]["name"] for item in left] == ["c"]


@pytest.mark.parametrize(
    ("path", "name", "resource", "why"),
    [
        (sent.NAMESPACES, "default", "namespaces", "this namespace may not be deleted"),
        (
            sent.CLASSES,
            "system-node-critical",
            "priorityclasses.scheduling.k8s.io",
            "this is a system priority class and cannot be deleted",
        ),
    ],
)
async def test_system_objects_cannot_be_deleted(
    api: ApiClient, path: str, name: str, resource: str, why: str
) -> None:
    reply = await api.delete(f"{path}/{name}")
    assert (reply.status, reply.body["reason"]) == (403, "Forbidden")
    assert reply.body["message"] == f'{resource} "{name}" is forbidden: {why}'


async def test_options_are_read_from_the_body_or_else_from_the_query(api: ApiClient) -> None:
    await api.create(sent.CONFIG_MAPS, config_map())
    assert (await api.delete(f"{sent.CONFIG_MAPS}/a?dryRun=All")).status == 200
    assert (await api.get(f"{sent.CONFIG_MAPS}/a")).status == 200
    assert (await api.delete(f"{sent.CONFIG_MAPS}/a?dryRun=All", {"kind": "DeleteOptions"})).status
    assert (await api.get(f"{sent.CONFIG_MAPS}/a")).status == 404


async def test_delete_options_of_wrong_types_are_refused(api: ApiClient) -> None:
    await api.create(sent.CONFIG_MAPS, config_map())
    wrong = await api.delete(f"{sent.CONFIG_MAPS}/a", {"gracePeriodSeconds": "soon"})
    assert (wrong.status, wrong.body["reason"]) == (400, "BadRequest")
    assert "cannot unmarshal string into Go struct field DeleteOptions" in wrong.body["message"]
    unknown = await api.delete(f"{sent.CONFIG_MAPS}/a?dryRun=Some")
    assert unknown.status == 422
    assert unknown.body["details"]["causes"][0]["field"] == "dryRun"


async def test_options_of_another_kind_are_refused(api: ApiClient) -> None:
    await api.create(sent.CONFIG_MAPS, config_map())
    reply = await api.delete(f"{sent.CONFIG_MAPS}/a", {"kind": "Pod", "apiVersion": "v1"})
    assert (reply.status, reply.body["reason"]) == (400, "BadRequest")
    assert reply.body["message"] == (
        'no kind "Pod" is registered for version "v1" in scheme '
        '"k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27"'
    )
    assert (await api.get(f"{sent.CONFIG_MAPS}/a")).status == 200


async def test_foreground_deletion_is_answered_202(api: ApiClient) -> None:
    held = config_map()
    held["metadata"]["finalizers"] = ["example.com/held"]
    await api.create(sent.CONFIG_MAPS, held)
    reply = await api.delete(f"{sent.CONFIG_MAPS}/a", {"orphanDependents": False})
    assert (reply.status, reply.body["kind"]) == (202, "ConfigMap")
    await api.patch(f"{sent.CONFIG_MAPS}/a", {"metadata": {"finalizers": None}}, MERGE)


async def test_a_collection_is_deleted_as_the_query_lists_it(api: ApiClient) -> None:
    namespace = "/api/v1/namespaces/default/configmaps"
    label = "labelSelector=part%3Dx"
    for name in ("a", "b"):
        body = config_map(name)
        body["metadata"] |= {"labels": {"part": "x"}, "finalizers": ["example.com/held"]}
        await api.create(namespace, body)
    page = (await api.delete(f"{namespace}?{label}&limit=1")).body
    assert [item["metadata"]["name"] for item in page["items"]] == ["a"]
    assert "deletionTimestamp" not in page["items"][0]["metadata"]
    left = (await api.get(f"{namespace}?{label}")).body["items"]
    assert ["deletionTimestamp" in item["metadata"] for item in left] == [True, False]
    for name in ("a", "b"):
        await api.patch(f"{namespace}/{name}", {"metadata": {"finalizers": None}}, MERGE)


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("continue=abc", 400),
        ("resourceVersion=abc", 400),
        ("limit=x", 400),
        ("resourceVersionMatch=Exact", 422),
    ],
)
async def test_a_malformed_list_of_a_collection_deletes_nothing(
    api: ApiClient, query: str, status: int
) -> None:
    await api.create(sent.CONFIG_MAPS, config_map())
    assert (await api.delete(f"{sent.CONFIG_MAPS}?{query}")).status == status
    assert (await api.get(f"{sent.CONFIG_MAPS}/a")).status == 200


@pytest.mark.parametrize("query", ["resourceVersion=1", "uid=0-0"])
async def test_the_query_can_have_preconditions(api: ApiClient, query: str) -> None:
    await api.create(sent.CONFIG_MAPS, config_map())
    assert (await api.delete(f"{sent.CONFIG_MAPS}/a?{query}")).status == 409


async def test_a_dry_run_that_leaves_the_object_shows_it(api: ApiClient) -> None:
    await api.create(sent.CONFIG_MAPS, config_map())
    path = f"{sent.CONFIG_MAPS}/a?dryRun=All"
    orphaning = await api.delete(f"{path}&propagationPolicy=Orphan")
    assert orphaning.body["metadata"]["finalizers"] == ["orphan"]
    assert (await api.delete(path)).body["status"] == "Success"


async def test_an_empty_propagation_policy_is_refused(api: ApiClient) -> None:
    await api.create(sent.CONFIG_MAPS, config_map())
    reply = await api.delete(f"{sent.CONFIG_MAPS}/a", {"propagationPolicy": ""})
    assert (reply.status, reply.body["message"]) == (
        422,
        (
            'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "": '
            'supported values: "Foreground", "Background", "Orphan", "nil"'
        ),
    )


async def test_a_later_deletion_can_change_the_propagation_policy(api: ApiClient) -> None:
    body = config_map()
    body["metadata"]["finalizers"] = ["example.com/f"]
    await api.create(sent.CONFIG_MAPS, body)
    path = f"{sent.CONFIG_MAPS}/a"
    await api.delete(path)
    for policy, finalizers in (
        ("Orphan", ["example.com/f", "orphan"]),
        ("Foreground", ["example.com/f", "foregroundDeletion"]),
        ("Background", ["example.com/f"]),
    ):
        await api.delete(f"{path}?propagationPolicy={policy}")
        assert (await api.get(path)).body["metadata"]["finalizers"] == finalizers
    await api.patch(path, {"metadata": {"finalizers": None}}, MERGE)
    assert (await api.get(path)).status == 404
