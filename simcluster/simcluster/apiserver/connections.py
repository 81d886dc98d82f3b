"""The limits of the API server on connections and on requests in flight."""

import asyncio
import contextlib
import resource
from collections.abc import Iterator
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import BadHttpMethod

from simcluster.apiserver.errors import method_not_allowed
from simcluster.apiserver.response_encoding import common_headers
from simcluster.store.stored import encode

IDLE_TIMEOUT_S = 90.0
"""Closes a connection on which no whole request arrives."""
LINGER_S = 10.0
"""Bounds the reading of the rest of a request that was answered early."""
_SPARE_DESCRIPTORS = 256


class _Connection(web.RequestHandler):
    """A connection on which a method that HTTP does not know is answered as any other one."""

    __slots__ = ()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """The answer to a request that could not be read; the connection is closed after it."""
        if not isinstance(exc, BadHttpMethod):
            return super().handle_error(request, status, exc, message)
        error = method_not_allowed()
        response = web.Response(
            status=error.code,
            body=encode(error.status()),
            content_type="application/json",
            headers=common_headers(),
        )
        response.force_close()
        return response


class HttpServer(web.Server):
    """aiohttp's low-level server with a limit on connections.

    Connections beyond the limit are accepted and marked, so that the server can answer them 429.

    Args:
        handler: answers requests.
        max_connections: connections beyond this number are marked as refused.
        options: of :class:`aiohttp.web.Server`.
    """

    def __init__(self, handler: Any, max_connections: int, **options: Any) -> None:
        super().__init__(
            handler, keepalive_timeout=IDLE_TIMEOUT_S, lingering_time=LINGER_S, **options
        )
        self._max_connections = max_connections
        self._refused: set[Any] = set()
        self._is_shut_down = False

    def __call__(self) -> web.RequestHandler:
        """The handler of a new connection."""
        return _Connection(self, loop=self._loop, **self._kwargs)

    def is_refused(self, protocol: object) -> bool:
        """Whether a connection is beyond the limit."""
        return protocol in self._refused

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        """Register a new connection, or abort it if the server has shut down.

        aiohttp would keep serving a connection that was accepted while it shut down.
        """
        if self._is_shut_down:
            transport.abort()
            return
        if len(self.connections) - len(self._refused) >= self._max_connections:
            self._refused.add(handler)
        super().connection_made(handler, transport)

    def connection_lost(
        self, handler: web.RequestHandler, exc: BaseException | None = None
    ) -> None:
        """Forget a connection."""
        self._refused.discard(handler)
        super().connection_lost(handler, exc)

    async def shutdown(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 - aiohttp's
        """Close every connection, and abort later ones."""
        self._is_shut_down = True
        await super().shutdown(timeout)


def make_room_for_connections(count: int) -> int:
    """Raise the limit on open files for ``count`` connections, as far as the system allows.

    Returns:
        The number of connections that the limit allows.
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
    """Counts the requests in flight; watches do not count.

    Args:
        limit: requests that may be in flight.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._count = 0

    @property
    def is_full(self) -> bool:
        """Whether the limit is reached."""
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
        """Leave a request out of the count while it is a watch."""
        self._count -= 1
        try:
            yield
        finally:
            self._count += 1
