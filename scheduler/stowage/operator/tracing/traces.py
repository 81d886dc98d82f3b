"""Starts and ends the traces of a process."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from importlib.metadata import version

import aiohttp
import structlog
from opentelemetry.exporter.otlp.proto.grpc import exporter as grpc_exporter
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased

from stowage.framework import DurationObserver
from stowage.operator.tracing.attempt_traces import AttemptTraces
from stowage.operator.tracing.options import TracingOptions
from stowage.operator.tracing.request_traces import request_tracer

MAX_QUEUED_SPANS = 2048
"""Further spans push out the oldest ones."""

EXPORT_TIMEOUT_S = 10.0
FLUSH_TIMEOUT_S = 2.0
"""How long the end of the process waits for the collector."""

log = structlog.get_logger("stowage.operator.tracing")


class Traces:
    """The traces of a process; a thread sends them.

    Args:
        options: Where traces go, and how many are made.

    Attributes:
        middleware: Traces requests of the sessions that it is given to.
    """

    def __init__(self, options: TracingOptions) -> None:
        own_version = version("stowage")
        rate = options.sampling_rate_per_million / 1_000_000
        self._provider = TracerProvider(
            sampler=ParentBased(TraceIdRatioBased(rate)),
            resource=Resource.create({"service.name": "stowage", "service.version": own_version}),
            shutdown_on_exit=False,
        )
        exporter = OTLPSpanExporter(options.endpoint, insecure=True, timeout=EXPORT_TIMEOUT_S)
        self._provider.add_span_processor(
            BatchSpanProcessor(
                OutageLog(exporter, options.endpoint), max_queue_size=MAX_QUEUED_SPANS
            )
        )
        self._tracer = self._provider.get_tracer("stowage", own_version)
        self.middleware: aiohttp.ClientMiddlewareType = request_tracer(self._tracer)
        self._attempts: list[AttemptTraces] = []

    def of_attempts(
        self, observer: DurationObserver, unix_nanoseconds: Callable[[], int]
    ) -> AttemptTraces:
        """The traces of scheduling attempts; see `AttemptTraces` for the arguments."""
        attempts = AttemptTraces(self._tracer, observer, unix_nanoseconds)
        self._attempts.append(attempts)
        return attempts

    async def close(self) -> None:
        """End the open attempts and send what is queued, for `FLUSH_TIMEOUT_S` at most."""
        for attempts in self._attempts:
            attempts.end_all()
        # A daemon, since an exit must not wait for a collector that does not answer.
        closed, loop = asyncio.Event(), asyncio.get_running_loop()

        def shut_down() -> None:
            self._provider.shutdown()
            if not loop.is_closed():
                loop.call_soon_threadsafe(closed.set)

        threading.Thread(target=shut_down, name="traces", daemon=True).start()
        try:
            async with asyncio.timeout(FLUSH_TIMEOUT_S):
                await closed.wait()
        except TimeoutError:
            log.warning("last traces not exported")


class OutageLog(SpanExporter):
    """Logs once that a collector does not take the spans, and once that it does again.

    Args:
        exporter: Sends the spans.
        endpoint: The collector, for the log.
    """

    def __init__(self, exporter: SpanExporter, endpoint: str) -> None:
        self._exporter = exporter
        self._endpoint = endpoint
        self._is_failing = False
        self._reason = _LastMessage()
        grpc_exporter.logger.addFilter(self._reason)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send spans; those that the collector does not take are lost."""
        try:
            result = self._exporter.export(spans)
        except Exception as error:
            result, self._reason.text = SpanExportResult.FAILURE, repr(error)
        is_failing = result is not SpanExportResult.SUCCESS
        if is_failing and not self._is_failing:
            log.warning("traces not exported", endpoint=self._endpoint, error=self._reason.text)
        if self._is_failing and not is_failing:
            log.info("traces exported again", endpoint=self._endpoint)
        self._is_failing = is_failing
        return result

    def shutdown(self) -> None:
        """Close the connection."""
        self._exporter.shutdown()
        grpc_exporter.logger.removeFilter(self._reason)


class _LastMessage(logging.Filter):
    """Keeps the exporter's last message, which it logs for every batch, out of the log."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""

    def filter(self, record: logging.LogRecord) -> bool:
        self.text = record.getMessage()
        return False
