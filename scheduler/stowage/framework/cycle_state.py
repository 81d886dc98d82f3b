"""Data that plugins pass from one extension point to the next within one cycle."""

from __future__ import annotations

from typing import TypeVar, cast

from stowage.framework.timings import Timings

T = TypeVar("T")


class CycleState:
    """Typed slots of one scheduling cycle: one dataclass per plugin, keyed by its type.

    Attributes:
        skip_filter: Names of plugins whose PreFilter returned Skip.
        skip_score: Names of plugins whose PreScore returned Skip.
        pods_to_activate: UIDs of pods to move to the active queue if this cycle succeeds, in
            order; see `activate`.
        timings: Observes the durations of plugins; None in a cycle that is not sampled.
            upstream: ``CycleState.ShouldRecordPluginMetrics``.
    """

    __slots__ = ("_slots", "pods_to_activate", "skip_filter", "skip_score", "timings")

    def __init__(self, timings: Timings | None = None) -> None:
        self.timings = timings
        self._slots: dict[type[object], object] = {}
        self.skip_filter: set[str] = set()
        self.skip_score: set[str] = set()
        self.pods_to_activate: dict[str, None] = {}

    def activate(self, uid: str) -> None:
        """Move another pod to the active queue when this pod has passed Permit.

        A later call takes effect when this pod is bound. The other pod stays where it is if this
        pod gets neither. upstream: ``PodsToActivate``.
        """
        self.pods_to_activate[uid] = None

    def take_pods_to_activate(self) -> tuple[str, ...]:
        """The pods to activate that were added since the last call."""
        taken = tuple(self.pods_to_activate)
        self.pods_to_activate.clear()
        return taken

    def write(self, value: object) -> None:
        """Store `value`; a later write of the same type replaces it."""
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
