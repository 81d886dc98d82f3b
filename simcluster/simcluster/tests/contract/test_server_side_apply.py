"""Server-side apply: ownership of fields and conflicts."""

import json
from typing import Any

import pytest

from simcluster.tests.contract import requests as sent
from simcluster.tests.contract.requests import apply, deployment
from simcluster.tests.support.api_client import JSON_PATCH, MERGE, ApiClient, config_map, pod

Json = dict[str, Any]

PATH = f"{sent.CONFIG_MAPS}/a"


def owners(obj: Json) -> dict[tuple[str, str], Json]:
    """The owned fields by (manager, operation)."""
    return {
        (entry["manager"], entry["operation"]): entry["fieldsV1"]
        for entry in obj["metadata"]["managedFields"]
    }


async def test_applying_creates_a_missing_object(api: ApiClient) -> None:
    first = await apply(api, PATH, config_map("a", x="1"))
    assert (first.status, first.body["data"]) == (201, {"x": "1"})
    entry = first.body["metadata"]["managedFields"][0]
    assert {key: entry[key] for key in ("manager", "operation", "apiVersion", "fieldsType")} == {
        "manager": "m",
        "operation": "Apply",
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
    }
    assert entry["fieldsV1"] == {"f:data": {"f:x": {}}}
    again = await apply(api, PATH, config_map("a", x="1"))
    assert again.status == 200
    assert again.body["metadata"] == first.body["metadata"]


async def test_fields_that_are_no_longer_applied_are_removed(api: ApiClient) -> None:
    await apply(api, PATH, config_map("a", x="1", y="2"))
    reply = await apply(api, PATH, config_map("a", x="1"))
    assert reply.body["data"] == {"x": "1"}


async def test_fields_that_another_manager_applies_stay(api: ApiClient) -> None:
    await apply(api, PATH, config_map("a", x="1", y="2"))
    await apply(api, PATH, config_map("a", y="2"), "other")
    reply = await apply(api, PATH, config_map("a", x="1"))
    assert reply.body["data"] == {"x": "1", "y": "2"}
    assert owners(reply.body) == {
        ("m", "Apply"): {"f:data": {"f:x": {}}},
        ("other", "Apply"): {"f:data": {"f:y": {}}},
    }


async def test_changing_fields_of_other_managers_is_a_conflict(api: ApiClient) -> None:
    await apply(api, PATH, config_map("a", x="1"))
    reply = await apply(api, PATH, config_map("a", x="2"), "other")
    assert (reply.status, reply.body["reason"]) == (409, "Conflict")
    assert reply.body["message"] == 'Apply failed with 1 conflict: conflict with "m": .data.x'
    assert reply.body["details"]["causes"] == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "m"', "field": ".data.x"}
    ]
    forced = await apply(api, PATH, config_map("a", x="2"), "other", force=True)
    assert forced.body["data"] == {"x": "2"}
    assert owners(forced.body) == {("other", "Apply"): {"f:data": {"f:x": {}}}}


async def test_several_conflicts_are_listed_by_manager(api: ApiClient) -> None:
    await apply(api, PATH, config_map("a", x="1", y="1"))
    reply = await apply(api, PATH, config_map("a", x="2", y="2"), "other")
    assert reply.body["message"] == (
        'Apply failed with 2 conflicts: conflicts with "m":\n- .data.x\n- .data.y'
    )


async def test_creates_and_updates_record_field_managers(api: ApiClient) -> None:
    created = await api.create(f"{sent.CONFIG_MAPS}?fieldManager=maker", config_map("a", x="1"))
    assert owners(created) == {("maker", "Update"): {"f:data": {".": {}, "f:x": {}}}}
    reply = await apply(api, PATH, config_map("a", x="2"))
    assert reply.status == 409
    assert reply.body["message"] == (
        'Apply failed with 1 conflict: conflict with "maker" using v1: .data.x'
    )
    patched = await api.patch(f"{PATH}?fieldManager=changer", {"data": {"x": "3"}}, MERGE)
    assert owners(patched.body) == {
        ("changer", "Update"): {"f:data": {"f:x": {}}},
        ("maker", "Update"): {"f:data": {}},
    }


