"""Events in both API groups, dry runs of bindings and evictions, and access reviews."""

from typing import Any

import pytest

from simcluster.tests.contract import requests as sent
from simcluster.tests.contract.causes import INVALID, REQUIRED, causes
from simcluster.tests.support.api_client import ApiClient, binding, eviction, pod

Json = dict[str, Any]

EVENT: Json = {
    "metadata": {"generateName": "e-"},
    "eventTime": "2026-01-02T03:04:05.000006Z",
    "reportingController": "example.com/c",
    "reportingInstance": "c-1",
    "action": "Binding",
    "reason": "Scheduled",
    "type": "Normal",
    "note": "a note",
    "regarding": {"kind": "Pod", "namespace": "default", "name": "a"},
}


async def test_an_event_must_be_in_the_namespace_of_its_object(api: ApiClient) -> None:
    event = {
        "metadata": {"name": "e"},
        "involvedObject": {"kind": "Pod", "namespace": "other", "name": "a"},
    }
    assert causes(await api.post(sent.EVENTS, event)) == [
        (
            INVALID,
            "involvedObject.namespace",
            'Invalid value: "other": does not match event.namespace',
        )
    ]


@pytest.mark.parametrize("metadata", [{"generateName": "p."}, {"name": "A_b!"}])
async def test_the_name_of_an_event_is_any_path_segment(api: ApiClient, metadata: Json) -> None:
    created = await api.create(sent.EVENTS_V1, {**EVENT, "metadata": metadata})
    await api.delete(f"{sent.EVENTS}/{created['metadata']['name']}")


@pytest.mark.parametrize(
    ("missing", "expected"),
    [
        ("action", [(REQUIRED, "action", "Required value")]),
        ("reason", [(REQUIRED, "reason", "Required value")]),
        ("reportingInstance", [(REQUIRED, "reportingInstance", "Required value")]),
        ("eventTime", [(REQUIRED, "eventTime", "Required value")]),
    ],
)
async def test_events_v1_requires_more_fields_than_core_v1(
    api: ApiClient, missing: str, expected: list[tuple[str, str, str]]
) -> None:
    event = {key: value for key, value in EVENT.items() if key != missing}
    assert causes(await api.post(sent.EVENTS_V1, event)) == expected


async def test_the_series_of_an_event_can_be_updated(api: ApiClient) -> None:
    created = await api.create(sent.EVENTS_V1, EVENT)
    path = f"{sent.EVENTS_V1}/{created['metadata']['name']}"
    series = {"count": 2, "lastObservedTime": "2026-01-02T03:04:07.000008Z"}
    patched = await api.patch(path, {"series": series})
    assert (patched.status, patched.body["series"]) == (200, series)
    core = (await api.get(f"{sent.EVENTS}/{created['metadata']['name']}")).body
    assert (core["series"], core["message"]) == (series, "a note")
    await api.delete(path)


async def test_the_creator_of_an_event_owns_its_fields_by_the_names_of_its_version(
    api: ApiClient,
) -> None:
    created = await api.create(sent.EVENTS_V1, {**EVENT, "metadata": {"name": "e"}})
    [entry] = created["metadata"]["managedFields"]
    assert (entry["operation"], entry["apiVersion"]) == ("Update", "events.k8s.io/v1")
    assert entry["fieldsV1"].keys() == {f"f:{key}" for key in EVENT.keys() - {"metadata"}}
    path = f"{sent.EVENTS_V1}/e"
    patched = await api.patch(f"{path}?fieldManager=other", {"note": "another note"})
    fields = [found["fieldsV1"] for found in patched.body["metadata"]["managedFields"]]
    assert {"f:note": {}} in fields
    assert sum("f:note" in owned for owned in fields) == 1
    await api.delete(path)


