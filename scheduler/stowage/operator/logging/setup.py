"""Structured logs: JSON lines, or coloured text on a terminal."""

from __future__ import annotations

import logging
import sys
from typing import Any, TextIO

import msgspec
import structlog
from structlog.typing import Processor

from stowage.operator.logging.sink import standard_error

QUIET_LIBRARIES = ("kopf", "aiohttp", "asyncio", "kubernetes")
DEBUG_VERBOSITY = 4
"""From this ``-v`` on (klog's debug level), everything is logged, including libraries' lines."""


def configure_logging(verbosity: int = 0, *, json: bool | None = None) -> None:
    """Send all logs to stderr through structlog.

    Args:
        verbosity: klog's ``-v``; 0 logs one line per attempt, 4 and above logs everything.
        json: True for JSON, False for text, None for JSON unless stderr is a terminal.
    """
    level = logging.DEBUG if verbosity >= DEBUG_VERBOSITY else logging.INFO
    as_json = not sys.stderr.isatty() if json is None else json
    shared: list[Processor] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    sink = standard_error()
    renderer: Processor = (
        structlog.processors.JSONRenderer(serializer=_to_json)
        if as_json
        else structlog.dev.ConsoleRenderer()
    )
    structlog.configure(
        processors=[*shared, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(sink),
        cache_logger_on_first_use=True,
    )
    _route_standard_logging(level, logging.StreamHandler(sink), shared, renderer)


def _route_standard_logging(
    level: int,
    handler: logging.StreamHandler[TextIO],
    shared: list[Processor],
    renderer: Processor,
) -> None:
    """Send the log lines of libraries to the same handler in the same format."""
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.stdlib.add_logger_name],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    # Kopf logs a line per event, which costs as much as the event itself.
    library_level = level if level == logging.DEBUG else logging.WARNING
    for name in QUIET_LIBRARIES:
        logging.getLogger(name).setLevel(library_level)


def _to_json(event: Any, **_options: Any) -> str:
    return msgspec.json.encode(event, enc_hook=repr).decode()
