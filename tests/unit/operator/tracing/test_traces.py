"""The traces of a process go to its collector, the last ones at its end."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from structlog.testing import capture_logs
from yarl import URL

from stowage.operator.metrics.scheduler_metrics import Metrics
from stowage.operator.tracing import traces as module
from stowage.operator.tracing.options import TracingOptions
from stowage.operator.tracing.traces import EXPORT_TIMEOUT_S, Traces


class _Collector(SpanExporter):
    """Takes the spans of the process, if it takes any."""

    made: list[_Collector]
    answers = threading.Event()

    def __init__(self, endpoint: str, *, insecure: bool, timeout: float) -> None:
        self.given = (endpoint, insecure, timeout)
        self.spans: list[ReadableSpan] = []
        self.is_closed = False
        self.made.append(self)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.answers.wait(10.0)
        self.spans += spans
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        self.is_closed = True


@pytest.fixture(autouse=True)
def collectors(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[_Collector]]:
    """The collectors that were connected; they answer."""
    monkeypatch.setattr(module, "OTLPSpanExporter", _Collector)
    _Collector.made = []
    _Collector.answers.set()
    yield _Collector.made
    _Collector.answers.set()


async def _request(traces: Traces) -> None:
    """Send a request through the middleware."""
    request = SimpleNamespace(method="GET", url=URL("http://api/api/v1/pods"), headers={})

    async def answer(_request: Any) -> Any:
        return SimpleNamespace(status=200)

    await traces.middleware(cast("Any", request), answer)


async def test_what_is_not_sent_yet_is_sent_at_the_end(collectors: list[_Collector]) -> None:
    traces = Traces(TracingOptions("collector:4317", 1_000_000))
    await _request(traces)
    await traces.close()
    (collector,) = collectors
    assert collector.given == ("collector:4317", True, EXPORT_TIMEOUT_S)
    (span,) = collector.spans
    assert span.name == "GET /api/v1/pods"
    assert span.resource.attributes["service.name"] == "stowage"
    assert span.resource.attributes["service.version"]
    assert collector.is_closed


async def test_attempts_that_are_not_finished_end_with_the_process(
    collectors: list[_Collector],
) -> None:
    traces = Traces(TracingOptions("collector:4317", 1_000_000))
    attempts = traces.of_attempts(Metrics(lambda: 0.0), lambda: 7_000_000_000)
    assert attempts.trace_cycle("uid-p") is not None
    await traces.close()
    (collector,) = collectors
    assert {span.name: span.end_time for span in collector.spans} == {
        "SchedulingCycle": 7_000_000_000,
        "Scheduling": 7_000_000_000,
    }


async def test_at_a_rate_of_nothing_no_request_is_traced(collectors: list[_Collector]) -> None:
    traces = Traces(TracingOptions("collector:4317", 0))
    await _request(traces)
    await traces.close()
    assert [each.spans for each in collectors] == [[]]


async def test_the_end_does_not_wait_for_a_collector_that_does_not_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "FLUSH_TIMEOUT_S", 0.01)
    _Collector.answers.clear()
    traces = Traces(TracingOptions("collector:4317", 1_000_000))
    await _request(traces)
    with capture_logs() as logs:
        await traces.close()
    assert [line["event"] for line in logs] == ["last traces not exported"]
