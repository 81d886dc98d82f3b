"""A writer that raises an unexpected exception still reports an outcome."""

from __future__ import annotations

from typing import Any

import pytest
from structlog.testing import capture_logs

from stowage.api.config.extenders import Extenders
from stowage.api.config.types import Extender
from stowage.api.events import (
    BindFailed,
    BindSucceeded,
    ClaimDeletionFinished,
    ClaimsWritten,
    EvictionFinished,
    ExtendersAnswered,
    VictimsReviewed,
    VolumesWritten,
)
from stowage.api.instructions import (
    BindByExtender,
    BindClaims,
    BindPod,
    BindVolumes,
    BindVolumeToClaim,
    ClaimReference,
    ClaimToBind,
    ConsultExtenders,
    ConsultOnVictims,
    DeleteClaim,
    EvictPod,
    Instruction,
    PodReference,
    VictimsOnNode,
)
from stowage.api.objects.meta import ObjectReference
from stowage.operator.extenders.client import ExtenderClient
from stowage.operator.extenders.dispatcher import ExtenderDispatcher
from stowage.operator.extenders.objects import ExtenderObjects
from stowage.operator.inbox import Inbox
from stowage.operator.writers.binder import Binder
from tests.support.device_builders import allocated, make_claim
from tests.support.dispatchers import make_dispatcher
from tests.support.engines import default_engine
from tests.support.fake_api import FakeApiClient, FakeTime

POD = PodReference("default", "p", "uid-p")
OTHER = PodReference("default", "q", "uid-q")
FAULT = RuntimeError("unforeseen")
NOT_BOUND = BindFailed("uid-p", "n", "binding: RuntimeError('unforeseen')")
BOUND = BindSucceeded("uid-p", "n")


def _pod_on(node_name: str) -> dict[str, Any]:
    return {
        "metadata": {"namespace": "default", "name": "p", "uid": "uid-p"},
        "spec": {"nodeName": node_name},
    }


async def _outcome(instruction: Instruction, client: FakeApiClient) -> object:
    inbox = Inbox()
    make_dispatcher(default_engine(), inbox, client, FakeTime()).dispatch([instruction])
    await inbox.wait(5.0)
    (outcome,) = inbox.drain(10)
    return outcome


@pytest.mark.parametrize(("node_name", "answer"), [("", NOT_BOUND), ("n", BOUND)])
async def test_a_binding_is_read_back_from_the_pod(node_name: str, answer: object) -> None:
    client = FakeApiClient(post=[FAULT], get=[_pod_on(node_name)])
    assert await _outcome(BindPod(POD, "n"), client) == answer


async def test_an_eviction_is_reported_as_failed() -> None:
    outcome = await _outcome(EvictPod(OTHER, POD, "s", 1), FakeApiClient(patch=[FAULT]))
    assert outcome == EvictionFinished("uid-p", OTHER, error="RuntimeError('unforeseen')")


async def test_volume_writes_are_reported_as_failed() -> None:
    claim = ObjectReference("PersistentVolumeClaim", "default", "c", "uid-c")
    give = BindVolumeToClaim("disk", "uid-disk", "4", claim, sets_bound_by_controller=True)
    client = FakeApiClient(get=[FAULT], put=[FAULT], patch=[FAULT])
    outcome = await _outcome(BindVolumes(POD, "n", (give,)), client)
    assert isinstance(outcome, VolumesWritten)
    assert (outcome.uid, "unforeseen" in outcome.error) == ("uid-p", True)


async def test_claim_writes_are_reported_as_failed() -> None:
    claim = make_claim("c", version="3")
    allocation = allocated(claim, "n", "gpu-0").status.allocation
    write = BindClaims(POD, "n", (ClaimToBind(claim, allocation),), number=7)
    outcome = await _outcome(write, FakeApiClient(patch=[FAULT]))
    assert outcome == ClaimsWritten("uid-p", 7, error="RuntimeError('unforeseen')")


async def test_the_deletion_of_a_claim_is_reported_as_failed() -> None:
    claim = ClaimReference("default", "c", "uid-c", "3")
    outcome = await _outcome(DeleteClaim(POD, claim), FakeApiClient(patch=[FAULT]))
    assert outcome == ClaimDeletionFinished(claim, "RuntimeError('unforeseen')")


class _FailingClient(ExtenderClient):
    async def send(self, *_given: Any) -> bytes:
        raise FAULT


def _extenders(inbox: Inbox, client: FakeApiClient) -> ExtenderDispatcher:
    time = FakeTime()
    extender = Extender(
        url_prefix="http://all", filter_verb="filter", preempt_verb="preempt", bind_verb="bind"
    )
    extenders = Extenders((extender,))
    binder = Binder(client, lambda: True, time.clock)
    objects = ExtenderObjects(client, time.clock, extenders)
    return ExtenderDispatcher(extenders, inbox, objects, binder, lambda: True, _FailingClient)


@pytest.mark.parametrize(("node_name", "answer"), [("", NOT_BOUND), ("n", BOUND)])
async def test_a_binding_by_an_extender_is_read_back_from_the_pod(
    node_name: str, answer: object
) -> None:
    inbox = Inbox()
    dispatcher = _extenders(inbox, FakeApiClient(get=[_pod_on(node_name)]))
    dispatcher.bind(BindByExtender(POD, "n", 0))
    await inbox.wait(5.0)
    assert list(inbox.drain(10)) == [answer]
    await dispatcher.close(0)


async def test_questions_to_extenders_are_answered_with_the_error_and_logged() -> None:
    inbox = Inbox()
    dispatcher = _extenders(inbox, FakeApiClient(get=[FAULT]))
    victims = {"n": VictimsOnNode((OTHER,))}
    with capture_logs() as logs:
        dispatcher.evaluate(ConsultExtenders(POD, 7, ("n",), (0,)))
        await inbox.wait(5.0)
        (answer,) = inbox.drain(10)
        dispatcher.review(ConsultOnVictims(POD, 8, victims, (0,)))
        await inbox.wait(5.0)
        (review,) = inbox.drain(10)
    text = "RuntimeError('unforeseen')"
    assert answer == ExtendersAnswered("uid-p", 7, error=f"consultation: {text}")
    assert review == VictimsReviewed("uid-p", 8, error=f"review: {text}")
    assert [(line["event"], line["pod"], line["log_level"]) for line in logs] == [
        ("consultation failed", "default/p", "error"),
        ("review failed", "default/p", "error"),
    ]
    await dispatcher.close(0)
