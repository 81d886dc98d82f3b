"""Status patches are merged, written once, and dropped when the pod is gone."""

from __future__ import annotations

import asyncio
from typing import Any

from msgspec.structs import replace

from simcluster.tests.support.timeouts import WAIT_TIMEOUT_S
from stowage.api.instructions import ClearNomination, PatchPodStatus, PodReference
from stowage.operator.client.api_error import ApiError
from stowage.operator.writers.pod_status import PodStatusWriter
from tests.support.fake_api import FakeApiClient, FakeTime

POD = PodReference("default", "p", "u1")
REFUSED = PatchPodStatus(POD, "Unschedulable", "0/1 nodes are available")
NOMINATED = PatchPodStatus(POD, "Unschedulable", "preempting", nominated_node_name="n1")


def _writer(client: FakeApiClient, may_write: bool = True) -> PodStatusWriter:
    time = FakeTime()
    return PodStatusWriter(client, lambda: may_write, time.clock)


async def _settle() -> None:
    for _ in range(30):
        await asyncio.sleep(0)


def _status(client: FakeApiClient) -> list[dict[str, Any]]:
    return [request.body["status"] for request in client.sent("PATCH")]


async def test_the_condition_is_written_with_the_uid_as_precondition() -> None:
    client = FakeApiClient()
    _writer(client).patch(REFUSED)
    await _settle()
    (request,) = client.requests
    assert request.path == "/api/v1/namespaces/default/pods/p/status"
    assert request.body == {
        "metadata": {"uid": "u1"},
        "status": {
            "conditions": [
                {
                    "type": "PodScheduled",
                    "status": "False",
                    "reason": "Unschedulable",
                    "message": "0/1 nodes are available",
                    "lastTransitionTime": "t1000",
                }
            ]
        },
    }


async def test_of_several_waiting_patches_the_last_is_written() -> None:
    client = FakeApiClient()
    writer = _writer(client)
    for number in range(5):
        writer.patch(PatchPodStatus(POD, "Unschedulable", f"{number}"))
    await _settle()
    assert [status["conditions"][0]["message"] for status in _status(client)] == ["4"]


async def test_a_waiting_nomination_survives_a_patch_that_does_not_touch_it() -> None:
    client = FakeApiClient()
    writer = _writer(client)
    writer.patch(NOMINATED)
    writer.patch(REFUSED)
    await _settle()
    (status,) = _status(client)
    assert status["nominatedNodeName"] == "n1"
    assert status["conditions"][0]["message"] == REFUSED.message


async def test_an_empty_nomination_clears_the_field() -> None:
    client = FakeApiClient()
    _writer(client).patch(PatchPodStatus(POD, "Unschedulable", "", nominated_node_name=""))
    await _settle()
    assert _status(client)[0]["nominatedNodeName"] is None


async def test_a_nomination_alone_leaves_the_condition_as_it_is() -> None:
    client = FakeApiClient()
    _writer(client).patch(PatchPodStatus(POD, nominated_node_name="n1"))
    await _settle()
    assert _status(client) == [{"nominatedNodeName": "n1"}]


async def test_a_nomination_leaves_a_waiting_condition_as_it_is() -> None:
    client = FakeApiClient()
    writer = _writer(client)
    writer.patch(REFUSED)
    writer.patch(PatchPodStatus(POD, nominated_node_name="n1"))
    await _settle()
    (status,) = _status(client)
    assert status["nominatedNodeName"] == "n1"
    assert status["conditions"][0]["reason"] == REFUSED.reason


async def test_the_condition_says_which_generation_it_is_about() -> None:
    client = FakeApiClient()
    _writer(client).patch(replace(REFUSED, observed_generation=3))
    await _settle()
    assert _status(client)[0]["conditions"][0]["observedGeneration"] == 3


async def test_the_transition_time_stays_while_the_condition_stays_false() -> None:
    client = FakeApiClient()
    _writer(client).patch(replace(REFUSED, is_transition=False))
    await _settle()
    assert "lastTransitionTime" not in _status(client)[0]["conditions"][0]


