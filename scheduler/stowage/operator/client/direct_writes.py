"""Writes over the connections of aiohttp's pool, without the request path of its session.

A session prepares redirects, cookies, proxies, middlewares and traces for each request, which costs
more CPU time than the scheduling of a pod. A write of the scheduler needs none of them: one request
with prepared headers, one answer with a body. Connections, TLS, parser and pool are aiohttp's.

`Connection.direct_writes` is None where a proxy or a middleware is configured; the session then
sends all requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import NamedTuple

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.http_exceptions import HttpProcessingError
from yarl import URL

_FIRST_FINAL_STATUS = 200

KEEPALIVE_S = 60.0
"""An idle connection is used again within this time; API servers close theirs later."""


class Answer(NamedTuple):
    """The answer to a request.

    Attributes:
        content_type: Without parameters, in lower case.
        retry_after: The header, if any.
    """

    status: int
    content_type: str
    retry_after: str | None
    body: bytes


class Write(NamedTuple):
    """A request that is not repeated: a POST or a PATCH.

    Attributes:
        path: Path of the resource, encoded.
        may_be_sent: Called after the last wait; raises an error that keeps the request from being
            sent.
    """

    method: str
    path: str
    body: bytes
    content_type: str
    may_be_sent: Callable[[], None]


class DirectWrites:
    """Sends writes to one server.

    Args:
        connector: The pool of connections, shared with the sessions.
        server: The server's base URL, without a trailing slash.
        headers: Headers of every request.
        read_buffer_bytes: Size of the buffer of an answer.
    """

    def __init__(
        self,
        connector: aiohttp.BaseConnector,
        server: str,
        headers: Mapping[str, str],
        read_buffer_bytes: int,
    ) -> None:
        url = URL(server, encoded=True)
        self._now = asyncio.get_running_loop().time
        self._connector = connector
        self._read_buffer_bytes = read_buffer_bytes
        # It says where to connect to; it is never sent.
        self._target = aiohttp.ClientRequest("POST", url, loop=asyncio.get_running_loop())
        self._prefix = url.raw_path.rstrip("/")
        self._kept: aiohttp.connector.Connection | None = None
        self._kept_at = 0.0
        self._is_closed = False
        self._heads: dict[str, bytes] = {}
        self._headers: Mapping[str, str] = {}
        self.use_headers(headers)

    def use_headers(self, headers: Mapping[str, str]) -> None:
        """Send these headers from now on.

        Raises:
            ValueError: a header is no header.
        """
        for name, value in headers.items():
            if not f"{name}{value}".isprintable():
                raise ValueError(f"the header {name} has characters that cannot be printed")
        host = self._target.headers["Host"]
        self._headers = {"Host": host, "Accept": "application/json", **headers}
        self._heads.clear()

    async def send(self, write: Write, timeout: aiohttp.ClientTimeout) -> Answer:  # noqa: ASYNC109 - as of aiohttp
        """Send a write; returns the answer once it is complete.

        Raises:
            InvalidURL: The path is not one; nothing is sent.
            aiohttp.ClientError, OSError, TimeoutError: There is no answer. It is a
                `ClientConnectorError` or a `ConnectionTimeoutError` if there was no connection.
            ApiError: From `may_be_sent`.
        """
        request = self._request(write)
        async with asyncio.timeout(timeout.total):
            connection = self._take_kept() or await self._connect(timeout)
            try:
                answer = await self._exchange(request, write.may_be_sent, connection.protocol)
            except BaseException:
                # Half an answer may follow, so nobody else may use the connection.
                connection.close()
                raise
            self._keep(connection)
            return answer

    def drop_idle(self) -> None:
        """Close the connection that is kept."""
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    def close(self) -> None:
        """Keep no connection from now on; writes in flight go on."""
        self._is_closed = True
        self.drop_idle()

    def _take_kept(self) -> aiohttp.connector.Connection | None:
        """The connection of the last write, unless another write uses it or it has been closed.

        The pool would give the one that was idle for the longest time. For pods that come one at a
        time that is another one for each, which no cache holds.
        """
        kept = self._kept
        if kept is None:
            return None
        self._kept = None
        if kept.closed or self._now() - self._kept_at > KEEPALIVE_S:
            kept.close()
            return None
        return kept

    def _keep(self, connection: aiohttp.connector.Connection) -> None:
        protocol = connection.protocol
        if self._is_closed or self._kept is not None or protocol is None or protocol.should_close:
            connection.release()
            return
        self._kept = connection
        self._kept_at = self._now()

    async def _connect(self, timeout: aiohttp.ClientTimeout) -> aiohttp.connector.Connection:  # noqa: ASYNC109 - as of aiohttp
        try:
            return await self._connector.connect(self._target, [], timeout)
        except TimeoutError as error:
            text = f"Connection timeout to host {self._target.url}"
            raise aiohttp.ConnectionTimeoutError(text) from error

    async def _exchange(
        self, request: bytes, may_be_sent: Callable[[], None], protocol: ResponseHandler | None
    ) -> Answer:
        if protocol is None or protocol.transport is None or protocol.transport.is_closing():
            raise aiohttp.ClientConnectionResetError("Cannot write to closing transport")
        protocol.set_response_params(read_until_eof=True, read_bufsize=self._read_buffer_bytes)
        may_be_sent()
        protocol.transport.write(request)
        try:
            message, payload = await protocol.read()
            while message.code < _FIRST_FINAL_STATUS:
                message, payload = await protocol.read()
        except HttpProcessingError as error:
            raise aiohttp.ClientResponseError(
                self._target.request_info,
                (),
                status=error.code,
                message=error.message,
                headers=error.headers,
            ) from error
        headers = message.headers
        content_type = headers.get("Content-Type", "").partition(";")[0].strip().lower()
        return Answer(message.code, content_type, headers.get("Retry-After"), await payload.read())

    def _request(self, write: Write) -> bytes:
        """The bytes of a request.

        Raises:
            InvalidURL: the path is not one.
        """
        path = write.path
        if not path.isascii() or not path.isprintable() or " " in path:
            raise aiohttp.InvalidURL(path, "the path is not encoded")
        head = self._heads.get(write.content_type)
        if head is None:
            head = self._heads[write.content_type] = self._head(write.content_type)
        line = f"{write.method} {self._prefix}{path} HTTP/1.1\r\n"
        length = f"Content-Length: {len(write.body)}\r\n\r\n"
        return b"".join((line.encode(), head, length.encode(), write.body))

    def _head(self, content_type: str) -> bytes:
        headers = {**self._headers, "Content-Type": content_type}
        return "".join(f"{name}: {value}\r\n" for name, value in headers.items()).encode()
