"""Clock and randomness of the process; nothing else in the package reads either."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from datetime import UTC, datetime

import msgspec

monotonic = time.monotonic
"""Seconds that never jump; the `now` of the engine."""

timer = time.perf_counter
"""Seconds for measuring durations."""

_random = random.Random()  # noqa: S311 - ties and jitter, not secrets

jitter = _random.random
"""A number in 0..1."""

choose = _random.randrange
"""An index below n: which of n equally good nodes is taken."""


def rfc3339() -> str:
    """The present time in whole seconds, as in ``metav1.Time``."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def rfc3339_micro() -> str:
    """The present time with microseconds, as in ``metav1.MicroTime``."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def unix_nanoseconds() -> int:
    """The present time, for names that have to be unique."""
    return time.time_ns()


class Clock(msgspec.Struct, frozen=True):
    """Time and randomness as a process sees them; a simulation gives it others.

    Attributes:
        monotonic: Seconds that never jump; the `now` of the engine.
        timestamp: The present time in whole seconds, as in ``metav1.Time``.
        timestamp_micro: The present time with microseconds, as in ``metav1.MicroTime``.
        unix_nanoseconds: The present time, for names that have to be unique.
        jitter: A number in 0..1.
        choose: An index below n.
    """

    monotonic: Callable[[], float] = monotonic
    timestamp: Callable[[], str] = rfc3339
    timestamp_micro: Callable[[], str] = rfc3339_micro
    unix_nanoseconds: Callable[[], int] = unix_nanoseconds
    jitter: Callable[[], float] = jitter
    choose: Callable[[int], int] = choose
