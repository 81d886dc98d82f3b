"""Binding reports an outcome even if the API server's answer is lost."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import aiohttp
import pytest
from structlog.testing import capture_logs

from stowage.api.events import BindFailed, BindSucceeded
from stowage.api.instructions import BindPod, PodReference
from stowage.operator.client.api_error import ApiError
from stowage.operator.writers.binder import LATE_S, MAX_ANSWERED_ERRORS, Binder, BindingState
from tests.support.fake_api import FakeApiClient, FakeTime

POD = PodReference("default", "p", "u1")
INSTRUCTION = BindPod(POD, "n1")
SUCCEEDED = BindSucceeded("u1", "n1")
ALREADY_ASSIGNED = ApiError(409, "Conflict", "pod p is already assigned to node")
FORBIDDEN = ApiError(403, "Forbidden", "no right")
UNREACHABLE = aiohttp.ClientConnectorError(Mock(), OSError(111, "refused"))


def _pod(node: str = "", uid: str = "u1") -> dict[str, Any]:
    return {
        "metadata": {"namespace": "default", "name": "p", "uid": uid},
        "spec": {"nodeName": node},
    }


async def _bind(client: FakeApiClient, may_write: bool = True) -> BindSucceeded | BindFailed:
    return await Binder(client, lambda: may_write, FakeTime().clock).bind(INSTRUCTION)


async def test_a_binding_names_the_node_and_has_the_uid_as_precondition() -> None:
    client = FakeApiClient(post=[{}])
    assert await _bind(client) == SUCCEEDED
    (request,) = client.requests
    assert request.path == "/api/v1/namespaces/default/pods/p/binding"
    assert request.body["metadata"] == {"name": "p", "namespace": "default", "uid": "u1"}
    assert request.body["target"] == {"apiVersion": "v1", "kind": "Node", "name": "n1"}


async def test_a_binding_carries_the_annotations_for_the_pod() -> None:
    client = FakeApiClient(post=[{}])
    reserved = {"reserved.stowage/gpus": "0,3"}
    instruction = BindPod(INSTRUCTION.pod, "n1", reserved)
    await Binder(client, lambda: True, FakeTime().clock).bind(instruction)
    (request,) = client.requests
    assert request.body["metadata"]["annotations"] == reserved


@pytest.mark.parametrize("status", [400, 403, 404, 422])
async def test_a_refused_binding_is_a_failure_without_reading_the_pod(status: int) -> None:
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
async def test_a_lost_answer_is_a_success_if_the_pod_is_on_its_node(lost: Exception) -> None:
    client = FakeApiClient(post=[lost], get=[_pod(node="n1")])
    assert await _bind(client) == SUCCEEDED
    assert [request.method for request in client.requests] == ["POST", "GET"]


async def test_a_lost_answer_is_posted_again_if_the_pod_has_no_node() -> None:
    client = FakeApiClient(post=[TimeoutError(), {}], get=[_pod()])
    assert await _bind(client) == SUCCEEDED
    assert [request.method for request in client.requests] == ["POST", "GET", "GET", "POST"]


async def test_a_binding_that_takes_effect_after_the_first_read_is_not_posted_again() -> None:
    client = FakeApiClient(post=[TimeoutError(), {}], get=[_pod(), _pod(node="n1")])
    assert await _bind(client) == SUCCEEDED
    assert len(client.sent("POST")) == 1


async def test_a_binding_on_a_broken_connection_is_posted_again_after_a_pause() -> None:
    client = FakeApiClient(post=[aiohttp.ServerDisconnectedError(), {}], get=[_pod()])
    time = FakeTime()
    assert await Binder(client, lambda: True, time.clock).bind(INSTRUCTION) == SUCCEEDED
    assert time.slept == [LATE_S]


async def test_a_binding_is_not_posted_again_for_a_replaced_pod() -> None:
    client = FakeApiClient(post=[TimeoutError(), {}], get=[_pod(), _pod(uid="u2")])
    assert isinstance(await _bind(client), BindFailed)
    assert len(client.sent("POST")) == 1


@pytest.mark.parametrize(
    "found",
    [_pod(node="elsewhere"), _pod(node="n1", uid="u2"), ApiError(404, "NotFound")],
    ids=["on another node", "another pod of that name", "gone"],
)
async def test_a_lost_answer_is_a_failure_if_the_pod_is_gone_or_elsewhere(found: Any) -> None:
    client = FakeApiClient(post=[TimeoutError()], get=[found])
    assert isinstance(await _bind(client), BindFailed)
    assert len(client.sent("POST")) == 1


async def test_a_conflict_is_a_success_if_the_pod_is_on_its_node() -> None:
    assert await _bind(FakeApiClient(post=[ALREADY_ASSIGNED], get=[_pod(node="n1")])) == SUCCEEDED


async def test_a_conflict_is_a_failure_if_the_pod_has_no_node() -> None:
    conflict = ApiError(409, "Conflict", "pod p is being deleted, cannot be assigned to a host")
    outcome = await _bind(FakeApiClient(post=[conflict], get=[_pod()]))
    assert isinstance(outcome, BindFailed)
    assert "is being deleted" in outcome.message


async def test_the_pod_is_read_until_the_api_server_answers() -> None:
    client = FakeApiClient(
        post=[TimeoutError()], get=[TimeoutError(), ApiError(503), UNREACHABLE, _pod(node="n1")]
    )
    assert await _bind(client) == SUCCEEDED
    assert len(client.sent("GET")) == 4


async def test_each_repetition_is_logged_with_its_reason() -> None:
    client = FakeApiClient(post=[ApiError(503, "Busy", "later"), {}], get=[FORBIDDEN, _pod()])
    with capture_logs() as logs:
        assert await _bind(client) == SUCCEEDED
    line = {"pod": "default/p", "log_level": "info"}
    assert logs == [
        line | {"event": "reading back again", "error": "403 Forbidden: no right"},
        line | {"event": "binding again", "error": "503 Busy: later"},
    ]


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
async def test_an_answer_without_the_pod_is_read_again(refusal: Any) -> None:
    client = FakeApiClient(post=[TimeoutError()], get=[refusal, _pod(node="n1")])
    assert await _bind(client) == SUCCEEDED
    assert len(client.sent("GET")) == 2


async def test_an_unreachable_api_server_is_retried_without_reading_the_pod() -> None:
    client = FakeApiClient(post=[UNREACHABLE, UNREACHABLE, {}])
    assert await _bind(client) == SUCCEEDED
    assert client.sent("GET") == []


async def test_retry_after_is_respected() -> None:
    client, time = FakeApiClient(post=[ApiError(429, retry_after=7.0), {}]), FakeTime()
    assert await Binder(client, lambda: True, time.clock).bind(INSTRUCTION) == SUCCEEDED
    assert time.slept == [7.0]


async def test_after_a_lost_answer_what_the_rate_limit_refused_is_read_back_once() -> None:
    """Before the next POST, for the lost one may be late; the refusal itself is sure."""
    client = FakeApiClient(post=[TimeoutError(), ApiError(429), {}], get=[_pod()])
    assert await _bind(client) == SUCCEEDED
    methods = [request.method for request in client.requests]
    assert methods == ["POST", "GET", "GET", "POST", "GET", "POST"]


async def test_a_binding_that_was_answered_is_posted_again_without_waiting_for_its_arrival() -> (
    None
):
    client, time = FakeApiClient(post=[ApiError(503), {}], get=[_pod()]), FakeTime()
    assert await Binder(client, lambda: True, time.clock).bind(INSTRUCTION) == SUCCEEDED
    assert time.slept == [0.1]


async def test_a_pod_is_read_back_every_ten_seconds_at_least() -> None:
    client, time = FakeApiClient(get=[*(TimeoutError() for _ in range(9)), _pod("n1")]), FakeTime()
    state = await Binder(client, lambda: True, time.clock).read_binding_state(POD, "n1")
    assert state is BindingState.BOUND
    assert time.slept[-2:] == [10.0, 10.0]


async def test_a_binding_is_not_posted_again_once_the_lease_is_lost() -> None:
    held = iter((True, False))
    client = FakeApiClient(post=[ApiError(429)])
    outcome = await Binder(client, lambda: next(held), FakeTime().clock).bind(INSTRUCTION)
    text = "this replica does not hold the lease any more"
    assert outcome == BindFailed("u1", "n1", text)
    assert len(client.sent("POST")) == 1


async def test_binding_fails_after_the_maximum_of_server_errors() -> None:
    client = FakeApiClient(post=[ApiError(500, "InternalError", "no")], get=[_pod()])
    assert await _bind(client) == BindFailed("u1", "n1", "500 InternalError: no")
    assert len(client.sent("POST")) == MAX_ANSWERED_ERRORS


async def test_after_a_lost_answer_a_refusal_is_verified_by_a_read() -> None:
    client = FakeApiClient(
        post=[TimeoutError(), ApiError(403, "Forbidden", "webhook")],
        get=[_pod(), _pod(node="n1")],
    )
    assert await _bind(client) == SUCCEEDED


async def test_no_binding_is_posted_without_the_lease() -> None:
    client = FakeApiClient(post=[{}])
    assert isinstance(await _bind(client, may_write=False), BindFailed)
    assert client.requests == []