async def test_the_transition_time_is_written_once_if_patches_were_merged() -> None:
    client = FakeApiClient(patch=[TimeoutError(), {}])
    writer = _writer(client)
    writer.patch(REFUSED)
    await client.has_sent(1)
    writer.patch(replace(NOMINATED, is_transition=False))
    await _settle()
    first, second = _status(client)
    assert "lastTransitionTime" in first["conditions"][0]
    assert "lastTransitionTime" in second["conditions"][0]


async def test_a_patch_during_another_of_the_same_pod_comes_after_it() -> None:
    client = FakeApiClient()
    writer = _writer(client)
    writer.patch(REFUSED)
    await asyncio.sleep(0)
    writer.patch(NOMINATED)
    await _settle()
    assert len(client.requests) == 2


async def test_a_pod_that_is_gone_is_left_alone() -> None:
    client = FakeApiClient(patch=[ApiError(404, "NotFound")])
    writer = _writer(client)
    writer.patch(REFUSED)
    await _settle()
    assert len(client.requests) == 1


async def test_a_server_in_trouble_is_asked_again() -> None:
    client = FakeApiClient(patch=[ApiError(503), TimeoutError(), {}])
    _writer(client).patch(REFUSED)
    await _settle()
    assert len(client.requests) == 3


async def test_a_patch_that_other_writers_overtook_is_sent_again() -> None:
    overtaken = ApiError(409, "Conflict", "the object has been modified")
    client = FakeApiClient(patch=[overtaken, {}])
    _writer(client).patch(REFUSED)
    await _settle()
    assert len(client.requests) == 2


async def test_a_patch_for_a_pod_that_was_made_again_is_dropped() -> None:
    text = "Precondition failed: UID in precondition: u1, UID in object meta: u2"
    client = FakeApiClient(patch=[ApiError(409, "Conflict", text)])
    _writer(client).patch(REFUSED)
    await _settle()
    assert len(client.requests) == 1


async def test_nothing_is_written_for_a_forgotten_pod_or_without_the_lease() -> None:
    client = FakeApiClient()
    writer = _writer(client)
    writer.patch(REFUSED)
    writer.forget("u1")
    _writer(client, may_write=False).patch(REFUSED)
    await _settle()
    assert client.requests == []


async def test_a_patch_is_tried_for_as_long_as_the_server_is_away() -> None:
    client = FakeApiClient(patch=[*(TimeoutError() for _ in range(50)), {}])
    writer = _writer(client)
    writer.patch(REFUSED)
    await client.has_sent(51)
    await _settle()
    assert len(client.requests) == 51


async def test_a_newer_patch_takes_the_place_of_one_that_is_tried_again() -> None:
    client = FakeApiClient(patch=[TimeoutError(), {}])
    writer = _writer(client)
    writer.patch(REFUSED)
    await client.has_sent(1)
    writer.patch(PatchPodStatus(POD, "Unschedulable", "news"))
    await _settle()
    messages = [status["conditions"][0]["message"] for status in _status(client)]
    assert messages == [REFUSED.message, "news"]


async def test_a_binding_waits_for_a_patch_under_way_and_drops_the_next() -> None:
    client = FakeApiClient(patch=[TimeoutError()])
    writer = _writer(client)
    writer.patch(REFUSED)
    await client.has_sent(1)
    writer.patch(NOMINATED)
    await writer.cancel_and_wait("u1")
    await _settle()
    assert len(client.requests) == 1


async def test_a_binding_of_a_pod_without_a_patch_need_not_wait() -> None:
    client = FakeApiClient()
    await asyncio.wait_for(_writer(client).cancel_and_wait("u1"), WAIT_TIMEOUT_S)
    assert client.requests == []


async def test_clearing_a_nomination_leaves_the_condition_alone() -> None:
    client = FakeApiClient()
    _writer(client).clear_nomination(ClearNomination(POD))
    await _settle()
    assert _status(client) == [{"nominatedNodeName": None}]


async def test_a_nomination_cleared_before_it_was_written_is_not_written() -> None:
    client = FakeApiClient()
    writer = _writer(client)
    writer.patch(NOMINATED)
    writer.clear_nomination(ClearNomination(POD))
    await _settle()
    (status,) = _status(client)
    assert status["nominatedNodeName"] is None
    assert status["conditions"][0]["message"] == NOMINATED.message
