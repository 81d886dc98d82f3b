"""Entry points of the scheduler process."""

from __future__ import annotations

import asyncio
import os
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import structlog
import uvloop

from stowage.operator import garbage_collection as collector
from stowage.operator.client.connection import connect
from stowage.operator.file_descriptors import make_room
from stowage.operator.logging.sink import flush_logs
from stowage.operator.process import Process
from stowage.operator.run_options import RunOptions
from stowage.operator.tracing.options import TracingOptions

if TYPE_CHECKING:
    from stowage.operator.tracing.traces import Traces

log = structlog.get_logger("stowage.operator.app")


def run_blocking(options: RunOptions) -> int:
    """Run under uvloop until stopped; returns the exit status, or exits if it owns the process.

    Raises:
        ConfigException: there is no usable kubeconfig, and the process is not in a cluster.
        OSError: the serving address is in use, a certificate of an extender is unusable, or too few
            files may be open.
    """
    if options.owns_process:
        make_room()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.get_loop().set_exception_handler(_log_loop_error)
        status = runner.run(run(options))
        if options.owns_process:
            # A normal exit would wait for threads, e.g. for a name server that does not answer.
            flush_logs()
            os._exit(status)
        return status


async def run(options: RunOptions) -> int:
    """Run until SIGTERM, SIGINT or `options.stop`; returns the exit status.

    Raises:
        ConfigException: there is no usable kubeconfig, and the process is not in a cluster.
        OSError: the serving address is in use, or a certificate of an extender is unusable.
    """
    if options.owns_process:
        collector.raise_collection_thresholds()
    async with AsyncExitStack() as cleanup:
        traces = _open_traces(options.tracing)
        if traces is not None:
            cleanup.push_async_callback(traces.close)
        connection = await connect(
            options.kubeconfig,
            options.master,
            options.timeouts,
            middlewares=() if traces is None else (traces.middleware,),
        )
        cleanup.push_async_callback(connection.close)
        return await Process(options, connection, traces=traces).run(cleanup)


def _open_traces(options: TracingOptions | None) -> Traces | None:
    if options is None:
        return None
    # Imported late: OpenTelemetry is optional.
    from stowage.operator.tracing.traces import Traces  # noqa: PLC0415

    return Traces(options)


def _log_loop_error(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log exceptions outside of awaited tasks; Kopf's watch generators cause some at their end."""
    write = log.debug if "asyncgen" in context else log.error
    write("event loop", problem=context["message"], exc_info=context.get("exception"))