async def test_items_of_a_keyed_list_have_separate_managers(api: ApiClient) -> None:
    path = f"{sent.DEPLOYMENTS}/w"
    assert (await apply(api, path, deployment())).status == 201
    sidecar = deployment()
    sidecar["spec"] = {
        "template": {"spec": {"containers": [{"name": "side", "image": "y:1"}]}},
    }
    both = await apply(api, path, sidecar, "other")
    names = [c["name"] for c in both.body["spec"]["template"]["spec"]["containers"]]
    assert names == ["c", "side"]
    item: Json = {".": {}, "f:image": {}, "f:name": {}}
    assert owners(both.body)[("other", "Apply")]["f:spec"]["f:template"]["f:spec"] == {
        "f:containers": {'k:{"name":"side"}': item}
    }
    sidecar["spec"] = {"replicas": 2}
    alone = await apply(api, path, sidecar, "other", force=True)
    containers = alone.body["spec"]["template"]["spec"]["containers"]
    assert [c["name"] for c in containers] == ["c"]
    assert alone.body["spec"]["replicas"] == 2


async def test_a_pod_can_be_applied(api: ApiClient) -> None:
    path = f"{sent.PODS}/a"
    assert (await apply(api, path, pod())).status == 201
    changed = pod()
    changed["metadata"]["labels"] = {"app": "b"}
    reply = await apply(api, path, changed)
    assert reply.body["metadata"]["labels"] == {"app": "b"}


async def test_a_dry_run_of_an_apply_changes_nothing(api: ApiClient) -> None:
    query = "?fieldManager=m&dryRun=All"
    kind = "application/apply-patch+yaml"
    reply = await api.request("PATCH", PATH + query, config_map(), kind)
    assert reply.status == 201
    assert (await api.get(PATH)).status == 404


REFUSED: list[tuple[str, Json, int, str]] = [
    (
        "?fieldManager=m%01",
        config_map(),
        422,
        (
            'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Invalid value: "m\\x01": '
            "invalid character U+0001 (at position 1)"
        ),
    ),
    (
        "?fieldManager=m",
        {**config_map(), "metadata": {"name": "a", "uid": "u"}},
        409,
        (
            'Operation cannot be fulfilled on configmaps "a": uid mismatch: the provided object '
            "specified uid u, and no existing object was found"
        ),
    ),
    (
        "",
        config_map(),
        422,
        (
            'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for '
            "apply patch"
        ),
    ),
    (
        "?fieldManager=m",
        {**config_map(), "apiVersion": "v7"},
        400,
        "invalid object type: /v7, Kind=ConfigMap",
    ),
    (
        "?fieldManager=m",
        config_map("b"),
        400,
        "the name of the object (b) does not match the name on the URL (a)",
    ),
    (
        "?fieldManager=m",
        {**config_map(), "colour": "red"},
        500,
        (
            "failed to create typed patch object (/a; /v1, Kind=ConfigMap): .colour: field "
            "not declared in schema"
        ),
    ),
]


@pytest.mark.parametrize(("query", "body", "status", "message"), REFUSED)
async def test_malformed_apply_configurations_are_refused(
    api: ApiClient, query: str, body: Json, status: int, message: str
) -> None:
    reply = await api.request("PATCH", PATH + query, body, "application/apply-patch+yaml")
    assert (reply.status, reply.body["message"]) == (status, message)


async def test_a_configuration_of_another_kind_is_refused(api: ApiClient) -> None:
    await api.create(sent.CONFIG_MAPS, config_map("a", x="1"))
    reply = await apply(api, PATH, {**config_map("a"), "kind": "Secret"})
    assert (reply.status, reply.body["message"]) == (400, "invalid object type: /v1, Kind=Secret")
    assert (await api.get(PATH)).body["data"] == {"x": "1"}


