"""Keeps those who talk to our endpoints from holding them up: few connections, none for long.

aiohttp limits the size of a request's head, but waits for it as long as the client likes.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict

MAX_CONNECTIONS = 256
MAX_IDLE_S = 30.0


class ConnectionLimits:
    """All open connections, those without a request under way oldest first.

    Args:
        max_connections: One more closes the one that has been idle longest.
        max_idle_s: How long a connection may take for the head of a request, and for the next.
    """

    def __init__(
        self, max_connections: int = MAX_CONNECTIONS, max_idle_s: float = MAX_IDLE_S
    ) -> None:
        self._max_connections = max_connections
        self._max_idle_s = max_idle_s
        self._idle: OrderedDict[asyncio.BaseTransport, asyncio.TimerHandle] = OrderedDict()
        self._busy: set[asyncio.BaseTransport] = set()

    def opened(self, transport: asyncio.BaseTransport) -> None:
        """A client has connected."""
        if len(self._idle) + len(self._busy) >= self._max_connections:
            oldest = next(iter(self._idle), None)
            # With requests under way on all of them, there is no place for a newcomer.
            _abort(transport if oldest is None else oldest)
        self._wait(transport)

    def closed(self, transport: asyncio.BaseTransport) -> None:
        """The connection is no more."""
        self._busy.discard(transport)
        timer = self._idle.pop(transport, None)
        if timer is not None:
            timer.cancel()

    def begun(self, transport: asyncio.BaseTransport | None) -> None:
        """The head of a request is there."""
        if transport is not None and transport in self._idle:
            self._idle.pop(transport).cancel()
            self._busy.add(transport)

    def ended(self, transport: asyncio.BaseTransport | None) -> None:
        """The request is answered."""
        if transport is not None and transport in self._busy:
            self._busy.discard(transport)
            self._wait(transport)

    def _wait(self, transport: asyncio.BaseTransport) -> None:
        loop = asyncio.get_running_loop()
        self._idle[transport] = loop.call_later(self._max_idle_s, _abort, transport)


def _abort(transport: asyncio.BaseTransport) -> None:
    if isinstance(transport, asyncio.WriteTransport):
        transport.abort()
    else:
        transport.close()


class LimitedConnection(asyncio.Protocol):
    """Passes everything on to the protocol of the HTTP server.

    Args:
        inner: That protocol.
        limits: What to tell of the connection.
    """

    def __init__(self, inner: asyncio.Protocol, limits: ConnectionLimits) -> None:
        self._inner = inner
        self._limits = limits
        self._transport: asyncio.BaseTransport | None = None

    def data_received(self, data: bytes) -> None:
        """The client has sent something."""
        self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        """The client will send nothing more."""
        return self._inner.eof_received()

    def pause_writing(self) -> None:
        """The client reads slower than we write."""
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        """The client has read what there was."""
        self._inner.resume_writing()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has connected."""
        self._transport = transport
        self._inner.connection_made(transport)
        self._limits.opened(transport)

    def connection_lost(self, problem: Exception | None) -> None:
        """The connection is no more."""
        if self._transport is not None:
            self._limits.closed(self._transport)
        self._inner.connection_lost(problem)
