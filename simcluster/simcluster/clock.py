"""The wall clock of the simulated cluster, and timestamps."""

import datetime
import time
from collections.abc import Callable


class Clock:
    """Timestamps for objects.

    Args:
        time_s: seconds since the epoch; tests pass their own.
    """

    def __init__(self, time_s: Callable[[], float] = time.time) -> None:
        self._time_s = time_s
        self._second = -1
        self._text = ""

    def time_s(self) -> float:
        """Seconds since the epoch."""
        return self._time_s()

    def now(self) -> str:
        """``metav1.Time``: ``2026-01-02T03:04:05Z``."""
        second = int(self._time_s())
        if second != self._second:
            self._second = second
            self._text = timestamp(second)
        return self._text

    def after(self, seconds: float) -> str:
        """``metav1.Time`` some seconds from now."""
        return timestamp(int(self._time_s() + seconds))


def timestamp(second: int) -> str:
    """Seconds since the epoch as ``metav1.Time``."""
    moment = datetime.datetime.fromtimestamp(second, datetime.UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_timestamp(text: str) -> float:
    """Seconds since the epoch of a ``metav1.Time`` or ``metav1.MicroTime``.

    Raises:
        ValueError: ``text`` is no RFC 3339 timestamp.
    """
    return datetime.datetime.fromisoformat(text).timestamp()
