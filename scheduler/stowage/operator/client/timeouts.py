"""Timeouts of requests to the API server."""

from __future__ import annotations

from functools import cache

import aiohttp
import msgspec

CONNECT_WITHIN_S = 5.0
LIST_FACTOR = 4.0
"""A page of 500 pods takes longer than a write."""


class Timeouts(msgspec.Struct, frozen=True, kw_only=True):
    """Timeouts in seconds.

    Attributes:
        request_s: Timeout of a write, or of the read of one object.
        watch_idle_s: A watch without data for this long counts as broken. The server ends each
            watch before that, see `watch_timeout_s`.
        max_backoff_s: Longest delay between two attempts, unless the server asks for a longer one.
    """

    request_s: float = 30.0
    watch_idle_s: float = 90.0
    max_backoff_s: float = 30.0

    @property
    def request_timeout(self) -> aiohttp.ClientTimeout:
        """Timeout of a request for one object."""
        return client_timeout(self.request_s)

    def watch_timeout_s(self, jitter: float) -> int:
        """Duration of a watch, for its ``timeoutSeconds``: between half and 3/4 of `watch_idle_s`.

        So an idle watch ends and is opened again while its connection works, even if the server
        sends no bookmarks, and only a dead connection is silent for `watch_idle_s`.

        Args:
            jitter: A number in 0..1, which spreads the requests.
        """
        return max(1, int(self.watch_idle_s * (0.5 + 0.25 * jitter)))

    @property
    def list_timeout(self) -> aiohttp.ClientTimeout:
        """Timeout of a request for a page of a list."""
        return client_timeout(LIST_FACTOR * self.request_s)


@cache
def client_timeout(total_s: float | None, read_s: float | None = None) -> aiohttp.ClientTimeout:
    """The limits of a request in seconds: in all, and without data; each is made once."""
    return aiohttp.ClientTimeout(total=total_s, sock_connect=CONNECT_WITHIN_S, sock_read=read_s)
