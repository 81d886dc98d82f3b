"""Requests to the API server: bytes in, bytes out, refusals as `ApiError`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack

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

ObserveRequest = Callable[[str, str, float], None]
"""Called after each request with method, status code or `NO_ANSWER`, and duration in seconds."""

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
        self, path: str, params: Mapping[str, str], read_timeout_s: float
    ) -> AsyncIterator[bytes]:
        """GET a watch; yields chunks as they arrive, which may split lines.

        Args:
            path: Path of the resource.
            params: Query parameters.
            read_timeout_s: Without data for this long, the watch ends with `TimeoutError`.
        """
        timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=CONNECT_WITHIN_S, sock_read=read_timeout_s
        )
        url = self._url(path).with_query(params)
        async with AsyncExitStack() as cleanup:
            async with asyncio.timeout(self.timeouts.request_s):
                opening = self._connection.session.get(url, timeout=timeout, allow_redirects=False)
                response = await cleanup.enter_async_context(opening)
            if response.status >= 400 or not is_api_answer(response):
                raise await self._refusal(response)
            async for chunk in response.content.iter_any():
                yield chunk

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
        code, started = NO_ANSWER, clock.timer()
        try:
            async with session.request(
                method, url, data=body, headers=headers, timeout=timeout, allow_redirects=False
            ) as response:
                code = str(response.status)
                if response.status >= 400 or not is_api_answer(response):
                    raise await self._refusal(response)
                return await response.read()
        except TimeoutError:
            self._connection.drop_idle()
            raise
        finally:
            self._observe(method, code, clock.timer() - started)

    async def _refusal(self, response: aiohttp.ClientResponse) -> ApiError:
        body = await response.read()
        return error_from_answer(response.status, body, response.headers.get("Retry-After"))


def is_api_answer(response: aiohttp.ClientResponse) -> bool:
    """Whether it is a refusal or JSON, not a redirect or the page of a proxy."""
    return response.status >= 400 or (
        200 <= response.status < 300 and response.content_type == JSON
    )


def _observe_nothing(_method: str, _code: str, _seconds: float) -> None:
    return
