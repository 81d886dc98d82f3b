"""How long the API server is waited for."""

from __future__ import annotations

import aiohttp
import msgspec

CONNECT_WITHIN_S = 5.0
LIST_FACTOR = 4.0
"""A page of 500 pods takes longer than a write."""


class Timeouts(msgspec.Struct, frozen=True, kw_only=True):
    """Limits, in seconds.

    Attributes:
        request_s: A write or the read of one object counts as not answered after this.
        watch_idle_s: A watch that says nothing for this long counts as dead. The server sends
            bookmarks about every minute.
        max_backoff_s: The longest pause between two tries; the server may ask for a longer one.
    """

    request_s: float = 30.0
    watch_idle_s: float = 90.0
    max_backoff_s: float = 30.0

    @property
    def request_timeout(self) -> aiohttp.ClientTimeout:
        """For one object."""
        return aiohttp.ClientTimeout(total=self.request_s, sock_connect=CONNECT_WITHIN_S)

    @property
    def list_timeout(self) -> aiohttp.ClientTimeout:
        """For a page of a list."""
        total = LIST_FACTOR * self.request_s
        return aiohttp.ClientTimeout(total=total, sock_connect=CONNECT_WITHIN_S)
