"""Lists: their content by resourceVersion, and invalid options."""

from typing import Any
from urllib.parse import quote

import pytest

from simcluster import SimulatedCluster
from simcluster.tests.support.api_client import (
    CONFIG_MAPS,
    NODES,
    PODS,
    ApiClient,
    config_map,
    node,
    pod,
)

Json = dict[str, Any]

ALL_PODS = "/api/v1/pods"


async def names(api: ApiClient, query: str, path: str = PODS) -> list[str]:
    """The names in a list, in order."""
    reply = await api.get(f"{path}?{query}")
    assert reply.status == 200, reply.text
    return [item["metadata"]["name"] for item in reply.body["items"]]


async def test_the_revision_of_a_list_is_that_of_the_last_write_of_any_kind(api: ApiClient) -> None:
    await api.create(PODS, pod())
    written = await api.create(CONFIG_MAPS, config_map())
    assert int(await api.revision()) >= int(written["metadata"]["resourceVersion"])


async def test_items_are_ordered_by_namespace_and_name(api: ApiClient) -> None:
    for name in ("b", "a-b", "a", "a.b"):
        await api.create(PODS, pod(name))
    assert await names(api, "") == ["a", "a-b", "a.b", "b"]


async def test_an_exact_revision_shows_an_earlier_state(api: ApiClient) -> None:
    first = await api.create(PODS, pod("a"))
    await api.create(PODS, pod("b"))
    then = await api.revision()
    await api.create(PODS, pod("c"))
    await api.delete(f"{PODS}/a?gracePeriodSeconds=0")
    exact = f"resourceVersion={then}&resourceVersionMatch=Exact"
    listed = (await api.get(f"{PODS}?{exact}")).body
    assert [item["metadata"]["name"] for item in listed["items"]] == ["a", "b"]
    assert listed["metadata"]["resourceVersion"] == then
    assert listed["items"][0]["metadata"]["uid"] == first["metadata"]["uid"]
    assert await names(api, "") == ["b", "c"]


async def test_not_older_than_shows_the_current_state(api: ApiClient) -> None:
    await api.create(PODS, pod("a"))
    then = await api.revision()
    await api.create(PODS, pod("b"))
    await api.revision()
    for match in ("", "&resourceVersionMatch=NotOlderThan"):
        assert await names(api, f"resourceVersion={then}{match}") == ["a", "b"]


async def test_a_limit_without_a_version_match_shows_the_exact_revision(api: ApiClient) -> None:
    await api.create(PODS, pod("a"))
    then = await api.revision()
    await api.create(PODS, pod("b"))
    listed = (await api.get(f"{PODS}?resourceVersion={then}&limit=10")).body
    assert [item["metadata"]["name"] for item in listed["items"]] == ["a"]
    assert listed["metadata"]["resourceVersion"] == then


async def test_revision_zero_shows_a_consistent_state_without_waiting(api: ApiClient) -> None:
    await api.create(PODS, pod("a"))
    await api.revision()
    query = "resourceVersion=0&resourceVersionMatch=NotOlderThan"
    assert await names(api, query) == ["a"]


@pytest.mark.parametrize(
    ("query", "field", "message"),
    [
        (
            "resourceVersionMatch=Exact",
            "resourceVersionMatch",
            "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided",
        ),
        (
            "resourceVersionMatch=Exact&resourceVersion=0",
            "resourceVersionMatch",
            'Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"',
        ),
        (
            "resourceVersionMatch=NotOlderThan&resourceVersion=1&continue=x",
            "resourceVersionMatch",
            "Forbidden: resourceVersionMatch is forbidden when continue is provided",
        ),
        (
            "resourceVersionMatch=Newest&resourceVersion=1",
            "resourceVersionMatch",
            'Unsupported value: "Newest": supported values: "Exact", "NotOlderThan", ""',
        ),
        (
            "sendInitialEvents=true",
            "sendInitialEvents",
            "Forbidden: sendInitialEvents is forbidden for list",
        ),
    ],
)
async def test_contradictory_options_are_invalid(
    api: ApiClient, query: str, field: str, message: str
) -> None:
    reply = await api.get(f"{PODS}?{query}")
    assert reply.status == 422
    assert reply.body["reason"] == "Invalid"
    assert reply.body["message"] == f'ListOptions.meta.k8s.io "" is invalid: {field}: {message}'
    details = reply.body["details"]
    assert (details["group"], details["kind"]) == ("meta.k8s.io", "ListOptions")
    assert [(cause["field"], cause["message"]) for cause in details["causes"]] == [(field, message)]


async def test_a_revision_that_is_not_a_number_is_a_bad_request(api: ApiClient) -> None:
    reply = await api.get(f"{PODS}?resourceVersion=abc")
    assert (reply.status, reply.body["reason"]) == (400, "BadRequest")
    assert 'Invalid value: "abc"' in reply.body["message"]
    assert 'strconv.ParseUint: parsing "abc": invalid syntax' in reply.body["message"]


@pytest.mark.parametrize(
    ("text", "why"),
    [("", "invalid syntax"), ("9223372036854775808", "value out of range")],
)
async def test_a_limit_above_64_bits_is_a_bad_request(api: ApiClient, text: str, why: str) -> None:
    reply = await api.get(f"{PODS}?limit={text}")
    assert (reply.status, reply.body["reason"]) == (400, "BadRequest")
    assert reply.body["message"] == f'strconv.ParseInt: parsing "{text}": {why}'


