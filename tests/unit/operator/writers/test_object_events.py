"""Events about the scheduler's own objects are complete, and a failure to write one is logged."""

from __future__ import annotations

import socket

from structlog.testing import capture_logs

from stowage.operator.client.api_error import ApiError
from stowage.operator.writers.event_recorder import MAX_ATTEMPTS
from stowage.operator.writers.object_events import ObjectEventRecorder, OwnObject
from tests.support.fake_api import FakeApiClient, FakeTime

CONFIG = OwnObject("v1", "ConfigMap", "team", "config")


async def _record(client: FakeApiClient, *, may_write: bool = True) -> None:
    recorder = ObjectEventRecorder(
        client, CONFIG, "Configuring", FakeTime().clock, lambda: may_write
    )
    recorder.record("uid-1", reason="Invalid", note="no such field", is_warning=True)
    await recorder.close(60.0)


async def test_an_event_names_its_object_its_time_and_who_wrote_it() -> None:
    client = FakeApiClient(post=[{}])
    await _record(client)
    (request,) = client.requests
    assert request.path == "/apis/events.k8s.io/v1/namespaces/team/events"
    metadata = request.body.pop("metadata")
    assert metadata["namespace"] == "team"
    assert metadata["name"].startswith("config.")
    assert request.body == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "eventTime": "t1000",
        "reportingController": "stowage",
        "reportingInstance": f"stowage-{socket.gethostname()}",
        "action": "Configuring",
        "reason": "Invalid",
        "regarding": {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "namespace": "team",
            "name": "config",
            "uid": "uid-1",
        },
        "note": "no such field",
        "type": "Warning",
    }


async def test_an_event_that_cannot_be_written_is_logged() -> None:
    client = FakeApiClient(post=[ApiError(503, "Unavailable", "try later")])
    with capture_logs() as logs:
        await _record(client)
    (line,) = logs
    assert (line["event"], line["log_level"]) == ("event not written", "warning")
    assert (line["kind"], line["name"]) == ("ConfigMap", "team/config")
    assert line["error"] == "503 Unavailable: try later"
    assert len(client.requests) == MAX_ATTEMPTS


async def test_a_replica_that_may_not_write_records_nothing() -> None:
    client = FakeApiClient(post=[{}])
    await _record(client, may_write=False)
    assert client.requests == []


async def test_an_unforeseen_fault_is_logged_with_the_object_of_the_events() -> None:
    client = FakeApiClient(post=[RuntimeError("unforeseen")])
    with capture_logs() as logs:
        await _record(client)
    (line,) = logs
    assert (line["event"], line["pool"]) == ("job failed", "events of ConfigMap")
