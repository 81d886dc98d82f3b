"""Exponential backoff, and retries of a request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from stowage.operator.client.api_client import LOST_ANSWER_ERRORS
from stowage.operator.client.api_error import ApiError
from stowage.operator.clock import Jitter, Sleep

T = TypeVar("T")


class Backoff:
    """Exponential delays with jitter over their upper half.

    The n-th delay lies in ``[d/2, d]`` with ``d = min(initial_s * 2**n, max_s)``, and is never
    shorter than the server's `ApiError.retry_after`.
    """

    def __init__(self, jitter: Jitter, initial_s: float = 0.1, max_s: float = 30.0) -> None:
        self._jitter = jitter
        self._initial_s = initial_s
        self._max_s = max_s
        self._failures = 0

    def reset(self) -> None:
        """Start again with the shortest delay, after a success."""
        self._failures = 0

    def next_delay(self, error: BaseException | None = None) -> float:
        """Seconds to wait after the next failure."""
        ceiling = min(self._initial_s * 2.0 ** min(self._failures, 30), self._max_s)
        self._failures += 1
        delay = ceiling * (0.5 + 0.5 * self._jitter())
        asked = error.retry_after if isinstance(error, ApiError) else None
        return delay if asked is None else max(delay, asked)


def is_worth_retrying(error: BaseException) -> bool:
    """Whether the same request may succeed later: after no answer, 429 or 5xx."""
    if isinstance(error, ApiError):
        return error.is_transient
    return isinstance(error, LOST_ANSWER_ERRORS)


async def retry(
    request: Callable[[], Awaitable[T]],
    backoff: Backoff,
    sleep: Sleep,
    max_attempts: int | None = None,
) -> T:
    """Repeat an idempotent request until it succeeds or is refused permanently.

    Raises:
        ApiError: the refusal is permanent, or is the last of `max_attempts`.
    """
    attempts = 0
    while True:
        attempts += 1
        try:
            return await request()
        except Exception as error:
            if not is_worth_retrying(error) or attempts == max_attempts:
                raise
            delay = backoff.next_delay(error)
        await sleep(delay)


def retry_log(log: Any, error: BaseException) -> Callable[..., None]:
    """The method of `log` for a request that is sent again: debug if the `OutageLog` has a line."""
    write: Callable[..., None] = log.debug if isinstance(error, LOST_ANSWER_ERRORS) else log.info
    return write
