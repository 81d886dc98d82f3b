"""Requests to the API server: bytes in, bytes out, refusals as `ApiError`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack
from typing import Any, NamedTuple

import aiohttp
from yarl import URL

from stowage.operator import clock
from stowage.operator.client.api_error import ApiError, error_from_answer
from stowage.operator.client.connection import Connection
from stowage.operator.client.direct_writes import Answer, Write
from stowage.operator.client.timeouts import Timeouts, client_timeout

JSON = "application/json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"

LIST_TIMEOUT = Timeouts().list_timeout
"""Timeout of lists outside the scheduler process."""

LOST_ANSWER_ERRORS = (aiohttp.ClientError, TimeoutError, OSError)
"""Errors of a request without an answer: the server may or may not have acted on it."""

NO_ANSWER = "<error>"
"""Status code that client-go's metrics use for a request without an answer."""


class SentRequest(NamedTuple):
    """A request that has ended, for metrics.

    Attributes:
        method: The HTTP method.
        code: The status code, or `NO_ANSWER`.
        duration_s: Seconds from sending to the end of the answer.
        num_sent: Size of the request's body in bytes.
        num_received: Size of the answer's body in bytes; None for a refusal or without an answer.
    """

    method: str
    code: str
    duration_s: float
    num_sent: int = 0
    num_received: int | None = None


class Request(NamedTuple):
    """A request for one answer.

    Attributes:
        path: Path of the resource, encoded.
        timeout: None for that of a request for one object.
        params: Query parameters of a GET.
    """

    method: str
    path: str
    body: bytes | None = None
    timeout: aiohttp.ClientTimeout | None = None
    content_type: str = JSON
    params: Mapping[str, str] | None = None


ObserveRequest = Callable[[SentRequest], None]
"""Called after each request."""

_CONTENT_TYPE = {
    content_type: {"Content-Type": content_type} for content_type in (JSON, STRATEGIC_MERGE_PATCH)
}


_NOT_REPEATED = ("POST", "PATCH")
"""A session may send other methods again over another connection."""


