"""Which kinds an API server shows is found out by listing and watching each of them."""

from __future__ import annotations

from typing import Any

import pytest

from stowage.api.decoding.errors import InvalidObject
from stowage.api.reflected_kinds import NODES, POD_GROUP_SOURCES, REFLECTED_KINDS, ReflectedKind
from stowage.operator.client.api_error import ApiError
from stowage.operator.watch.visible_kinds import OBSERVED, PENDING_PODS, visible_kinds
from tests.support.fake_api import FakeApiClient

BUDGETS = next(kind for kind in REFLECTED_KINDS if kind.kind == "PodDisruptionBudget")
GROUPS = next(iter(POD_GROUP_SOURCES))
LISTED = {"metadata": {"resourceVersion": "7"}, "items": []}
FORBIDDEN = ApiError(403, "Forbidden", "no right")
NOT_SERVED = ApiError(404, "NotFound", "not served")


async def _visible(
    kind: ReflectedKind[Any], listed: Any, watched: Any = ()
) -> tuple[bool, list[str], FakeApiClient]:
    """Whether the kind is visible, what is said, and the client."""
    client, said = FakeApiClient(get=[listed], watch=[list(watched)]), list[str]()
    found = await visible_kinds(client, said.append, (kind,))
    assert found in ([], [kind])
    return bool(found), said, client


async def test_a_kind_is_visible_if_it_can_be_listed_and_watched() -> None:
    is_visible, said, client = await _visible(PENDING_PODS, LISTED, [b"{}\n"])
    assert is_visible
    assert said == []
    selector = "spec.nodeName=,status.phase!=Succeeded,status.phase!=Failed"
    listing, watching = client.requests
    assert (listing.path, watching.path) == ("/api/v1/pods", "/api/v1/pods")
    assert listing.params == {"limit": "1", "fieldSelector": selector}
    assert watching.params == {
        "watch": "true",
        "timeoutSeconds": "1",
        "resourceVersion": "7",
        "fieldSelector": selector,
    }


async def test_a_kind_without_a_selector_is_asked_for_as_a_whole() -> None:
    _, _, client = await _visible(NODES, LISTED)
    assert [set(each.params) for each in client.requests] == [
        {"limit"},
        {"watch", "timeoutSeconds", "resourceVersion"},
    ]


@pytest.mark.parametrize("refusal", [FORBIDDEN, NOT_SERVED], ids=["forbidden", "not served"])
@pytest.mark.parametrize("what", ["list", "watch"])
async def test_a_kind_that_is_refused_is_left_out_and_named(refusal: ApiError, what: str) -> None:
    answers = (refusal, ()) if what == "list" else (LISTED, [refusal])
    is_visible, said, _ = await _visible(BUDGETS, *answers)
    assert not is_visible
    assert said == [f"PodDisruptionBudget is left out: {refusal}"]


async def test_pod_groups_that_are_not_served_are_left_out_without_a_word() -> None:
    assert (await _visible(GROUPS, NOT_SERVED))[:2] == (False, [])
    is_visible, said, _ = await _visible(GROUPS, FORBIDDEN)
    assert not is_visible
    assert said == [f"{GROUPS.kind} is left out: {FORBIDDEN}"]


@pytest.mark.parametrize(
    ("kind", "error"),
    [(NODES, FORBIDDEN), (PENDING_PODS, NOT_SERVED), (BUDGETS, ApiError(503))],
    ids=["nodes", "pods", "unavailable"],
)
async def test_without_nodes_or_pods_or_an_answer_nothing_is_observed(
    kind: ReflectedKind[Any], error: ApiError
) -> None:
    with pytest.raises(ApiError) as caught:
        await _visible(kind, error)
    assert caught.value is error


async def test_a_server_whose_lists_have_no_version_is_no_api_server() -> None:
    with pytest.raises(InvalidObject):
        await _visible(BUDGETS, {"metadata": {}, "items": []})


async def test_a_recording_holds_every_kind_that_scheduling_reads() -> None:
    client = FakeApiClient(get=[LISTED], watch=[[]])
    found = await visible_kinds(client, lambda _: None)
    assert found == list(OBSERVED)
    assert len(client.sent("GET")) == len(OBSERVED)
