"""The connections of the API server: how many, how long they may be idle, and how they end."""

import asyncio
import contextlib
import resource
import socket
from collections.abc import Iterator
from typing import Any

from aiohttp import web

IDLE_TIMEOUT_S = 90.0
"""A connection on which no whole request arrives for this long is closed."""
LINGER_S = 10.0
"""So long the rest of a request that was answered early is read and dropped."""
_SPARE_DESCRIPTORS = 256
_PROBE_AFTER_S = 30
_PROBE_EVERY_S = 15
_LOST_PROBES = 4


class HttpServer(web.Server):
    """aiohttp's low-level server with a limit on connections.

    Those beyond the limit are accepted and marked, for their clients are to be told to come back
    later rather than left waiting.

    Args:
        handler: answers requests.
        max_connections: beyond these a connection is marked as refused.
        options: of :class:`aiohttp.web.Server`.
    """

    def __init__(self, handler: Any, max_connections: int, **options: Any) -> None:
        super().__init__(
            handler, keepalive_timeout=IDLE_TIMEOUT_S, lingering_time=LINGER_S, **options
        )
        self._max_connections = max_connections
        self._refused: set[Any] = set()
        self._is_shut_down = False

    def is_refused(self, protocol: object) -> bool:
        """Whether a connection is one too many."""
        return protocol in self._refused

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        """Keep a new connection, or end it at once where the server has shut down.

        aiohttp would go on serving connections accepted the moment it shut down.
        """
        if self._is_shut_down:
            transport.abort()
            return
        if len(self.connections) - len(self._refused) >= self._max_connections:
            self._refused.add(handler)
        _probe_when_silent(transport)
        super().connection_made(handler, transport)

    def connection_lost(
        self, handler: web.RequestHandler, exc: BaseException | None = None
    ) -> None:
        """Forget a connection."""
        self._refused.discard(handler)
        super().connection_lost(handler, exc)

    async def shutdown(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 - aiohttp's
        """Close every connection, those to come included."""
        self._is_shut_down = True
        await super().shutdown(timeout)


def _probe_when_silent(transport: asyncio.Transport) -> None:
    """Have the kernel find out that a client's machine is gone, and what is unsent with it."""
    found = transport.get_extra_info("socket")
    if found is None or found.family not in {socket.AF_INET, socket.AF_INET6}:
        return
    for name, value in (
        ("TCP_KEEPIDLE", _PROBE_AFTER_S),
        ("TCP_KEEPINTVL", _PROBE_EVERY_S),
        ("TCP_KEEPCNT", _LOST_PROBES),
        ("TCP_USER_TIMEOUT", (_PROBE_AFTER_S + _PROBE_EVERY_S * _LOST_PROBES) * 1000),
    ):
        if hasattr(socket, name):
            found.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def make_room_for_connections(count: int) -> int:
    """Raise the limit on open files as far as ``count`` connections need and the system lets.

    Returns:
        For how many connections there is room.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count + _SPARE_DESCRIPTORS
    if soft != resource.RLIM_INFINITY and soft < wanted:
        raised = wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return count if soft == resource.RLIM_INFINITY else min(count, soft - _SPARE_DESCRIPTORS)


class InFlight:
    """Counts the requests being answered; watches, which last, do not count.

    Args:
        limit: how many there may be.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._count = 0

    @property
    def is_full(self) -> bool:
        """No more requests are to be taken on."""
        return self._count >= self._limit

    @contextlib.contextmanager
    def counted(self) -> Iterator[None]:
        """Count a request while it is answered."""
        self._count += 1
        try:
            yield
        finally:
            self._count -= 1

    @contextlib.contextmanager
    def left_out(self) -> Iterator[None]:
        """Leave the request out of the count for a while: it has become a watch."""
        self._count -= 1
        try:
            yield
        finally:
            self._count += 1
