"""Rate limit of requests: the token bucket of client-go's ``flowcontrol``."""

from __future__ import annotations

from stowage.operator.clock import Clock


class TokenBucket:
    """Admits requests in their order, `qps` per second and `burst` at once.

    Args:
        qps: Requests per second, more than 0.
        burst: Requests at once after a pause, at least 1.
        clock: Time, sleep and jitter.
    """

    def __init__(self, qps: float, burst: int, clock: Clock) -> None:
        self._interval_s = 1.0 / qps
        self._burst_s = (max(burst, 1) - 1) * self._interval_s
        self._clock = clock
        self._next_at = float("-inf")

    async def wait(self) -> float:
        """Return when the next request may be sent, with the seconds that it had to wait."""
        now = self._clock.monotonic()
        # A pause refills the bucket up to the burst, not further.
        self._next_at = max(self._next_at, now - self._burst_s)
        delay, self._next_at = self._next_at - now, self._next_at + self._interval_s
        if delay > 0:
            await self._clock.sleep(delay)
        return max(delay, 0.0)


def token_bucket(qps: float, burst: int, clock: Clock) -> TokenBucket | None:
    """The bucket of ``--kube-api-qps`` and ``--kube-api-burst``; None if there is no limit."""
    return TokenBucket(qps, burst, clock) if qps > 0 else None
