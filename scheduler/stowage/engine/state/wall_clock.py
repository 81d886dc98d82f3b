"""The wall clock, with a record of what it showed."""

from __future__ import annotations

from collections.abc import Callable


class WallClock:
    """Reads the wall clock, and keeps every reading.

    Args:
        read: Returns the seconds since the epoch; the caller owns the clock.

    Attributes:
        readings: The readings since `clear`, in order.
    """

    __slots__ = ("_read", "readings")

    def __init__(self, read: Callable[[], float]) -> None:
        self._read = read
        self.readings: list[float] = []

    def __call__(self) -> float:
        """Read the clock."""
        reading = self._read()
        self.readings.append(reading)
        return reading

    def clear(self) -> None:
        """Drop the record."""
        self.readings.clear()
