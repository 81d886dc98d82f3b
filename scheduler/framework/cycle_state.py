"""What plugins carry from one extension point to the next within one cycle."""

from __future__ import annotations

from typing import TypeVar, cast

from scheduler.framework.timings import Timings

T = TypeVar("T")


class CycleState:
    """Typed slots of one scheduling cycle: one dataclass per plugin, keyed by its type.

    Attributes:
        skip_filter: Names of plugins whose PreFilter said Skip.
        skip_score: Names of plugins whose PreScore said Skip.
        timings: Takes the durations of plugins; None in a cycle that is not sampled.
            upstream: ``CycleState.ShouldRecordPluginMetrics``.
    """

    __slots__ = ("_slots", "skip_filter", "skip_score", "timings")

    def __init__(self, timings: Timings | None = None) -> None:
        self.timings = timings
        self._slots: dict[type[object], object] = {}
        self.skip_filter: set[str] = set()
        self.skip_score: set[str] = set()

    def write(self, value: object) -> None:
        """Keep `value`; a later write of the same type replaces it."""
        self._slots[type(value)] = value

    def read(self, kind: type[T]) -> T:
        """The value of type `kind` written in this cycle.

        Raises:
            KeyError: Nothing of that type was written.
        """
        return cast("T", self._slots[kind])

    def get(self, kind: type[T]) -> T | None:
        """The value of type `kind`, or None if nothing of that type was written."""
        return cast("T | None", self._slots.get(kind))