async def test_only_an_apply_can_be_forced(api: ApiClient) -> None:
    await api.create(sent.CONFIG_MAPS, config_map())
    reply = await api.patch(f"{PATH}?force=true", {}, MERGE)
    assert reply.status == 422
    assert reply.body["message"] == (
        'PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: may not be specified for '
        "non-apply patch"
    )


async def test_fields_that_decoding_sets_have_no_manager(api: ApiClient) -> None:
    await api.create(sent.PODS, pod())
    condition = {"type": "example.com/One", "status": "True"}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}
    status = {**body, "status": {"conditions": [condition]}}
    applied = (await apply(api, f"{sent.PODS}/a/status", status)).body
    item: Json = {".": {}, "f:status": {}, "f:type": {}}
    owned = {"f:status": {"f:conditions": {'k:{"type":"example.com/One"}': item}}}
    assert owners(applied)[("m", "Apply")] == owned
    assert applied["status"]["conditions"][0]["lastProbeTime"] is None
    gone = (await apply(api, f"{sent.PODS}/a/status", {**body, "status": {}})).body
    assert "conditions" not in gone["status"]


async def test_a_client_can_clear_managed_fields(api: ApiClient) -> None:
    await apply(api, PATH, config_map("a", x="1"))
    found = (await api.get(PATH)).body
    found["metadata"]["managedFields"] = [{}]
    reply = await api.put(PATH, found)
    assert "managedFields" not in reply.body["metadata"]


MADE: list[tuple[str, Json, Json]] = [
    (
        sent.PODS,
        pod(),
        {
            "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
            "f:spec": {
                "f:containers": {
                    'k:{"name":"c"}': {
                        ".": {},
                        "f:image": {},
                        "f:imagePullPolicy": {},
                        "f:name": {},
                        "f:resources": {},
                        "f:terminationMessagePath": {},
                        "f:terminationMessagePolicy": {},
                    }
                },
                "f:dnsPolicy": {},
                "f:enableServiceLinks": {},
                "f:restartPolicy": {},
                "f:schedulerName": {},
                "f:securityContext": {},
                "f:terminationGracePeriodSeconds": {},
            },
        },
    ),
    (
        sent.NODES,
        {"metadata": {"name": "n"}, "spec": {"unschedulable": True}},
        {"f:spec": {"f:unschedulable": {}}},
    ),
    (
        sent.LEASES,
        {"metadata": {"name": "l"}, "spec": {"holderIdentity": "a", "leaseDurationSeconds": 15}},
        {"f:spec": {"f:holderIdentity": {}, "f:leaseDurationSeconds": {}}},
    ),
    (
        sent.NAMESPACES,
        {"metadata": {"name": "made"}},
        {"f:metadata": {"f:labels": {".": {}, "f:kubernetes.io/metadata.name": {}}}},
    ),
    (
        sent.CLAIMS,
        {
            "metadata": {"name": "p"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
            },
        },
        {
            "f:spec": {
                "f:accessModes": {},
                "f:resources": {"f:requests": {".": {}, "f:storage": {}}},
                "f:volumeMode": {},
            }
        },
    ),
]


@pytest.mark.parametrize(("path", "body", "fields"), MADE)
async def test_the_creator_of_an_object_owns_its_fields_and_their_defaults(
    api: ApiClient, path: str, body: Json, fields: Json
) -> None:
    made = await api.create(f"{path}?fieldManager=maker&dryRun=All", body)
    assert owners(made) == {("maker", "Update"): fields}


