"""Status patches are merged, written once, and dropped when the pod is gone."""

from __future__ import annotations

import asyncio
from typing import Any

from msgspec.structs import replace
from structlog.testing import capture_logs

from simcluster.tests.support.timeouts import WAIT_TIMEOUT_S
from stowage.api.instructions import ClearNomination, PatchPodStatus, PodReference
from stowage.operator.client.api_error import ApiError
from stowage.operator.writers.pod_status import PodStatusWriter
from tests.support.fake_api import FakeApiClient, FakeTime
from tests.unit.operator.tasks import let_tasks_run

POD = PodReference("default", "p", "u1")
REFUSED = PatchPodStatus(POD, "Unschedulable", "0/1 nodes are available")
NOMINATED = PatchPodStatus(POD, "Unschedulable", "preempting", nominated_node_name="n1")


def _writer(client: FakeApiClient, may_write: bool = True) -> PodStatusWriter:
    time = FakeTime()
    return PodStatusWriter(client, lambda: may_write, time.clock)


def _status(client: FakeApiClient) -> list[dict[str, Any]]:
    return [request.body["status"] for request in client.sent("PATCH")]


async def test_the_condition_is_written_with_the_uid_as_precondition() -> None:
    client = FakeApiClient()
    _writer(client).patch(REFUSED)
    await let_tasks_run()
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


async def test_the_last_of_several_waiting_patches_is_written() -> None:
    client = FakeApiClient()
    writer = _writer(client)
    for number in range(5):
        writer.patch(PatchPodStatus(POD, "Unschedulable", f"{number}"))
    await let_tasks_run()
    assert [status["conditions"][0]["message"] for status in _status(client)] == ["4"]


async def test_a_waiting_nomination_survives_a_patch_of_the_condition() -> None:
    client = FakeApiClient()
    writer = _writer(client)
    writer.patch(NOMINATED)
    writer.patch(REFUSED)
    await let_tasks_run()
    (status,) = _status(client)
    assert status["nominatedNodeName"] == "n1"
    assert status["conditions"][0]["message"] == REFUSED.message


async def test_an_empty_nomination_clears_the_field() -> None:
    client = FakeApiClient()
    _writer(client).patch(PatchPodStatus(POD, "Unschedulable", "", nominated_node_name=""))
    await let_tasks_run()
    assert _status(client)[0]["nominatedNodeName"] is None


async def test_a_patch_of_the_nomination_alone_leaves_the_condition() -> None:
    client = FakeApiClient()
    _writer(client).patch(PatchPodStatus(POD, nominated_node_name="n1"))
    await let_tasks_run()
    assert _status(client) == [{"nominatedNodeName": "n1"}]


async def test_a_waiting_condition_survives_a_patch_of_the_nomination() -> None:
    client = FakeApiClient()
    writer = _writer(client)
    writer.patch(REFUSED)
    writer.patch(PatchPodStatus(POD, nominated_node_name="n1"))
    await let_tasks_run()
    (status,) = _status(client)
    assert status["nominatedNodeName"] == "n1"
    assert status["conditions"][0]["reason"] == REFUSED.reason


async def test_the_condition_has_the_observed_generation() -> None:
    client = FakeApiClient()
    _writer(client).patch(replace(REFUSED, observed_generation=3))
    await let_tasks_run()
    assert _status(client)[0]["conditions"][0]["observedGeneration"] == 3


async def test_the_transition_time_is_not_written_without_a_transition() -> None:
    client = FakeApiClient()
    _writer(client).patch(replace(REFUSED, is_transition=False))
    await let_tasks_run()
    assert "lastTransitionTime" not in _status(client)[0]["conditions"][0]


async def test_each_transition_of_a_pod_has_its_own_time() -> None:
    client, time = FakeApiClient(), FakeTime()
    writer = PodStatusWriter(client, lambda: True, time.clock)
    for is_transition in (True, False, True):
        writer.patch(replace(REFUSED, is_transition=is_transition))
        await let_tasks_run()
        time.now += 60.0
    times = [status["conditions"][0].get("lastTransitionTime") for status in _status(client)]
    assert times == ["t1000", None, "t1120"]


async def test_a_merged_patch_keeps_the_transition_time() -> None:
    client = FakeApiClient(patch=[TimeoutError(), {}])
    writer = _writer(client)
    writer.patch(REFUSED)
    await client.has_sent(1)
    writer.patch(replace(NOMINATED, is_transition=False))
    await let_tasks_run()
    first, second = _status(client)
    assert "lastTransitionTime" in first["conditions"][0]
    assert "lastTransitionTime" in second["conditions"][0]


async def test_patches_of_one_pod_are_sent_one_after_the_other() -> None:
    client = FakeApiClient()
    writer = _writer(client)
    writer.patch(REFUSED)
    await asyncio.sleep(0)
    writer.patch(NOMINATED)
    await let_tasks_run()
    assert len(client.requests) == 2


