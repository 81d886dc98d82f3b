"""Requests to the API server: bytes in, bytes out, refusals as `ApiError`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack
from typing import NamedTuple

import aiohttp
from yarl import URL

from stowage.operator import clock
from stowage.operator.client.api_error import ApiError, error_from_answer
from stowage.operator.client.connection import Connection
from stowage.operator.client.timeouts import CONNECT_WITHIN_S, Timeouts

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


ObserveRequest = Callable[[SentRequest], None]
"""Called after each request."""

_CONTENT_TYPE = {
    content_type: {"Content-Type": content_type} for content_type in (JSON, STRATEGIC_MERGE_PATCH)
}


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

    async def get(
        self,
        path: str,
        params: Mapping[str, str] | None = None,
        timeout: aiohttp.ClientTimeout | None = None,  # noqa: ASYNC109 - aiohttp's own limits
    ) -> bytes:
        """GET an object or a page of a list."""
        url = self._url(path)
        return await self._request("GET", url.with_query(params) if params else url, None, timeout)

    async def post(
        self,
        path: str,
        body: bytes,
        timeout: aiohttp.ClientTimeout | None = None,  # noqa: ASYNC109 - aiohttp's own limits
    ) -> bytes:
        """POST: create an object or a subresource."""
        return await self._request("POST", self._url(path), body, timeout)

    async def put(
        self,
        path: str,
        body: bytes,
        timeout: aiohttp.ClientTimeout | None = None,  # noqa: ASYNC109 - aiohttp's own limits
    ) -> bytes:
        """PUT: replace an object."""
        return await self._request("PUT", self._url(path), body, timeout)

    async def patch(self, path: str, body: bytes) -> bytes:
        """PATCH with a strategic merge patch."""
        return await self._request(
            "PATCH", self._url(path), body, content_type=STRATEGIC_MERGE_PATCH
        )

    async def delete(self, path: str, body: bytes) -> bytes:
        """DELETE an object; `body` is a ``DeleteOptions``."""
        return await self._request("DELETE", self._url(path), body)

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
        timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=CONNECT_WITHIN_S, sock_read=read_timeout_s
        )
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
                async for chunk in response.content.iter_any():
                    yield chunk
        except LOST_ANSWER_ERRORS as error:
            self.outages.note_failure(error)
            if isinstance(error, TimeoutError):
                self._connection.drop_idle()
            raise

    def _url(self, path: str) -> URL:
        return URL(self._connection.server + path, encoded=True)

    async def _request(
        self,
        method: str,
        url: URL,
        body: bytes | None,
        timeout: aiohttp.ClientTimeout | None = None,  # noqa: ASYNC109 - aiohttp's own limits
        content_type: str = JSON,
    ) -> bytes:
        generation = self._connection.generation
        try:
            return await self._request_once(method, url, body, timeout, content_type)
        except ApiError as refusal:
            if refusal.status != 401:
                raise
        await self._connection.reload(generation)
        return await self._request_once(method, url, body, timeout, content_type)

    async def _request_once(
        self,
        method: str,
        url: URL,
        body: bytes | aiohttp.BytesPayload | None,
        timeout: aiohttp.ClientTimeout | None,  # noqa: ASYNC109 - aiohttp's own limits
        content_type: str,
    ) -> bytes:
        session = self._connection.session
        timeout = timeout or self.timeouts.request_timeout
        headers = _CONTENT_TYPE[content_type] if body is not None else None
        code, received, started = NO_ANSWER, None, clock.timer()
        try:
            async with session.request(
                method, url, data=body, headers=headers, timeout=timeout, allow_redirects=False
            ) as response:
                code = str(response.status)
                if response.status >= 400 or not is_api_answer(response):
                    raise await self._refusal(response)
                answer = await response.read()
                received = len(answer)
            self.outages.note_answer()
        except LOST_ANSWER_ERRORS as error:
            self.outages.note_failure(error)
            if isinstance(error, TimeoutError):
                self._connection.drop_idle()
            raise
        else:
            return answer
        finally:
            duration_s = clock.timer() - started
            self._observe(SentRequest(method, code, duration_s, _size_of(body), received))

    async def _refusal(self, response: aiohttp.ClientResponse) -> ApiError:
        body = await response.read()
        return error_from_answer(response.status, body, response.headers.get("Retry-After"))


def is_api_answer(response: aiohttp.ClientResponse) -> bool:
    """Whether it is a refusal or JSON, not a redirect or the page of a proxy."""
    return response.status >= 400 or (
        200 <= response.status < 300 and response.content_type == JSON
    )


def _size_of(body: bytes | aiohttp.BytesPayload | None) -> int:
    if body is None:
        return 0
    return (body.size or 0) if isinstance(body, aiohttp.BytesPayload) else len(body)


def _observe_nothing(_sent: SentRequest) -> None:
    return
