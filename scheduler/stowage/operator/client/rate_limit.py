"""How many requests a second: the token bucket of client-go's ``flowcontrol``."""

from __future__ import annotations

from collections.abc import Callable

from stowage.operator.client.backoff import Sleep


class TokenBucket:
    """Lets `qps` requests a second pass, and `burst` at once; in the order they came.

    Args:
        qps: Requests a second, more than 0.
        burst: How many may pass at once after a pause; at least 1.
        monotonic: Seconds that never jump.
        sleep: Waits that many seconds.
    """

    def __init__(
        self, qps: float, burst: int, monotonic: Callable[[], float], sleep: Sleep
    ) -> None:
        self._interval_s = 1.0 / qps
        self._burst_s = (max(burst, 1) - 1) * self._interval_s
        self._monotonic = monotonic
        self._sleep = sleep
        self._next_at = float("-inf")

    async def wait(self) -> None:
        """Return when the next request may go."""
        now = self._monotonic()
        # The time at which the bucket would owe nothing; a pause fills no more than the burst.
        self._next_at = max(self._next_at, now - self._burst_s)
        delay, self._next_at = self._next_at - now, self._next_at + self._interval_s
        if delay > 0:
            await self._sleep(delay)
