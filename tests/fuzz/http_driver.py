"""Sends bytes to a web application in this process, without sockets."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from typing import Any, cast

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from tests.fuzz.campaign import Finding

_STATUS = re.compile(rb"^HTTP/1\.[01] (\d{3}) ", re.MULTILINE)
_TURNS = 40
"""Turns of the event loop without a write after which an answer is complete."""


class _Connection(asyncio.Transport):
    """Keeps what the server writes."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 1), "sockname": ("127.0.0.1", 0)})
        self.written = bytearray()
        self._is_closing = False

    def write(self, data: Any) -> None:
        self.written += data

    def is_closing(self) -> bool:
        return self._is_closing

    def close(self) -> None:
        self._is_closing = True

    def abort(self) -> None:
        self._is_closing = True

    def pause_reading(self) -> None:
        """Everything has been read."""

    def resume_reading(self) -> None:
        """Everything has been read."""

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Nothing waits."""


class _Failures(logging.Handler):
    """Keeps the errors that the web server logs."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


class HttpDriver:
    """A web application, and connections to it, one after the other.

    Args:
        make_app: Makes the application within the event loop.
        wrap: Wraps the protocol of a connection, as the server of the application does.
    """

    def __init__(
        self,
        make_app: Callable[[], Awaitable[web.Application]],
        wrap: Callable[[asyncio.Protocol], asyncio.Protocol] = lambda inner: inner,
    ) -> None:
        self._runner = asyncio.Runner()
        self._wrap = wrap
        self._failures = _Failures()
        self._logger = logging.getLogger("aiohttp.server")
        self._logger.addHandler(self._failures)
        self._logger.propagate = False
        app = self._runner.run(_awaited(make_app()))
        self._app_runner = web.AppRunner(app, access_log=None, handler_cancellation=True)
        self._runner.run(self._app_runner.setup())
        self._num_tasks = self._runner.run(_num_tasks())

    def send(self, data: bytes) -> tuple[list[int], bytes]:
        """Send the bytes on a new connection, and close it; the statuses and all that was written.

        Raises:
            Finding: An answer has a status of 500, the server logged an error, or the connection
                left a task behind.
        """
        self._failures.records.clear()
        written = self._runner.run(self._exchange(data))
        for record in self._failures.records:
            cause = record.exc_info[1] if record.exc_info else None
            if isinstance(cause, HttpProcessingError | web.RequestPayloadError):
                continue  # `configure_logging` leaves it out
            if cause is not None:
                raise cause
            raise Finding(record.getMessage())
        statuses = [int(each) for each in _STATUS.findall(written)]
        if 500 in statuses:
            raise Finding(f"answered with 500: {written!r:.500}")
        return statuses, written

    def close(self) -> None:
        """Stop the application and the event loop."""
        self._runner.run(self._app_runner.cleanup())
        self._runner.close()
        self._logger.removeHandler(self._failures)
        self._logger.propagate = True

    async def _exchange(self, data: bytes) -> bytes:
        server = cast("web.Server", self._app_runner.server)
        protocol = self._wrap(server())
        connection = _Connection()
        protocol.connection_made(connection)
        protocol.data_received(data)
        num_written, turns = -1, 0
        while turns < _TURNS and not connection.is_closing():
            await asyncio.sleep(0)
            turns = turns + 1 if num_written == len(connection.written) else 0
            num_written = len(connection.written)
        protocol.connection_lost(None)
        for _ in range(_TURNS):
            if await _num_tasks() <= self._num_tasks:
                return bytes(connection.written)
            await asyncio.sleep(0)
        raise Finding(f"tasks go on without a connection: {asyncio.all_tasks()}")


async def _awaited(making: Awaitable[web.Application]) -> web.Application:
    return await making


async def _num_tasks() -> int:
    return len(asyncio.all_tasks())