@pytest.mark.parametrize(
    ("path", "field", "message"),
    [
        (PODS, "metadata.name=a=b", "invalid field selector: unescaped character in value: 61"),
        (PODS, "spec.nosuch=1", "field label not supported: spec.nosuch"),
        ("/api/v1/events", "regarding.name=a", "field label not supported: regarding.name"),
        ("/apis/events.k8s.io/v1/events", "source=a", "field label not supported: source"),
        (
            "/apis/resource.k8s.io/v1/resourceslices",
            "nosuch=a",
            "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: nosuch",
        ),
        (
            "/apis/apps/v1/deployments",
            "nosuch=a",
            '"nosuch" is not a known field selector: only "metadata.name", "metadata.namespace"',
        ),
    ],
)
async def test_the_error_for_an_unsupported_field_selector_depends_on_the_kind(
    api: ApiClient, path: str, field: str, message: str
) -> None:
    reply = await api.get(f"{path}?fieldSelector={quote(field)}")
    assert (reply.status, reply.body["reason"]) == (400, "BadRequest")
    assert reply.body["message"] == message


async def test_old_names_of_fields_can_be_selected(api: ApiClient) -> None:
    for path in (
        f"{PODS}?fieldSelector=spec.host%3Dnowhere",
        "/apis/resource.k8s.io/v1/resourceslices?fieldSelector=spec.driver%3Dnone",
        "/apis/scheduling.k8s.io/v1/priorityclasses?fieldSelector=metadata.namespace%3Da",
    ):
        reply = await api.get(path)
        assert (reply.status, reply.body["items"]) == (200, [])


async def test_a_limit_that_is_not_a_number_is_a_bad_request(api: ApiClient) -> None:
    reply = await api.get(f"{PODS}?limit=many")
    assert (reply.status, reply.body["reason"]) == (400, "BadRequest")
    assert 'parsing "many": invalid syntax' in reply.body["message"]


async def test_a_future_revision_is_answered_after_a_wait(api: ApiClient) -> None:
    future = int(await api.revision()) + 100_000
    reply = await api.get(f"{PODS}?resourceVersion={future}&resourceVersionMatch=NotOlderThan")
    assert (reply.status, reply.body["reason"]) == (504, "Timeout")
    assert reply.body["message"].startswith(f"Timeout: Too large resource version: {future}, ")
    details = reply.body["details"]
    assert details["retryAfterSeconds"] == 1
    assert details["causes"] == [
        {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    ]


async def test_an_expired_revision_is_gone(
    simulated_cluster: SimulatedCluster, api: ApiClient
) -> None:
    before = await api.revision()
    await api.create(PODS, pod())
    simulated_cluster.server.forget_history()
    reply = await api.get(f"{PODS}?resourceVersion={before}&resourceVersionMatch=Exact")
    assert (reply.status, reply.body["reason"]) == (410, "Expired")
    assert reply.body["message"] == "The resourceVersion for the provided list is too old."


async def test_an_object_can_be_selected_by_name(api: ApiClient) -> None:
    for name in "ab":
        await api.create(PODS, pod(name))
    for path in (PODS, ALL_PODS):
        assert await names(api, "fieldSelector=metadata.name=b", path) == ["b"]
    assert await names(api, "fieldSelector=metadata.name!=b") == ["a"]
    assert await names(api, "fieldSelector=metadata.name=c") == []


async def test_a_namespace_can_be_selected_in_a_list_across_namespaces(api: ApiClient) -> None:
    await api.create(PODS, pod())
    assert await names(api, "fieldSelector=metadata.namespace=default", ALL_PODS) == ["a"]
    assert await names(api, "fieldSelector=metadata.namespace=kube-public", ALL_PODS) == []


async def test_nodes_can_be_selected_by_unschedulable(api: ApiClient) -> None:
    for name in "mn":
        await api.create(NODES, node(name))
    await api.patch(f"{NODES}/n", {"spec": {"unschedulable": True}})
    assert await names(api, "fieldSelector=spec.unschedulable=true", NODES) == ["n"]
    assert await names(api, "fieldSelector=spec.unschedulable=false", NODES) == ["m"]


async def test_a_write_moves_an_object_between_selectors(api: ApiClient) -> None:
    for name in "ab":
        await api.create(PODS, pod(name))
    await api.bind("a", "n")
    await api.patch(f"{PODS}/b/status", {"status": {"phase": "Failed"}})
    await api.revision()
    assert await names(api, "fieldSelector=spec.nodeName=n") == ["a"]
    assert await names(api, "fieldSelector=spec.nodeName=,status.phase!=Failed") == []
    assert await names(api, "fieldSelector=status.phase=Failed&labelSelector=app=b") == ["b"]


async def test_a_large_list_is_complete(api: ApiClient) -> None:
    count = 600
    for number in range(count):
        await api.create(CONFIG_MAPS, config_map(f"large-{number:03d}"))
    listed = await names(api, "", CONFIG_MAPS)
    found = [name for name in listed if name.startswith("large-")]
    assert found == [f"large-{number:03d}" for number in range(count)]


async def test_a_revision_beyond_64_bits_is_refused(api: ApiClient) -> None:
    reply = await api.get("/api/v1/nodes?resourceVersion=18446744073709551616")
    assert (reply.status, reply.body["message"]) == (
        400,
        (
            'invalid resource version: resourceVersion: Invalid value: "18446744073709551616": '
            'strconv.ParseUint: parsing "18446744073709551616": value out of range'
        ),
    )
