"""Structured logs: JSON lines, or text on a terminal."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import MutableMapping
from datetime import UTC, datetime
from typing import Any, TextIO

import msgspec
import structlog
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web import RequestPayloadError
from structlog.typing import EventDict, Processor

from stowage.api.values.printable import printable, printable_json
from stowage.operator.logging.sink import standard_error
from stowage.operator.logging.verbosity import FilteringLogger, set_verbosity

_BAD_REQUESTS = (HttpProcessingError, RequestPayloadError)
_FIRST_KEYS = ("timestamp", "level", "event")


def configure_logging(verbosity: int = 0, *, json: bool | None = None) -> None:
    """Send all logs to stderr through structlog.

    Text has colours only on a terminal, and not with ``NO_COLOR`` in the environment.

    Args:
        verbosity: klog's ``-v``; 0 logs one line per attempt, 4 adds debug lines, 10 scores.
        json: True for JSON, False for text, None for JSON unless stderr is a terminal.
    """
    is_terminal = sys.stderr.isatty()
    as_json = not is_terminal if json is None else json
    shared: list[Processor] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    if not as_json:
        shared.append(_with_printable_texts)
    sink = standard_error()
    renderer: Processor = (
        _render_json
        if as_json
        else structlog.dev.ConsoleRenderer(
            colors=is_terminal and not os.environ.get("NO_COLOR"), sort_keys=False
        )
    )
    structlog.configure(
        processors=[_render_event] if as_json else [*shared, renderer],
        wrapper_class=FilteringLogger,
        logger_factory=structlog.WriteLoggerFactory(sink),
        cache_logger_on_first_use=True,
    )
    _route_standard_logging(logging.StreamHandler(sink), shared, renderer)
    set_verbosity(verbosity)


def _route_standard_logging(
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
    handler.addFilter(_is_not_noted_elsewhere)
    logging.getLogger().handlers[:] = [handler]


def _is_not_noted_elsewhere(record: logging.LogRecord) -> bool:
    """False for what others may bring about at will, or what is noted elsewhere.

    That is Kopf's line about a failed request, which the server's `OutageLog` notes, and aiohttp's
    traceback for a request that is not HTTP, which is answered with 400 before anybody is asked who
    sent it. With debug lines everything is logged.
    """
    if logging.getLogger().isEnabledFor(logging.DEBUG):
        return True
    if record.exc_info and isinstance(record.exc_info[1], _BAD_REQUESTS):
        return False
    return not (record.name.startswith("kopf.") and str(record.msg).startswith("Request attempt #"))


def _render_event(logger: Any, method: str, event: EventDict) -> str:
    """All of it in one step, because there is a line for each pod."""
    structlog.processors.add_log_level(logger, method, event)
    event["timestamp"] = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    if "exc_info" in event:
        event = structlog.processors.format_exc_info(logger, method, event)
    return _render_json(logger, method, event)


def _render_json(_logger: Any, _method: str, event: EventDict) -> str:
    ordered = {**{key: event[key] for key in _FIRST_KEYS if key in event}, **event}
    return printable_json(msgspec.json.encode(ordered, enc_hook=repr).decode())


def _with_printable_texts(
    _logger: object, _name: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """The fields with escapes in place of control characters, which a terminal would obey.

    Only a traceback has several lines. Values that are no text are shown by their ``repr``.
    """
    for key, value in event.items():
        if isinstance(value, str):
            event[key] = printable(value, "\n" if key == "exception" else "")
    return event