async def test_a_status_update_records_its_manager_and_a_binding_does_not(api: ApiClient) -> None:
    await api.create(f"{sent.PODS}?fieldManager=maker", pod())
    assert (await api.bind("a", "n")).status == 201
    patch = {"status": {"phase": "Running"}}
    bound = (await api.patch(f"{sent.PODS}/a/status?fieldManager=runner", patch)).body
    entries = {entry["manager"]: entry for entry in bound["metadata"]["managedFields"]}
    assert set(entries) == {"maker", "runner"}
    assert entries["runner"]["subresource"] == "status"
    assert entries["runner"]["fieldsV1"] == {"f:status": {"f:phase": {}}}


LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


async def test_kubectl_takes_over_its_client_side_applied_fields(api: ApiClient) -> None:
    old = config_map("a", x="1", y="1")
    applied = {**old, "metadata": {"name": "a", "annotations": {LAST_APPLIED: json.dumps(old)}}}
    await api.create(f"{sent.CONFIG_MAPS}?fieldManager=kubectl-client-side-apply", applied)
    other = await apply(api, PATH, config_map("a", x="2", y="2"))
    assert other.status == 409
    taken = await apply(api, PATH, config_map("a", x="2", y="2"), "kubectl")
    assert taken.status == 200, taken.text
    text = taken.body["metadata"]["annotations"][LAST_APPLIED]
    assert json.loads(text)["data"] == {"x": "2", "y": "2"}
    assert text.endswith("\n")


async def test_kubectl_does_not_take_over_fields_that_others_changed_since(api: ApiClient) -> None:
    old = config_map("a", x="1")
    applied = {**old, "metadata": {"name": "a", "annotations": {LAST_APPLIED: json.dumps(old)}}}
    await api.create(f"{sent.CONFIG_MAPS}?fieldManager=kubectl-client-side-apply", applied)
    await api.patch(f"{PATH}?fieldManager=changer", {"data": {"x": "3"}}, MERGE)
    refused = await apply(api, PATH, config_map("a", x="2"), "kubectl")
    assert refused.status == 409
    assert refused.body["message"] == (
        'Apply failed with 1 conflict: conflict with "changer" using v1: .data.x'
    )


async def test_a_client_can_send_managed_fields(api: ApiClient) -> None:
    made = await api.create(f"{sent.CONFIG_MAPS}?fieldManager=maker", config_map("a", x="1"))
    renamed = {**made["metadata"]["managedFields"][0], "manager": "heir", "operation": "Apply"}
    replace = [{"op": "replace", "path": "/metadata/managedFields", "value": [renamed]}]
    reply = await api.patch(f"{PATH}?fieldManager=other", replace, JSON_PATCH)
    assert owners(reply.body) == {("heir", "Apply"): {"f:data": {".": {}, "f:x": {}}}}
    assert reply.body["metadata"]["resourceVersion"] != made["metadata"]["resourceVersion"]
    garbled = [{"op": "replace", "path": "/metadata/managedFields", "value": [{"manager": "x"}]}]
    kept = await api.patch(f"{PATH}?fieldManager=other", garbled, JSON_PATCH)
    assert kept.status in {200, 422}
    assert owners((await api.get(PATH)).body) == owners(reply.body)


async def test_parents_of_applied_fields_stay(api: ApiClient) -> None:
    made = await api.create(f"{sent.CONFIG_MAPS}?fieldManager=maker", config_map("a", x="1", y="1"))
    owned = {**made["metadata"]["managedFields"][0], "manager": "m", "operation": "Apply"}
    replace = [{"op": "replace", "path": "/metadata/managedFields", "value": [owned]}]
    assert (await api.patch(PATH, replace, JSON_PATCH)).status == 200
    reply = await apply(api, PATH, config_map("a", x="1"))
    assert reply.body["data"] == {"x": "1"}


APPLY = "application/apply-patch+yaml"
DUPLICATES = b"""\
apiVersion: v1
kind: ConfigMap
metadata:
  name: a
data:
  x: "1"
  x: "2"
"""
ALREADY_SET = 'line 7: key "x" already set in map'