async def test_the_owned_fields_of_an_event_do_not_depend_on_their_values(api: ApiClient) -> None:
    event: Json = {
        "metadata": {"name": "e"},
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "a"},
        "message": "a",
        "count": 1,
        "source": {"component": "c"},
    }
    owned = []
    for changed in ({}, {"message": "b"}, {"message": ""}, {"source": {"host": "h"}}):
        created = await api.create(sent.EVENTS, {**event, **changed})
        await api.delete(f"{sent.EVENTS}/e")
        owned.append(created["metadata"]["managedFields"][0]["fieldsV1"])
    fields: Json = {"f:count": {}, "f:involvedObject": {}, "f:source": {"f:component": {}}}
    assert owned == [
        fields | {"f:message": {}},
        fields | {"f:message": {}},
        fields,
        fields | {"f:message": {}, "f:source": {"f:host": {}}},
    ]


async def test_dry_runs_of_binding_and_eviction_change_nothing(api: ApiClient) -> None:
    created = await api.create(sent.PODS, pod())
    bound = await api.post(f"{sent.PODS}/a/binding?dryRun=All", binding("a", "n"))
    evicted = await api.post(f"{sent.PODS}/a/eviction?dryRun=All", eviction("a"))
    assert (bound.status, evicted.status) == (201, 201)
    assert (await api.get(f"{sent.PODS}/a")).body == created


async def test_a_self_subject_access_review_is_about_the_sender(api: ApiClient) -> None:
    spec = {"resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "default"}}
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    reply = await api.post(path, {"spec": spec})
    assert (reply.status, reply.body["status"]["allowed"]) == (201, True)
    assert reply.body["spec"] == spec


REVIEWS: list[tuple[str, Json, int, str]] = [
    (
        "authorization.k8s.io/v1/selfsubjectaccessreviews",
        {},
        422,
        (
            'SelfSubjectAccessReview.authorization.k8s.io "" is invalid: spec.resourceAttributes: '
            "Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must "
            "be specified"
        ),
    ),
    (
        "authorization.k8s.io/v1/subjectaccessreviews",
        {"nonResourceAttributes": {"path": "/", "verb": "get"}},
        422,
        (
            'SubjectAccessReview.authorization.k8s.io "" is invalid: spec.user: Invalid value: "": '
            "at least one of user or group must be specified"
        ),
    ),
    (
        "authentication.k8s.io/v1/tokenreviews",
        {},
        400,
        "token is required for TokenReview in authentication",
    ),
    (
        "authentication.k8s.io/v1/tokenreviews",
        {"token": 1},
        400,
        (
            'TokenReview in version "v1" cannot be handled as a TokenReview: json: cannot '
            "unmarshal number into Go struct field TokenReviewSpec.spec.token of type string"
        ),
    ),
]


@pytest.mark.parametrize(("path", "spec", "status", "message"), REVIEWS)
async def test_an_incomplete_review_is_refused(
    api: ApiClient, path: str, spec: Json, status: int, message: str
) -> None:
    reply = await api.post(f"/apis/{path}", {"spec": spec})
    assert (reply.status, reply.body["message"]) == (status, message)


async def test_a_service_account_gets_tokens(api: ApiClient) -> None:
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    name = "token-contract"
    assert (await api.post(accounts, {"metadata": {"name": name}})).status in {201, 409}
    reply = await api.post(f"{accounts}/{name}/token", {"spec": {"expirationSeconds": 600}})
    assert (reply.status, reply.body["kind"]) == (201, "TokenRequest")
    assert reply.body["status"]["token"].count(".") == 2
    short = await api.post(f"{accounts}/{name}/token", {"spec": {"expirationSeconds": 6}})
    assert causes(short) == [
        (
            INVALID,
            "spec.expirationSeconds",
            "Invalid value: 6: may not specify a duration less than 10 minutes",
        )
    ]
    await api.delete(f"{accounts}/{name}")


async def test_a_body_may_not_be_too_large(api: ApiClient) -> None:
    body = b'{"metadata":{"name":"a"},"data":{"a":"' + b"x" * 4_000_000 + b'"}}'
    reply = await api.post(sent.CONFIG_MAPS, body)
    assert (reply.status, reply.body["reason"]) == (413, "RequestEntityTooLarge")
    assert reply.body["message"] == "Request entity too large: limit is 3145728"
