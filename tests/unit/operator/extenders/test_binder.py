"""The outcome of a binding through an extender is always found out."""

from __future__ import annotations

from typing import Any

import pytest

from stowage.api.config.loading import Extender
from stowage.api.events import BindFailed, BindSucceeded
from stowage.api.instructions import BindByExtender, BindPod, PodReference
from stowage.operator.client.api_error import ApiError
from stowage.operator.extenders.binder import ExtenderBinder
from stowage.operator.extenders.client import ExtenderError
from stowage.operator.writers.binder import Binder
from tests.support.fake_api import FakeApiClient, FakeTime
from tests.support.fake_extender import FakeExtender

POD = PodReference("default", "p", "u1")
BIND = BindByExtender(POD, "n", 0)
OR_BIND_OURSELVES = BindByExtender(POD, "n", 0, BindPod(POD, "n"))
SUCCEEDED = BindSucceeded("u1", "n")
LOST_ANSWER = ExtenderError("no answer within 5 s")
UNREACHABLE = ExtenderError("cannot connect", may_have_acted=False)


def _pod(node: str = "") -> dict[str, Any]:
    metadata = {"namespace": "default", "name": "p", "uid": "u1"}
    return {"metadata": metadata, "spec": {"nodeName": node}}


async def _bind(
    answer: Any,
    client: FakeApiClient,
    instruction: BindByExtender = BIND,
    *,
    may_write: bool = True,
) -> BindSucceeded | BindFailed:
    extender = FakeExtender(Extender(url_prefix="http://x", bind_verb="bind"), bind=answer)
    binder = Binder(client, lambda: may_write, FakeTime().clock)
    return await ExtenderBinder([extender], binder, lambda: may_write).bind(instruction)


async def test_an_answer_without_error_is_a_success() -> None:
    client = FakeApiClient()
    assert await _bind({}, client) == SUCCEEDED
    assert client.requests == []


@pytest.mark.parametrize("answer", [LOST_ANSWER, b"<html>", {"Error": "no quota"}], ids=str)
async def test_a_pod_found_on_its_node_is_bound_whatever_the_extender_said(answer: Any) -> None:
    assert await _bind(answer, FakeApiClient(get=[_pod("n")])) == SUCCEEDED


async def test_a_lost_answer_of_a_binding_that_was_not_made_is_a_failure() -> None:
    outcome = await _bind(LOST_ANSWER, FakeApiClient(get=[_pod()]))
    assert outcome == BindFailed("u1", "n", "no answer within 5 s", by_extender=True)


async def test_an_answer_that_makes_no_sense_names_the_extender() -> None:
    outcome = await _bind(b"<html>", FakeApiClient(get=[_pod()]))
    assert isinstance(outcome, BindFailed)
    assert outcome.message.startswith('extender "http://x" answered bind with $: <html>')


async def test_the_pod_is_not_read_if_the_extender_was_never_reached() -> None:
    client = FakeApiClient()
    outcome = await _bind(UNREACHABLE, client)
    assert outcome == BindFailed("u1", "n", "cannot connect", by_extender=True)
    assert client.requests == []


@pytest.mark.parametrize("answer", [UNREACHABLE, LOST_ANSWER, {"Error": "no"}], ids=str)
async def test_an_ignorable_extender_that_did_not_bind_leaves_it_to_us(answer: Any) -> None:
    client = FakeApiClient(get=[_pod()], post=[{}])
    assert await _bind(answer, client, OR_BIND_OURSELVES) == SUCCEEDED
    (request,) = client.sent("POST")
    assert request.path == "/api/v1/namespaces/default/pods/p/binding"


async def test_a_pod_on_another_node_is_not_bound_again() -> None:
    client = FakeApiClient(get=[_pod("elsewhere")])
    assert isinstance(await _bind(LOST_ANSWER, client, OR_BIND_OURSELVES), BindFailed)
    assert client.sent("POST") == []


async def test_a_pod_we_may_not_read_is_read_until_we_may() -> None:
    client = FakeApiClient(get=[ApiError(403, "Forbidden"), _pod("n")])
    assert await _bind(LOST_ANSWER, client) == SUCCEEDED
    assert len(client.sent("GET")) == 2


async def test_nothing_is_bound_without_the_lease() -> None:
    assert isinstance(await _bind({}, FakeApiClient(), may_write=False), BindFailed)


async def test_a_request_whose_lease_ran_out_on_its_way_is_not_sent() -> None:
    extender = FakeExtender(Extender(url_prefix="http://x", bind_verb="bind"), bind={})
    binder = Binder(FakeApiClient(get=[_pod()]), lambda: True, FakeTime().clock)
    held = iter((True, False))
    outcome = await ExtenderBinder([extender], binder, lambda: next(held)).bind(BIND)
    assert isinstance(outcome, BindFailed)
    assert extender.asked("bind") == []
