"""Clock and randomness of the process; no other module reads either."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from datetime import UTC, datetime

import msgspec

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
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def unix_nanoseconds() -> int:
    """The present time, for unique names."""
    return time.time_ns()


class Clock(msgspec.Struct, frozen=True):
    """The clock and randomness of a process; a simulation replaces them.

    Attributes:
        monotonic: Returns monotonic seconds, the engine's `now`.
        timestamp: Returns the present time in whole seconds, as in ``metav1.Time``.
        timestamp_micro: Returns the present time with microseconds, as in ``metav1.MicroTime``.
        unix_nanoseconds: Returns the present time, for unique names.
        jitter: Returns a random number in 0..1.
        choose: Returns a random index below n.
    """

    monotonic: Callable[[], float] = monotonic
    timestamp: Callable[[], str] = rfc3339
    timestamp_micro: Callable[[], str] = rfc3339_micro
    unix_nanoseconds: Callable[[], int] = unix_nanoseconds
    jitter: Callable[[], float] = jitter
    choose: Callable[[int], int] = choose
