"""The client for writes: it limits the request rate and sends no write without the lease.

Some writers check ``may_write`` before they prepare a request. This client checks it after the last
wait (for the rate limit, credentials or a connection), immediately before the bytes are sent. So a
replica that was stopped while it prepared a request does not send it after it resumes.
"""

from __future__ import annotations

from collections.abc import Callable

import aiohttp
from aiohttp.abc import AbstractStreamWriter

from stowage.operator.client.api_client import ApiClient, ObserveRequest, Request
from stowage.operator.client.api_error import ApiError
from stowage.operator.client.connection import Connection
from stowage.operator.client.rate_limit import TokenBucket


class LeaseNotHeldError(ApiError):
    """The write was not sent: another replica may be the leader."""

    def __init__(self) -> None:
        super().__init__(0, "LeaseNotHeld", "this replica does not hold the lease any more")


class GatedBody(aiohttp.BytesPayload):
    """A request body that is sent only with the lease; aiohttp sends the headers along with it.

    aiohttp turns `LeaseNotHeldError` into a `ClientConnectionError`.
    """

    def __init__(self, value: bytes, may_write: Callable[[], bool]) -> None:
        super().__init__(value)
        self._may_write = may_write

    async def write_with_length(
        self, writer: AbstractStreamWriter, content_length: int | None
    ) -> None:
        """Write the body.

        Raises:
            LeaseNotHeldError: this replica does not hold the lease.
        """
        if not self._may_write():
            raise LeaseNotHeldError
        await super().write_with_length(writer, content_length)


class GatedClient(ApiClient):
    """Sends writes only with the lease, and all requests within the rate limit.

    Args:
        connection: Connection to the API server.
        may_write: Whether this replica holds the lease at this moment.
        bucket: The rate limit; None for no limit.
        observe: Called after every request.
        observe_rate_limit: Called with the method of each request and its wait for the rate limit.
    """

    def __init__(
        self,
        connection: Connection,
        may_write: Callable[[], bool],
        bucket: TokenBucket | None = None,
        observe: ObserveRequest | None = None,
        observe_rate_limit: Callable[[str, float], None] | None = None,
    ) -> None:
        super().__init__(connection, observe)
        self._may_write = may_write
        self._bucket = bucket
        self._observe_rate_limit = observe_rate_limit

    async def _request_once(self, request: Request) -> bytes:
        if self._bucket is not None:
            delay_s = await self._bucket.wait()
            if self._observe_rate_limit is not None:
                self._observe_rate_limit(request.method, delay_s)
        if request.method != "GET":
            self._check_may_send()
        return await super()._request_once(request)

    def _check_may_send(self) -> None:
        if not self._may_write():
            raise LeaseNotHeldError

    def _payload(self, body: bytes) -> aiohttp.BytesPayload:
        return GatedBody(body, self._may_write)
