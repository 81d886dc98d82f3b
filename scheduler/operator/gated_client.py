"""The client of everything that acts on the cluster: limited in rate, closed without the lease.

Whoever means to write asks ``may_write`` early, to spare the effort; here it is asked again after
the last wait, retries and fresh credentials included, so a replica that was stopped or hung while
a request was being prepared does not send it when it wakes up.
"""

from __future__ import annotations

from collections.abc import Callable

import aiohttp
from yarl import URL

from scheduler.operator.api_client import JSON, ApiClient, ObserveRequest
from scheduler.operator.api_error import ApiError
from scheduler.operator.connection import Connection
from scheduler.operator.rate_limit import TokenBucket


class LeaseNotHeldError(ApiError):
    """The write was not sent: another replica may be the leader by now."""

    def __init__(self) -> None:
        super().__init__(0, "LeaseNotHeld", "this replica does not hold the lease any more")


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
        body: bytes | None,
        timeout: aiohttp.ClientTimeout | None = None,  # noqa: ASYNC109 - aiohttp's own limits
        content_type: str = JSON,
    ) -> bytes:
        if self._bucket is not None:
            await self._bucket.wait()
        if method != "GET" and not self._may_write():
            raise LeaseNotHeldError
        return await super()._request_once(method, url, body, timeout, content_type)
