"""Binding through an extender reports an outcome even if the extender's answer is lost."""

from __future__ import annotations

from typing import Any

import pytest
from structlog.testing import capture_logs

from stowage.api.config.extenders import Extenders
from stowage.api.config.loading import Extender
from stowage.api.events import BindFailed, BindSucceeded
from stowage.api.instructions import BindByExtender, BindPod, PodReference
from stowage.operator.client.api_error import ApiError
from stowage.operator.extenders.binder import ExtenderBinder
from stowage.operator.extenders.client import ExtenderError
from stowage.operator.extenders.dispatcher import ExtenderDispatcher
from stowage.operator.extenders.objects import ExtenderObjects
from stowage.operator.inbox import Inbox
from stowage.operator.writers.binder import Binder
from tests.support.fake_api import FakeApiClient, FakeTime
from tests.support.fake_extender import FakeExtender
from tests.unit.operator.tasks import let_tasks_run

POD = PodReference("default", "p", "u1")
BIND = BindByExtender(POD, "n", 0)
BIND_WITH_FALLBACK = BindByExtender(POD, "n", 0, BindPod(POD, "n"))
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


async def test_an_answer_without_an_error_is_a_success() -> None:
    client = FakeApiClient()
    assert await _bind({}, client) == SUCCEEDED
    assert client.requests == []


@pytest.mark.parametrize("answer", [LOST_ANSWER, b"<html>", {"Error": "no quota"}], ids=str)
async def test_a_pod_on_its_node_is_bound_despite_an_error_of_the_extender(
    answer: Any,
) -> None:
    assert await _bind(answer, FakeApiClient(get=[_pod("n")])) == SUCCEEDED


async def test_a_lost_answer_is_a_failure_if_the_pod_has_no_node() -> None:
    outcome = await _bind(LOST_ANSWER, FakeApiClient(get=[_pod()]))
    assert outcome == BindFailed("u1", "n", "no answer within 5 s", by_extender=True)


async def test_an_invalid_answer_fails_with_the_url_of_the_extender() -> None:
    outcome = await _bind(b"<html>", FakeApiClient(get=[_pod()]))
    assert isinstance(outcome, BindFailed)
    assert outcome.message.startswith('extender "http://x" answered bind with $: <html>')


async def test_the_pod_is_not_read_if_the_extender_was_unreachable() -> None:
    client = FakeApiClient()
    outcome = await _bind(UNREACHABLE, client)
    assert outcome == BindFailed("u1", "n", "cannot connect", by_extender=True)
    assert client.requests == []


@pytest.mark.parametrize("answer", [UNREACHABLE, LOST_ANSWER, {"Error": "no"}], ids=str)
async def test_the_scheduler_binds_if_an_ignorable_extender_did_not(answer: Any) -> None:
    client = FakeApiClient(get=[_pod()], post=[{}])
    assert await _bind(answer, client, BIND_WITH_FALLBACK) == SUCCEEDED
    (request,) = client.sent("POST")
    assert request.path == "/api/v1/namespaces/default/pods/p/binding"


async def test_a_pod_on_another_node_is_not_bound_again() -> None:
    client = FakeApiClient(get=[_pod("elsewhere")])
    assert isinstance(await _bind(LOST_ANSWER, client, BIND_WITH_FALLBACK), BindFailed)
    assert client.sent("POST") == []


async def test_a_pod_is_read_again_while_reading_is_forbidden() -> None:
    client = FakeApiClient(get=[ApiError(403, "Forbidden"), _pod("n")])
    assert await _bind(LOST_ANSWER, client) == SUCCEEDED
    assert len(client.sent("GET")) == 2


async def test_no_pod_is_bound_without_the_lease() -> None:
    assert isinstance(await _bind({}, FakeApiClient(), may_write=False), BindFailed)


async def test_the_extender_is_not_called_if_the_lease_runs_out_just_before() -> None:
    extender = FakeExtender(Extender(url_prefix="http://x", bind_verb="bind"), bind={})
    binder = Binder(FakeApiClient(get=[_pod()]), lambda: True, FakeTime().clock)
    held = iter((True, False))
    outcome = await ExtenderBinder([extender], binder, lambda: next(held)).bind(BIND)
    assert isinstance(outcome, BindFailed)
    assert extender.asked("bind") == []


@pytest.mark.parametrize(
    ("answer", "outcome", "lines"),
    [
        ({}, SUCCEEDED, []),
        (
            UNREACHABLE,
            BindFailed("u1", "n", "cannot connect", by_extender=True),
            [
                {
                    "event": "pod not bound",
                    "log_level": "warning",
                    "pod": "default/p",
                    "node": "n",
                    "error": "cannot connect",
                }
            ],
        ),
    ],
    ids=["bound", "failed"],
)
async def test_the_engine_hears_of_the_outcome_and_a_failure_is_logged(
    answer: Any, outcome: BindSucceeded | BindFailed, lines: list[dict[str, str]]
) -> None:
    inbox, time, client = Inbox(), FakeTime(), FakeApiClient()
    extenders = Extenders((Extender(url_prefix="http://x", bind_verb="bind"),))
    dispatcher = ExtenderDispatcher(
        extenders,
        inbox,
        ExtenderObjects(client, time.clock, extenders),
        Binder(client, lambda: True, time.clock),
        lambda: True,
        lambda config: FakeExtender(config, bind=answer),
    )
    with capture_logs() as logs:
        dispatcher.bind(BIND)
        await let_tasks_run()
    assert inbox.drain(10) == [outcome]
    assert logs == lines