class ApiClient:
    """Sends the requests that a scheduler needs.

    Every method raises `ApiError` if the server refuses the request and one of
    `LOST_ANSWER_ERRORS` if no answer arrives. After a 401 it reloads the credentials and tries
    once more.

    Args:
        connection: Connection to the API server.
        observe: Called after every request except watches.
    """

    def __init__(self, connection: Connection, observe: ObserveRequest | None = None) -> None:
        self.timeouts = connection.timeouts
        self.outages = connection.outages
        self._connection = connection
        self._observe = observe or _observe_nothing

    # The requests are functions that return the coroutine of `_request`: each coroutine between a
    # writer and the socket costs time for each pod.

    def get(
        self,
        path: str,
        params: Mapping[str, str] | None = None,
        timeout: aiohttp.ClientTimeout | None = None,
    ) -> Coroutine[Any, Any, bytes]:
        """GET an object or a page of a list."""
        return self._request(Request("GET", path, timeout=timeout, params=params))

    def post(
        self,
        path: str,
        body: bytes,
        timeout: aiohttp.ClientTimeout | None = None,
    ) -> Coroutine[Any, Any, bytes]:
        """POST: create an object or a subresource."""
        return self._request(Request("POST", path, body, timeout))

    def put(
        self,
        path: str,
        body: bytes,
        timeout: aiohttp.ClientTimeout | None = None,
    ) -> Coroutine[Any, Any, bytes]:
        """PUT: replace an object."""
        return self._request(Request("PUT", path, body, timeout))

    def patch(self, path: str, body: bytes) -> Coroutine[Any, Any, bytes]:
        """PATCH with a strategic merge patch."""
        return self._request(Request("PATCH", path, body, content_type=STRATEGIC_MERGE_PATCH))

    def delete(self, path: str, body: bytes) -> Coroutine[Any, Any, bytes]:
        """DELETE an object; `body` is a ``DeleteOptions``."""
        return self._request(Request("DELETE", path, body))

    async def stream(
        self,
        path: str,
        params: Mapping[str, str],
        read_timeout_s: float,
        on_answer: Callable[[], None] = lambda: None,
    ) -> AsyncIterator[bytes]:
        """GET a watch; yields chunks as they arrive, which may split lines.

        Args:
            path: Path of the resource.
            params: Query parameters.
            read_timeout_s: Without data for this long, the watch ends with `TimeoutError`.
            on_answer: Called once the server has accepted the watch, before any data.
        """
        timeout = client_timeout(None, read_timeout_s)
        url = self._url(path).with_query(params)
        try:
            async with AsyncExitStack() as cleanup:
                async with asyncio.timeout(self.timeouts.request_s):
                    opening = self._connection.session.get(
                        url, timeout=timeout, allow_redirects=False
                    )
                    response = await cleanup.enter_async_context(opening)
                if response.status >= 400 or not is_api_answer(response):
                    raise await self._refusal(response)
                on_answer()
                self.outages.note_answer()
                while chunk := await response.content.readany():
                    yield chunk
        except LOST_ANSWER_ERRORS as error:
            self.outages.note_failure(error)
            if isinstance(error, TimeoutError):
                self._connection.drop_idle()
            raise

    def _url(self, path: str) -> URL:
        return URL(self._connection.server + path, encoded=True)

    async def _request(self, request: Request) -> bytes:
        generation = self._connection.generation
        try:
            return await self._request_once(request)
        except ApiError as refusal:
            if refusal.status != 401:
                raise
        await self._connection.reload(generation)
        return await self._request_once(request)

    async def _request_once(self, request: Request) -> bytes:
        code, received, started = NO_ANSWER, None, clock.timer()
        try:
            answer = await self._send(request)
            code = str(answer.status)
            if not _is_from_api(answer.status, answer.content_type):
                raise error_from_answer(answer.status, answer.body, answer.retry_after)
            received = len(answer.body)
            self.outages.note_answer()
        except LOST_ANSWER_ERRORS as error:
            self.outages.note_failure(error)
            if isinstance(error, TimeoutError):
                self._connection.drop_idle()
            raise
        else:
            return answer.body
        finally:
            duration_s = clock.timer() - started
            num_sent = 0 if request.body is None else len(request.body)
            self._observe(SentRequest(request.method, code, duration_s, num_sent, received))

    def _send(self, request: Request) -> Coroutine[Any, Any, Answer]:
        """Send a request once; its answer may be a refusal."""
        timeout = request.timeout or self.timeouts.request_timeout
        method, path, body = request.method, request.path, request.body
        direct = self._connection.direct_writes
        if direct is not None and body is not None and method in _NOT_REPEATED:
            write = Write(method, path, body, request.content_type, self._check_may_send)
            return direct.send(write, timeout)
        return self._send_with_session(request, timeout)

    async def _send_with_session(
        self,
        request: Request,
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - aiohttp's own limits
    ) -> Answer:
        method, path, body = request.method, request.path, request.body
        url = self._url(path)
        async with self._connection.session.request(
            method,
            url.with_query(request.params) if request.params else url,
            data=None if body is None else self._payload(body),
            headers=None if body is None else _CONTENT_TYPE[request.content_type],
            timeout=timeout,
            allow_redirects=False,
        ) as response:
            retry_after = response.headers.get("Retry-After")
            status, content_type = response.status, response.content_type
            return Answer(status, content_type, retry_after, await response.read())

    def _check_may_send(self) -> None:
        """Check for the last time that a write may be sent; here it always may."""

    def _payload(self, body: bytes) -> bytes | aiohttp.BytesPayload:
        """The body of a request that the session sends."""
        return body

    async def _refusal(self, response: aiohttp.ClientResponse) -> ApiError:
        body = await response.read()
        return error_from_answer(response.status, body, response.headers.get("Retry-After"))


def is_api_answer(response: aiohttp.ClientResponse) -> bool:
    """Whether it is a refusal or JSON, not a redirect or the page of a proxy."""
    return response.status >= 400 or _is_from_api(response.status, response.content_type)


def _is_from_api(status: int, content_type: str) -> bool:
    """Whether an answer without an error is the API server's."""
    return 200 <= status < 300 and content_type == JSON


def _observe_nothing(_sent: SentRequest) -> None:
    return
