"""Exponential backoff, and retries of a request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from stowage.operator.client.api_client import LOST_ANSWER_ERRORS
from stowage.operator.client.api_error import ApiError
from stowage.operator.clock import Jitter, Sleep

if TYPE_CHECKING:
    from tenacity import RetryCallState

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
        delay = self.delay_after(self._failures, error)
        self._failures += 1
        return delay

    def delay_after(self, failures: int, error: BaseException | None) -> float:
        """Seconds to wait after `failures` earlier failures and this `error`."""
        ceiling = min(self._initial_s * 2.0 ** min(failures, 30), self._max_s)
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
    # The first attempt goes without tenacity, whose bookkeeping costs as much as the request.
    try:
        return await request()
    except Exception as error:
        if not is_worth_retrying(error) or max_attempts == 1:
            raise
        await sleep(backoff.delay_after(0, error))
    return await _retry_with_tenacity(request, backoff, sleep, max_attempts)


async def _retry_with_tenacity(
    request: Callable[[], Awaitable[T]],
    backoff: Backoff,
    sleep: Sleep,
    max_attempts: int | None,
) -> T:
    # Imported late: a replica that starts does not need tenacity.
    from tenacity import (  # noqa: PLC0415
        AsyncRetrying,
        retry_if_exception,
        stop_after_attempt,
        stop_never,
    )

    def wait(state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome is not None else None
        return backoff.delay_after(state.attempt_number - 1, error)

    async def attempt() -> T:
        # tenacity awaits the result of coroutine functions only.
        return await request()

    retrying = AsyncRetrying(
        sleep=sleep,
        wait=wait,
        stop=stop_never if max_attempts is None else stop_after_attempt(max_attempts - 1),
        retry=retry_if_exception(is_worth_retrying),
        reraise=True,
    )
    return await retrying(attempt)
