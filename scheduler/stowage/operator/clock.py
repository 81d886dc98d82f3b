"""Clock and randomness of the process; no other module reads either."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import msgspec

Sleep = Callable[[float], Awaitable[None]]
Jitter = Callable[[], float]
"""Returns random numbers in 0..1."""

monotonic = time.monotonic
"""Returns monotonic seconds, the engine's `now`."""

timer = time.perf_counter
"""Returns seconds, to measure durations."""

_random = random.Random()  # noqa: S311 - ties and jitter, not secrets

jitter = _random.random
"""Returns a random number in 0..1."""

choose = _random.randrange
"""Returns a random index below n, to choose one of n nodes with the same score."""


def rfc3339() -> str:
    """The present time in whole seconds, as in ``metav1.Time``."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def rfc3339_micro() -> str:
    """The present time with microseconds, as in ``metav1.MicroTime``."""
    return _micro_time(datetime.now(UTC))


def unix_date() -> str:
    """The present time as Go's ``time.UnixDate``."""
    return datetime.now(UTC).strftime("%a %b %e %H:%M:%S UTC %Y")


def _micro_time(time_of_day: datetime) -> str:
    return time_of_day.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def unix_nanoseconds() -> int:
    """The present time, for unique names."""
    return time.time_ns()


class Clock(msgspec.Struct, frozen=True):
    """The clock and randomness of a process; a simulation replaces them.

    Attributes:
        monotonic: Returns monotonic seconds, the engine's `now`.
        timestamp: Returns the present time in whole seconds, as in ``metav1.Time``.
        timestamp_micro: Returns the present time with microseconds, as in ``metav1.MicroTime``.
        unix_date: Returns the present time as Go's ``time.UnixDate``.
        unix_nanoseconds: Returns the present time, for unique names.
        jitter: Returns a random number in 0..1.
        choose: Returns a random index below n.
        sleep: Sleeps for a number of seconds.
    """

    monotonic: Callable[[], float] = monotonic
    timestamp: Callable[[], str] = rfc3339
    timestamp_micro: Callable[[], str] = rfc3339_micro
    unix_date: Callable[[], str] = unix_date
    unix_nanoseconds: Callable[[], int] = unix_nanoseconds
    jitter: Callable[[], float] = jitter
    choose: Callable[[int], int] = choose
    sleep: Sleep = asyncio.sleep

    def times_of_day(self) -> Callable[[float], str]:
        """A function from monotonic seconds to times of day, as in ``metav1.MicroTime``."""
        offset = self.unix_nanoseconds() / 1e9 - self.monotonic()
        return lambda at: _micro_time(datetime.fromtimestamp(offset + at, UTC))
