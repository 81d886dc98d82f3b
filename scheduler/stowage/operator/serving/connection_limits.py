"""Limits the number of connections to the endpoints and their idle time.

aiohttp limits the size of a request's head, but not the time until it is complete.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict

MAX_CONNECTIONS = 256
MAX_IDLE_S = 30.0


class ConnectionLimits:
    """Tracks the open connections; closes the idle ones over the limits.

    Args:
        max_connections: Maximum number of connections; one more closes the longest idle one.
        max_idle_s: Maximum time until the head of the first or next request is complete.
    """

    def __init__(
        self, max_connections: int = MAX_CONNECTIONS, max_idle_s: float = MAX_IDLE_S
    ) -> None:
        self._max_connections = max_connections
        self._max_idle_s = max_idle_s
        self._idle: OrderedDict[asyncio.BaseTransport, asyncio.TimerHandle] = OrderedDict()
        self._busy: set[asyncio.BaseTransport] = set()

    def opened(self, transport: asyncio.BaseTransport) -> None:
        """Handle a new connection."""
        if len(self._idle) + len(self._busy) >= self._max_connections:
            oldest = next(iter(self._idle), None)
            # If all connections have a request in progress, close the new one.
            _abort(transport if oldest is None else oldest)
        self._mark_idle(transport)

    def closed(self, transport: asyncio.BaseTransport) -> None:
        """Handle a closed connection."""
        self._busy.discard(transport)
        timer = self._idle.pop(transport, None)
        if timer is not None:
            timer.cancel()

    def begun(self, transport: asyncio.BaseTransport | None) -> None:
        """Handle the beginning of a request, after its head was read."""
        if transport is not None and transport in self._idle:
            self._idle.pop(transport).cancel()
            self._busy.add(transport)

    def ended(self, transport: asyncio.BaseTransport | None) -> None:
        """Handle the end of a request, after its answer was written."""
        if transport is not None and transport in self._busy:
            self._busy.discard(transport)
            self._mark_idle(transport)

    def _mark_idle(self, transport: asyncio.BaseTransport) -> None:
        loop = asyncio.get_running_loop()
        self._idle[transport] = loop.call_later(self._max_idle_s, _abort, transport)


def _abort(transport: asyncio.BaseTransport) -> None:
    if isinstance(transport, asyncio.WriteTransport):
        transport.abort()
    else:
        transport.close()


class LimitedConnection(asyncio.Protocol):
    """Wraps the protocol of the HTTP server and reports its connection to `ConnectionLimits`.

    Args:
        inner: The protocol of the HTTP server.
        limits: The limits of all connections.
    """

    def __init__(self, inner: asyncio.Protocol, limits: ConnectionLimits) -> None:
        self._inner = inner
        self._limits = limits
        self._transport: asyncio.BaseTransport | None = None

    def data_received(self, data: bytes) -> None:
        """Pass on received data."""
        self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        """Pass on the end of the received data."""
        return self._inner.eof_received()

    def pause_writing(self) -> None:
        """Pass on that the write buffer is full."""
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        """Pass on that the write buffer has room again."""
        self._inner.resume_writing()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Report and pass on a new connection."""
        self._transport = transport
        self._inner.connection_made(transport)
        self._limits.opened(transport)

    def connection_lost(self, error: Exception | None) -> None:
        """Report and pass on a closed connection."""
        if self._transport is not None:
            self._limits.closed(self._transport)
        self._inner.connection_lost(error)
