"""The client of everything that acts on the cluster: limited in rate, closed without the lease.

Whoever means to write asks ``may_write`` early, to spare the effort; here it is asked again after
the last wait (for the rate, fresh credentials, a connection), when the bytes are about to go out.
So a replica that was stopped or hung while a request was being prepared does not send it when it
wakes up. What was handed to the kernel before cannot be called back.
"""

from __future__ import annotations

from collections.abc import Callable

import aiohttp
from aiohttp.abc import AbstractStreamWriter
from yarl import URL

from stowage.operator.client.api_client import JSON, ApiClient, ObserveRequest
from stowage.operator.client.api_error import ApiError
from stowage.operator.client.connection import Connection
from stowage.operator.client.rate_limit import TokenBucket


class LeaseNotHeldError(ApiError):
    """The write was not sent: another replica may be the leader by now."""

    def __init__(self) -> None:
        super().__init__(0, "LeaseNotHeld", "this replica does not hold the lease any more")


class GatedBody(aiohttp.BytesPayload):
    """A body that does not go out without the lease, nor do the headers that wait for it.

    aiohttp makes a `ClientConnectionError` of the refusal, as if no answer had come.
    """

    def __init__(self, value: bytes, may_write: Callable[[], bool]) -> None:
        super().__init__(value)
        self._may_write = may_write

    async def write_with_length(
        self, writer: AbstractStreamWriter, content_length: int | None
    ) -> None:
        """Write it, if it may be written.

        Raises:
            LeaseNotHeldError: It may not.
        """
        if not self._may_write():
            raise LeaseNotHeldError
        await super().write_with_length(writer, content_length)


class GatedClient(ApiClient):
    """Sends no write without the lease, and no more requests than allowed.

    Args:
        connection: To the API server.
        may_write: Whether this replica holds the lease at this moment.
        bucket: Limits the requests; None does not.
        observe: Told of every request.
    """

    def __init__(
        self,
        connection: Connection,
        may_write: Callable[[], bool],
        bucket: TokenBucket | None = None,
        observe: ObserveRequest | None = None,
    ) -> None:
        super().__init__(connection, observe)
        self._may_write = may_write
        self._bucket = bucket

    async def _request_once(
        self,
        method: str,
        url: URL,
        body: bytes | aiohttp.BytesPayload | None,
        timeout: aiohttp.ClientTimeout | None = None,  # noqa: ASYNC109 - aiohttp's own limits
        content_type: str = JSON,
    ) -> bytes:
        if self._bucket is not None:
            await self._bucket.wait()
        if method != "GET" and not self._may_write():
            raise LeaseNotHeldError
        if isinstance(body, bytes):
            body = GatedBody(body, self._may_write)
        return await super()._request_once(method, url, body, timeout, content_type)
