"""A collector that cannot be reached is logged once, and delays nothing."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

import pytest
from opentelemetry.exporter.otlp.proto.grpc.exporter import logger as exporter_logger
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from structlog.testing import capture_logs

from stowage.operator.tracing.traces import OutageLog

OK, FAILED = SpanExportResult.SUCCESS, SpanExportResult.FAILURE


class _Exporter(SpanExporter):
    def __init__(self, *outcomes: SpanExportResult | Exception) -> None:
        self._outcomes = iter(outcomes)

    def export(self, _spans: Sequence[ReadableSpan]) -> SpanExportResult:
        outcome = next(self._outcomes)
        if isinstance(outcome, Exception):
            raise outcome
        if outcome is FAILED:
            exporter_logger.error("Failed to export: %s", "refused")
        return outcome


class _Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


@pytest.fixture
def exporter_lines() -> Iterator[list[str]]:
    """What the OpenTelemetry exporter itself has logged."""
    handler = _Lines()
    exporter_logger.addHandler(handler)
    yield handler.lines
    exporter_logger.removeHandler(handler)


def _export(*outcomes: SpanExportResult | Exception) -> list[tuple[str, str]]:
    """The events and errors that are logged while spans are exported with these outcomes."""
    outage_log = OutageLog(_Exporter(*outcomes), "collector:4317")
    with capture_logs() as lines:
        for _ in outcomes:
            outage_log.export([])
    outage_log.shutdown()
    return [(line["event"], line.get("error", "")) for line in lines]


def test_an_outage_is_one_line_with_the_reason(exporter_lines: list[str]) -> None:
    lines = _export(OK, FAILED, FAILED, FAILED)
    assert lines == [("traces not exported", "Failed to export: refused")]
    assert exporter_lines == []


def test_the_end_of_an_outage_is_logged_and_the_next_one_too() -> None:
    assert [event for event, _ in _export(FAILED, OK, OK, FAILED)] == [
        "traces not exported",
        "traces exported again",
        "traces not exported",
    ]


def test_an_exception_of_the_exporter_is_an_outage() -> None:
    assert _export(ValueError("bad span")) == [("traces not exported", "ValueError('bad span')")]


def test_other_users_of_the_exporter_log_again_after_the_end(
    exporter_lines: list[str],
) -> None:
    _export(FAILED)
    exporter_logger.error("of somebody else")
    assert exporter_lines == ["of somebody else"]
