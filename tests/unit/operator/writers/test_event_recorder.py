"""Kubernetes Events are created once, counted in series, and dropped by priority."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from stowage.api.instructions import POD_GROUP, EmitEvent, PodReference
from stowage.operator.client.api_error import ApiError
from stowage.operator.client.gated_client import LeaseNotHeldError
from stowage.operator.client.outage_log import plain_message
from stowage.operator.decisions.records import DecisionIds
from stowage.operator.writers import event_recorder
from stowage.operator.writers.event_recorder import SERIES_INTERVAL_S, EventRecorder
from tests.support.fake_api import FakeApiClient, FakeTime
from tests.unit.operator.tasks import let_tasks_run

POD = PodReference("default", "p", "u1")
SCHEDULED = EmitEvent(POD, "Normal", "Scheduled", "Binding", "assigned", "stowage")


def _failed(note: str = "0/1 nodes are available", uid: str = "u1") -> EmitEvent:
    pod = PodReference("default", "p", uid)
    return EmitEvent(pod, "Warning", "FailedScheduling", "Scheduling", note, "stowage")


def _recorder(client: FakeApiClient, time: FakeTime | None = None) -> EventRecorder:
    time = time or FakeTime()
    return EventRecorder(client, "host", time.clock, DecisionIds("p"))


async def test_an_event_has_controller_pod_reason_and_action() -> None:
    client = FakeApiClient()
    _recorder(client).emit(SCHEDULED)
    await let_tasks_run()
    (request,) = client.requests
    assert request.path == "/apis/events.k8s.io/v1/namespaces/default/events"
    body = request.body
    assert body["metadata"]["name"].startswith("p.")
    assert body["reportingController"] == "stowage"
    assert body["reportingInstance"] == "stowage-host"
    assert body["regarding"] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": "default",
        "name": "p",
        "uid": "u1",
    }
    assert (body["type"], body["reason"], body["action"]) == ("Normal", "Scheduled", "Binding")


async def test_an_event_about_an_attempt_names_its_decision() -> None:
    client = FakeApiClient()
    _recorder(client).emit(replace(SCHEDULED, decision=7))
    await let_tasks_run()
    (request,) = client.requests
    assert request.body["metadata"]["annotations"] == {"stowage/decision": "p-7"}
    assert request.body["note"] == "assigned"


async def test_an_event_without_an_attempt_has_no_annotation() -> None:
    client = FakeApiClient()
    _recorder(client).emit(SCHEDULED)
    await let_tasks_run()
    assert "annotations" not in client.requests[0].body["metadata"]


async def test_a_repeated_event_names_the_last_decision() -> None:
    client = FakeApiClient()
    recorder = _recorder(client)
    for number in (3, 4):
        recorder.emit(replace(_failed(), decision=number))
        await let_tasks_run()
    patch = client.requests[-1].body
    assert patch["series"]["count"] == 2
    assert patch["metadata"] == {"annotations": {"stowage/decision": "p-4"}}


async def test_an_event_has_the_resource_versions_of_its_pods() -> None:
    client = FakeApiClient()
    preemptor = PodReference("default", "q", "u2")
    _recorder(client).emit(
        EmitEvent(
            *(POD, "Normal", "Preempted", "Preempting", "Preempted by pod u2 on node n", "stowage"),
            related=preemptor,
            resource_version="17",
            related_resource_version="18",
        )
    )
    await let_tasks_run()
    body = client.requests[0].body
    versions = (body["regarding"]["resourceVersion"], body["related"]["resourceVersion"])
    assert versions == ("17", "18")


async def test_an_event_may_be_related_to_a_pod_group() -> None:
    client = FakeApiClient()
    _recorder(client).emit(
        EmitEvent(
            *(POD, "Normal", "Preempted", "Preempting", "Preempted by podgroup u2", "stowage"),
            related=PodReference("default", "g", "u2"),
            related_kind=POD_GROUP,
        )
    )
    await let_tasks_run()
    related = client.requests[0].body["related"]
    assert (related["apiVersion"], related["kind"]) == ("scheduling.k8s.io/v1alpha2", "PodGroup")
    assert (related["name"], related["uid"]) == ("g", "u2")


async def test_a_long_note_is_cut_to_the_limit_of_the_api() -> None:
    client = FakeApiClient()
    _recorder(client).emit(_failed(note="ä" * 1000))
    await let_tasks_run()
    note = client.requests[0].body["note"]
    assert note == "ä" * 510 + " ..."
    assert len(note.encode()) == 1024


async def test_an_event_about_a_pod_with_a_long_name_is_named_after_its_uid() -> None:
    client = FakeApiClient()
    pod = PodReference("default", "p" * 253, "u1")
    _recorder(client).emit(EmitEvent(pod, "Normal", "Scheduled", "Binding", "assigned", "stowage"))
    await let_tasks_run()
    body = client.requests[0].body
    assert body["metadata"]["name"].startswith("u1.")
    assert body["regarding"]["name"] == "p" * 253


async def test_repeated_events_are_counted_in_a_series_that_is_written_every_six_minutes() -> None:
    client, seconds = FakeApiClient(), [1000.0]
    clock = replace(FakeTime().clock, monotonic=lambda: seconds[0])
    recorder = EventRecorder(client, "host", clock, DecisionIds("p"))
    for _ in range(4):
        recorder.emit(_failed())
        await let_tasks_run()
    assert [request.method for request in client.requests] == ["POST", "PATCH"]
    assert client.requests[1].body["series"]["count"] == 2
    assert client.requests[1].path.startswith(client.requests[0].path + "/p.")
    seconds[0] += SERIES_INTERVAL_S - 1
    recorder.emit(_failed())
    await let_tasks_run()
    assert len(client.requests) == 2
    seconds[0] += 1
    recorder.emit(_failed())
    await let_tasks_run()
    assert client.requests[2].body["series"]["count"] == 6


async def test_another_note_or_another_pod_is_another_event() -> None:
    client = FakeApiClient()
    recorder = _recorder(client)
    for event in (_failed("a"), _failed("b"), _failed("a", uid="u2")):
        recorder.emit(event)
    await let_tasks_run()
    assert len(client.sent("POST")) == 3


async def test_an_expired_event_is_created_again() -> None:
    client = FakeApiClient(patch=[ApiError(404, "NotFound")])
    recorder = _recorder(client)
    for _ in range(3):
        recorder.emit(_failed())
        await let_tasks_run()
    assert [request.method for request in client.requests] == ["POST", "PATCH", "POST"]


async def test_failures_are_dropped_first_and_dropped_events_are_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(event_recorder, "MAX_WAITING", 2)
    client = FakeApiClient()
    recorder = _recorder(client)
    for event in (_failed("old"), SCHEDULED, _failed("new")):
        recorder.emit(event)
    await let_tasks_run()
    assert recorder.num_dropped == 1
    assert sorted(request.body["note"] for request in client.requests) == ["assigned", "new"]


async def test_an_event_whose_creation_got_no_answer_is_patched_and_not_created_twice() -> None:
    client = FakeApiClient(post=[TimeoutError(), ApiError(409, "AlreadyExists"), {}])
    recorder = _recorder(client)
    for _ in range(2):
        recorder.emit(_failed())
        await let_tasks_run()
    assert [request.method for request in client.requests] == ["POST", "POST", "PATCH"]


async def test_events_of_an_interval_are_written_together_after_it() -> None:
    client, time, intervals = FakeApiClient(), FakeTime(), list[float]()
    ended = asyncio.Event()

    async def sleep(seconds: float) -> None:
        intervals.append(seconds)
        await ended.wait()

    clock = replace(time.clock, sleep=sleep)
    recorder = EventRecorder(client, "host", clock, DecisionIds("p"))
    for note in ("a", "b", "c"):
        recorder.emit(_failed(note))
        await let_tasks_run()
    assert client.requests == []
    ended.set()
    await let_tasks_run()
    assert len(client.sent("POST")) == 3
    assert intervals == [event_recorder.WRITE_INTERVAL_S]


async def test_events_that_wait_for_their_interval_are_written_at_the_end() -> None:
    client, time = FakeApiClient(), FakeTime()

    async def sleep(_seconds: float) -> None:
        await asyncio.Event().wait()

    recorder = EventRecorder(client, "host", replace(time.clock, sleep=sleep), DecisionIds("p"))
    recorder.emit(SCHEDULED)
    await let_tasks_run()
    await recorder.close(grace_s=60.0)
    assert len(client.sent("POST")) == 1


@pytest.mark.parametrize(
    ("error", "text", "level"),
    [
        (ApiError(403, "Forbidden", "no right"), "403 Forbidden: no right", "warning"),
        (TimeoutError(), "no answer in time", "debug"),
        (LeaseNotHeldError(), plain_message(LeaseNotHeldError()), "debug"),
    ],
    ids=["a refusal", "an outage, which has its own line", "the loss of the lease, too"],
)
async def test_an_event_that_is_not_written_is_logged_with_the_reason(
    error: Exception, text: str, level: str
) -> None:
    client = FakeApiClient(post=[error])
    with capture_logs() as logs:
        _recorder(client).emit(SCHEDULED)
        await client.has_sent(1 if isinstance(error, ApiError) else event_recorder.MAX_ATTEMPTS)
        await let_tasks_run()
    line = {"event": "event not written", "pod": "default/p", "reason": "Scheduled"}
    assert logs == [line | {"error": text, "log_level": level}]


async def test_every_dropped_event_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_recorder, "MAX_WAITING", 1)
    recorder = _recorder(FakeApiClient())
    for number in range(3):
        recorder.emit(_failed(str(number)))
    assert recorder.num_dropped == 2
