"""A victim gets its condition, then is deleted; each eviction has an outcome."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from stowage.api.events import EvictionFinished
from stowage.api.instructions import POD_GROUP, EvictPod, PodReference
from stowage.operator.client.api_error import ApiError
from stowage.operator.writers.evictor import MAX_ATTEMPTS, REFUSED_PAUSE_S, Evictor
from tests.support.fake_api import FakeApiClient, FakeTime

VICTIM = PodReference("default", "v", "u-v")
INSTRUCTION = EvictPod(
    VICTIM, PodReference("default", "p", "u-p"), "stowage", observed_generation=3
)
EVICTED = EvictionFinished("u-p", VICTIM, was_deleted=True)
GONE = EvictionFinished("u-p", VICTIM)
POD = "/api/v1/namespaces/default/pods/v"


async def _evict(**scripts: list[Any]) -> tuple[EvictionFinished, FakeApiClient]:
    client, time = FakeApiClient(**scripts), FakeTime()
    evictor = Evictor(client, time.clock)
    return await evictor.evict(INSTRUCTION), client


async def test_the_condition_has_the_reason_and_the_delete_has_the_uid_as_precondition() -> None:
    outcome, client = await _evict()
    assert outcome == EVICTED
    patch, delete = client.requests
    assert (patch.method, patch.path) == ("PATCH", f"{POD}/status")
    assert patch.body == {
        "metadata": {"uid": "u-v"},
        "status": {
            "conditions": [
                {
                    "type": "DisruptionTarget",
                    "status": "True",
                    "reason": "PreemptionByScheduler",
                    "message": "stowage: preempting to accommodate a higher priority pod",
                    "lastTransitionTime": "t1000",
                    "observedGeneration": 3,
                }
            ]
        },
    }
    assert (delete.method, delete.path) == ("DELETE", POD)
    assert delete.body["preconditions"] == {"uid": "u-v"}
    assert "gracePeriodSeconds" not in delete.body


async def test_the_condition_names_a_pod_group_as_the_preemptor() -> None:
    client, time = FakeApiClient(), FakeTime()
    await Evictor(client, time.clock).evict(replace(INSTRUCTION, preemptor_kind=POD_GROUP))
    (condition,) = client.requests[0].body["status"]["conditions"]
    assert condition["message"] == ("stowage: preempting to accommodate a higher priority podgroup")


async def test_a_victim_that_is_already_gone_is_no_failure() -> None:
    outcome, client = await _evict(patch=[ApiError(404, "NotFound")])
    assert outcome == GONE
    assert client.sent("DELETE") == []
    outcome, _ = await _evict(delete=[ApiError(404, "NotFound")])
    assert outcome == GONE


@pytest.mark.parametrize("status", [409, 422])
async def test_another_pod_of_the_same_name_is_not_deleted(status: int) -> None:
    outcome, client = await _evict(patch=[ApiError(status)], delete=[ApiError(409)])
    assert outcome == GONE
    assert client.sent("DELETE")[0].body["preconditions"] == {"uid": "u-v"}


@pytest.mark.parametrize("method", ["patch", "delete"])
async def test_transient_errors_are_retried(method: str) -> None:
    answers = [TimeoutError(), ApiError(429), ApiError(503), {}]
    outcome, client = await _evict(**{method: answers})
    assert outcome == EVICTED
    assert len(client.sent(method.upper())) == 4


@pytest.mark.parametrize("method", ["patch", "delete"])
async def test_a_refusal_is_reported_and_not_retried(method: str) -> None:
    outcome, client = await _evict(**{method: [ApiError(403, "Forbidden", "no leave")]})
    assert outcome.error == "403 Forbidden: no leave"
    assert not outcome.was_deleted
    assert len(client.sent(method.upper())) == 1


async def test_an_eviction_fails_after_the_maximum_of_attempts() -> None:
    outcome, client = await _evict(delete=[TimeoutError()])
    assert outcome.error == "no answer in time"
    assert len(client.sent("DELETE")) == MAX_ATTEMPTS


async def test_a_refusal_is_reported_after_a_pause() -> None:
    client, time = FakeApiClient(delete=[ApiError(403)]), FakeTime()
    began = time.monotonic()
    outcome = await Evictor(client, time.clock).evict(INSTRUCTION)
    assert outcome.error
    assert time.monotonic() - began == REFUSED_PAUSE_S
