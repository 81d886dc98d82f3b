"""The outcome of a binding is always found out."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import aiohttp
import pytest

from stowage.api.events import BindFailed, BindSucceeded
from stowage.api.instructions import BindPod, PodReference
from stowage.operator.client.api_error import ApiError
from stowage.operator.writers.binder import LATE_S, MAX_ANSWERED_ERRORS, Binder
from tests.support.fake_api import FakeApiClient, FakeTime

INSTRUCTION = BindPod(PodReference("default", "p", "u1"), "n1")
SUCCEEDED = BindSucceeded("u1", "n1")
ALREADY_ASSIGNED = ApiError(409, "Conflict", "pod p is already assigned to node")
UNREACHABLE = aiohttp.ClientConnectorError(Mock(), OSError(111, "refused"))


def _pod(node: str = "", uid: str = "u1") -> dict[str, Any]:
    return {
        "metadata": {"namespace": "default", "name": "p", "uid": uid},
        "spec": {"nodeName": node},
    }


async def _bind(client: FakeApiClient, may_write: bool = True) -> BindSucceeded | BindFailed:
    return await Binder(client, lambda: may_write, FakeTime().clock).bind(INSTRUCTION)


async def test_a_binding_names_the_node_and_insists_on_the_uid() -> None:
    client = FakeApiClient(post=[{}])
    assert await _bind(client) == SUCCEEDED
    (request,) = client.requests
    assert request.path == "/api/v1/namespaces/default/pods/p/binding"
    assert request.body["metadata"] == {"name": "p", "namespace": "default", "uid": "u1"}
    assert request.body["target"] == {"apiVersion": "v1", "kind": "Node", "name": "n1"}


@pytest.mark.parametrize("status", [400, 403, 404, 422])
async def test_a_refusal_is_a_failure_without_asking_further(status: int) -> None:
    client = FakeApiClient(post=[ApiError(status, "Reason", "why not")])
    assert await _bind(client) == BindFailed("u1", "n1", f"{status} Reason: why not")
    assert len(client.requests) == 1


@pytest.mark.parametrize(
    "lost",
    [
        TimeoutError(),
        aiohttp.ServerDisconnectedError(),
        ApiError(504),
        ApiError(408, "", "a proxy would not wait any longer"),
        ApiError(200, "", "<html>please log in</html>"),
        ApiError(302),
    ],
    ids=repr,
)
async def test_a_lost_answer_of_a_binding_that_took_place_is_a_success(lost: Exception) -> None:
    client = FakeApiClient(post=[lost], get=[_pod(node="n1")])
    assert await _bind(client) == SUCCEEDED
    assert [request.method for request in client.requests] == ["POST", "GET"]


async def test_a_lost_answer_of_a_binding_that_did_not_take_place_is_posted_again() -> None:
    client = FakeApiClient(post=[TimeoutError(), {}], get=[_pod()])
    assert await _bind(client) == SUCCEEDED
    assert [request.method for request in client.requests] == ["POST", "GET", "GET", "POST"]


async def test_a_binding_that_arrives_after_it_was_looked_for_is_not_posted_again() -> None:
    client = FakeApiClient(post=[TimeoutError(), {}], get=[_pod(), _pod(node="n1")])
    assert await _bind(client) == SUCCEEDED
    assert len(client.sent("POST")) == 1


async def test_a_binding_whose_connection_broke_has_time_to_arrive() -> None:
    client = FakeApiClient(post=[aiohttp.ServerDisconnectedError(), {}], get=[_pod()])
    time = FakeTime()
    assert await Binder(client, lambda: True, time.clock).bind(INSTRUCTION) == SUCCEEDED
    assert time.slept == [LATE_S]


async def test_a_pod_that_goes_while_its_binding_waits_is_not_posted_again() -> None:
    client = FakeApiClient(post=[TimeoutError(), {}], get=[_pod(), _pod(uid="u2")])
    assert isinstance(await _bind(client), BindFailed)
    assert len(client.sent("POST")) == 1


@pytest.mark.parametrize(
    "found",
    [_pod(node="elsewhere"), _pod(node="n1", uid="u2"), ApiError(404, "NotFound")],
    ids=["on another node", "another pod of that name", "gone"],
)
async def test_a_pod_that_cannot_be_ours_any_more_is_a_failure(found: Any) -> None:
    client = FakeApiClient(post=[TimeoutError()], get=[found])
    assert isinstance(await _bind(client), BindFailed)
    assert len(client.sent("POST")) == 1


async def test_a_conflict_over_a_pod_already_on_our_node_is_a_success() -> None:
    assert await _bind(FakeApiClient(post=[ALREADY_ASSIGNED], get=[_pod(node="n1")])) == SUCCEEDED


async def test_a_conflict_over_a_pod_without_a_node_is_a_failure() -> None:
    conflict = ApiError(409, "Conflict", "pod p is being deleted, cannot be assigned to a host")
    outcome = await _bind(FakeApiClient(post=[conflict], get=[_pod()]))
    assert isinstance(outcome, BindFailed)
    assert "is being deleted" in outcome.message


async def test_the_pod_is_read_until_there_is_an_answer() -> None:
    client = FakeApiClient(
        post=[TimeoutError()], get=[TimeoutError(), ApiError(503), UNREACHABLE, _pod(node="n1")]
    )
    assert await _bind(client) == SUCCEEDED
    assert len(client.sent("GET")) == 4


OTHER_ANSWERS = {
    "forbidden": ApiError(403, "Forbidden"),
    "unauthorized": ApiError(401),
    "the path is not served": ApiError(404, "", "404 page not found"),
    "a page": b"<html>",
    "nothing": b"{}",
    "a list": {"kind": "PodList", "metadata": {"resourceVersion": "7"}, "items": []},
    "another pod": {
        "metadata": {"namespace": "default", "name": "q", "uid": "u7"},
        "spec": {"nodeName": "n7"},
    },
}


@pytest.mark.parametrize("refusal", OTHER_ANSWERS.values(), ids=OTHER_ANSWERS.keys())
async def test_what_does_not_show_the_pod_is_no_answer(refusal: Any) -> None:
    client = FakeApiClient(post=[TimeoutError()], get=[refusal, _pod(node="n1")])
    assert await _bind(client) == SUCCEEDED
    assert len(client.sent("GET")) == 2


async def test_a_server_that_cannot_be_reached_is_tried_again_without_reading() -> None:
    client = FakeApiClient(post=[UNREACHABLE, UNREACHABLE, {}])
    assert await _bind(client) == SUCCEEDED
    assert client.sent("GET") == []


async def test_too_many_requests_waits_as_long_as_asked() -> None:
    client, time = FakeApiClient(post=[ApiError(429, retry_after=7.0), {}]), FakeTime()
    assert await Binder(client, lambda: True, time.clock).bind(INSTRUCTION) == SUCCEEDED
    assert time.slept == [7.0]


async def test_a_server_that_answers_with_errors_for_ever_is_given_up() -> None:
    client = FakeApiClient(post=[ApiError(500, "InternalError", "no")], get=[_pod()])
    assert await _bind(client) == BindFailed("u1", "n1", "500 InternalError: no")
    assert len(client.sent("POST")) == MAX_ANSWERED_ERRORS


async def test_a_refusal_after_a_lost_answer_is_checked_once_more() -> None:
    client = FakeApiClient(
        post=[TimeoutError(), ApiError(403, "Forbidden", "webhook")],
        get=[_pod(), _pod(node="n1")],
    )
    assert await _bind(client) == SUCCEEDED


async def test_nothing_is_posted_without_the_lease() -> None:
    client = FakeApiClient(post=[{}])
    assert isinstance(await _bind(client, may_write=False), BindFailed)
    assert client.requests == []