async def test_a_patch_of_a_deleted_pod_is_not_retried() -> None:
    client = FakeApiClient(patch=[ApiError(404, "NotFound")])
    writer = _writer(client)
    writer.patch(REFUSED)
    await let_tasks_run()
    assert len(client.requests) == 1


async def test_transient_errors_are_retried() -> None:
    client = FakeApiClient(patch=[ApiError(503), TimeoutError(), {}])
    _writer(client).patch(REFUSED)
    await let_tasks_run()
    assert len(client.requests) == 3


async def test_a_patch_with_a_conflict_is_sent_again() -> None:
    overtaken = ApiError(409, "Conflict", "the object has been modified")
    client = FakeApiClient(patch=[overtaken, {}])
    _writer(client).patch(REFUSED)
    await let_tasks_run()
    assert len(client.requests) == 2


async def test_a_patch_for_a_replaced_pod_is_dropped() -> None:
    text = "Precondition failed: UID in precondition: u1, UID in object meta: u2"
    client = FakeApiClient(patch=[ApiError(409, "Conflict", text)])
    _writer(client).patch(REFUSED)
    await let_tasks_run()
    assert len(client.requests) == 1


async def test_no_patch_is_sent_for_a_forgotten_pod_or_without_the_lease() -> None:
    client = FakeApiClient()
    writer = _writer(client)
    writer.patch(REFUSED)
    writer.forget("u1")
    _writer(client, may_write=False).patch(REFUSED)
    await let_tasks_run()
    assert client.requests == []


async def test_a_patch_that_is_refused_is_logged_and_not_sent_again() -> None:
    client = FakeApiClient(patch=[ApiError(403, "Forbidden", "no right")])
    with capture_logs() as logs:
        _writer(client).patch(REFUSED)
        await let_tasks_run()
    (line,) = logs
    assert (line["event"], line["log_level"]) == ("pod status not written", "warning")
    assert (line["pod"], line["error"]) == ("default/p", "403 Forbidden: no right")
    assert len(client.requests) == 1


async def test_a_patch_is_retried_as_long_as_the_api_server_is_away() -> None:
    client = FakeApiClient(patch=[*(TimeoutError() for _ in range(50)), {}])
    writer = _writer(client)
    writer.patch(REFUSED)
    await client.has_sent(51)
    await let_tasks_run()
    assert len(client.requests) == 51


async def test_a_newer_patch_replaces_one_that_is_retried() -> None:
    client = FakeApiClient(patch=[TimeoutError(), {}])
    writer = _writer(client)
    writer.patch(REFUSED)
    await client.has_sent(1)
    writer.patch(PatchPodStatus(POD, "Unschedulable", "newer"))
    await let_tasks_run()
    messages = [status["conditions"][0]["message"] for status in _status(client)]
    assert messages == [REFUSED.message, "newer"]


async def test_a_binding_waits_for_a_patch_in_flight_and_drops_the_next() -> None:
    client = FakeApiClient(patch=[TimeoutError()])
    writer = _writer(client)
    writer.patch(REFUSED)
    await client.has_sent(1)
    writer.patch(NOMINATED)
    await writer.cancel_and_wait("u1")
    await let_tasks_run()
    assert len(client.requests) == 1


async def test_a_binding_of_a_pod_without_a_patch_does_not_wait() -> None:
    client = FakeApiClient()
    await asyncio.wait_for(_writer(client).cancel_and_wait("u1"), WAIT_TIMEOUT_S)
    assert client.requests == []


async def test_clearing_a_nomination_leaves_the_condition() -> None:
    client = FakeApiClient()
    _writer(client).clear_nomination(ClearNomination(POD))
    await let_tasks_run()
    assert _status(client) == [{"nominatedNodeName": None}]


async def test_a_nomination_that_is_cleared_before_it_was_written_is_not_written() -> None:
    client = FakeApiClient()
    writer = _writer(client)
    writer.patch(NOMINATED)
    writer.clear_nomination(ClearNomination(POD))
    await let_tasks_run()
    (status,) = _status(client)
    assert status["nominatedNodeName"] is None
    assert status["conditions"][0]["message"] == NOMINATED.message


async def test_the_log_says_why_a_status_is_written_later_or_not_at_all() -> None:
    busy, refused = ApiError(503, "", "busy"), ApiError(403, "", "no right")
    client = FakeApiClient(patch=[busy, TimeoutError(), refused])
    with capture_logs() as lines:
        _writer(client).patch(REFUSED)
        await let_tasks_run()
    later = {"event": "pod status not written yet", "pod": "default/p"}
    assert lines == [
        {**later, "error": "503: busy", "log_level": "info"},
        {**later, "error": "no answer in time", "log_level": "debug"},
        {
            "event": "pod status not written",
            "pod": "default/p",
            "error": str(refused),
            "log_level": "warning",
        },
    ]
