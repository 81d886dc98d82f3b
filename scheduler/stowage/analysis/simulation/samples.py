"""Quantities at regular times, in a bounded number of points."""

from __future__ import annotations

from collections.abc import Callable, Mapping

POINTS = 200
"""An experiment that takes as long as expected has this many points; none has twice as many."""

_UNKNOWN_S = 600.0
_SHORTEST_S = 1e-3


class Samples:
    """Samples that start at 0 and are equally far apart, and one at the end.

    When there are too many points, every second one is dropped and the distance doubles.

    Args:
        expected_s: About how long the experiment takes; 0 if nobody knows.
        read: Returns the values now.

    Attributes:
        times: The sample times.
    """

    def __init__(self, expected_s: float, read: Callable[[], Mapping[str, float]]) -> None:
        self.times: list[float] = []
        self._read = read
        self._interval_s = max((expected_s or _UNKNOWN_S) / POINTS, _SHORTEST_S)
        self._next = 0
        self._values: dict[str, list[float]] = {}

    @property
    def due_at(self) -> float:
        """The time of the next sample."""
        return self._next * self._interval_s

    def advance(self, now: float) -> None:
        """Take the samples before a time; nothing has changed since the last change."""
        if self.due_at < now:
            values = self._read()
            while self.due_at < now:
                self._add(values)

    def finish(self, ended: float) -> None:
        """Take the samples up to the end and one at the end; drop those after it."""
        values = self._read()
        while self.due_at <= ended:
            self._add(values)
        num_kept = sum(each <= ended for each in self.times)
        del self.times[num_kept:]
        for column in self._values.values():
            del column[num_kept:]
        if not self.times or self.times[-1] < ended:
            self._append(values, ended)

    def columns(self) -> dict[str, list[float]]:
        """Name -> values at `times`; 0 where a quantity did not exist yet, or any more."""
        return {name: self._filled(column) for name, column in self._values.items()}

    def _add(self, values: Mapping[str, float]) -> None:
        self._append(values, self.due_at)
        self._next += 1
        if len(self.times) >= 2 * POINTS:
            self._thin_out()

    def _append(self, values: Mapping[str, float], at_s: float) -> None:
        for name, value in values.items():
            self._filled(self._values.setdefault(name, [])).append(value)
        self.times.append(at_s)

    def _thin_out(self) -> None:
        self.times = self.times[::2]
        self._values = {name: self._filled(each)[::2] for name, each in self._values.items()}
        self._interval_s *= 2
        self._next = len(self.times)

    def _filled(self, column: list[float]) -> list[float]:
        column.extend([0.0] * (len(self.times) - len(column)))
        return column
