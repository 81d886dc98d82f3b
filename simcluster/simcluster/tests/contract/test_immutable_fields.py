"""Fields that an update may not change, and what the errors show."""

from typing import Any

import pytest

from simcluster.tests.contract import requests as sent
from simcluster.tests.contract.causes import causes
from simcluster.tests.support.api_client import MERGE, ApiClient, config_map, node, pod

Json = dict[str, Any]

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