async def test_duplicate_keys_of_a_configuration_are_refused(api: ApiClient) -> None:
    url = f"{PATH}?fieldManager=m&fieldValidation=Strict"
    reply = await api.request("PATCH", url, DUPLICATES, APPLY)
    assert (reply.status, reply.body["message"]) == (
        400,
        "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n  "
        + ALREADY_SET,
    )
    assert (await api.get(PATH)).status == 404


@pytest.mark.parametrize(
    ("directive", "warnings"), [("", [ALREADY_SET]), ("Warn", [ALREADY_SET]), ("Ignore", [])]
)
async def test_duplicate_keys_of_a_configuration_cause_warnings(
    api: ApiClient, directive: str, warnings: list[str]
) -> None:
    url = f"{PATH}?fieldManager=m&fieldValidation={directive}"
    for status in (201, 200):
        reply = await api.request("PATCH", url, DUPLICATES, APPLY)
        assert (reply.status, reply.warnings) == (status, warnings)
    assert reply.body["data"] == {"x": "2"}


async def test_duplicate_keys_of_a_json_configuration_are_reported_too(api: ApiClient) -> None:
    body = (
        b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"x":"1","x":"2"}}'
    )
    reply = await api.request("PATCH", f"{PATH}?fieldManager=m", body, APPLY)
    assert (reply.status, reply.warnings) == (201, ['line 1: key "x" already set in map'])


async def test_an_apply_that_changes_no_value_has_no_time(api: ApiClient) -> None:
    await apply(api, PATH, config_map("a", x="1"), "one")
    shared = await apply(api, PATH, config_map("a", x="1"), "two")
    entries = shared.body["metadata"]["managedFields"]
    assert [(each["manager"], "time" in each) for each in entries] == [
        ("two", False),
        ("one", True),
    ]


async def test_removing_fields_leaves_earlier_revisions_alone(api: ApiClient) -> None:
    created = await apply(api, PATH, config_map("a", x="1", y="2"), "one")
    await apply(api, PATH, config_map("a", x="1"), "two")
    await apply(api, PATH, {**config_map("a"), "data": {}}, "one")
    revision = created.body["metadata"]["resourceVersion"]
    query = f"resourceVersion={revision}&resourceVersionMatch=Exact"
    (before,) = (await api.get(f"{sent.CONFIG_MAPS}?{query}")).body["items"]
    assert before["data"] == {"x": "1", "y": "2"}
    assert (await api.get(PATH)).body["data"] == {"x": "1"}


async def test_malformed_yaml_is_refused_with_its_error(api: ApiClient) -> None:
    kind = "application/apply-patch+yaml"
    reply = await api.request("PATCH", f"{PATH}?fieldManager=m", b"a: [", kind)
    assert (reply.status, reply.body["message"]) == (
        400,
        (
            "error decoding YAML: error converting YAML to JSON: yaml: line 1: did not find "
            "expected "
            "node content"
        ),
    )


async def test_an_owner_reference_is_owned_as_a_whole(api: ApiClient) -> None:
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u"}
    body = {**config_map(), "metadata": {"name": "a", "ownerReferences": [owner]}}
    applied = await apply(api, f"{sent.CONFIG_MAPS}/a", body)
    [entry] = applied.body["metadata"]["managedFields"]
    assert entry["fieldsV1"]["f:metadata"]["f:ownerReferences"] == {'k:{"uid":"u"}': {}}


async def test_an_empty_configuration_has_no_kind(api: ApiClient) -> None:
    path = f"{sent.CONFIG_MAPS}/a?fieldManager=m"
    reply = await api.patch(path, b"", "application/apply-patch+yaml")
    assert (reply.status, reply.body["message"]) == (400, "invalid object type: /, Kind=")


async def test_the_revision_of_a_configuration_that_creates_is_ignored(api: ApiClient) -> None:
    body = {**config_map(), "metadata": {"name": "a", "resourceVersion": "5"}}
    assert (await apply(api, f"{sent.CONFIG_MAPS}/a", body)).status == 201
