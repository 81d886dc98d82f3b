"""Data that plugins pass from one extension point to the next within one cycle."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, TypeVar, cast

import msgspec

from stowage.api.instructions import Instruction
from stowage.framework.timings import Timings

T = TypeVar("T")

#: Starts a time limit in seconds, and returns whether it has passed when asked.
StartLimit: TypeAlias = Callable[[float], Callable[[], bool]]


class PreparedCycle(msgspec.Struct, frozen=True):
    """What PreFilter and PreScore left for a pod, for the next pod of its class.

    Attributes:
        slots: What the plugins stored.
        skip_filter: The plugins whose PreFilter returned Skip.
        skip_score: The plugins whose PreScore returned Skip; None if PreScore did not run.
        uncached_scores: As in `CycleState`.
    """

    slots: dict[type[object], object]
    skip_filter: frozenset[str]
    skip_score: frozenset[str] | None
    uncached_scores: frozenset[str]


class CycleState:
    """Typed slots of one scheduling cycle: one dataclass per plugin, keyed by its type.

    Attributes:
        skip_filter: Names of plugins whose PreFilter returned Skip.
        skip_score: Names of plugins whose PreScore returned Skip.
        pods_to_activate: UIDs of pods to move to the active queue if this cycle succeeds, in
            order; see `activate`.
        group_to_allow: The group, ``namespace/name``, and the plugin of `allow_group`; None if no
            plugin asked for it.
        uncached_scores: Names of plugins whose scores of this pod are not kept, whatever their
            traits.
        timer: A clock for durations, in seconds. No decision may depend on it: see `start_limit`.
        wall_clock: Returns the seconds since the epoch.
        start_limit: Starts a time limit in seconds, and returns whether it has passed when asked;
            a replay repeats the answers. By default no limit passes.
        marks: The steps of the cycle that have ended, each with the time of its end by `timer`.
        timings: Observes the durations of plugins; None in a cycle that is not sampled.
            upstream: ``CycleState.ShouldRecordPluginMetrics``.
    """

    __slots__ = (
        "_instructions",
        "_slots",
        "group_to_allow",
        "marks",
        "pods_to_activate",
        "skip_filter",
        "skip_score",
        "start_limit",
        "timer",
        "timings",
        "uncached_scores",
        "wall_clock",
    )

    def __init__(
        self,
        timings: Timings | None = None,
        timer: Callable[[], float] = lambda: 0.0,
        wall_clock: Callable[[], float] = lambda: 0.0,
        start_limit: StartLimit = lambda _limit_s: _never,
    ) -> None:
        self.timings = timings
        self.timer = timer
        self.wall_clock = wall_clock
        self.start_limit = start_limit
        self.marks: list[tuple[str, float]] = []
        self._instructions: tuple[Instruction, ...] = ()
        self.uncached_scores: frozenset[str] = frozenset()
        self._slots: dict[type[object], object] = {}
        self.skip_filter: set[str] = set()
        self.skip_score: set[str] = set()
        self.pods_to_activate: dict[str, None] = {}
        self.group_to_allow: tuple[str, str] | None = None

    def mark(self, step: str) -> None:
        """A step of the cycle has ended."""
        self.marks.append((step, self.timer()))

    def durations(self, started: float) -> tuple[tuple[str, float], ...]:
        """The steps with their durations in seconds.

        Args:
            started: When the first step began.
        """
        begins = [started, *(ended for _, ended in self.marks)]
        steps = zip(self.marks, begins, strict=False)
        return tuple((step, ended - began) for (step, ended), began in steps)

    def prepared(self, *, was_scored: bool) -> PreparedCycle:
        """What PreFilter has left, and PreScore if it has run."""
        return PreparedCycle(
            dict(self._slots),
            frozenset(self.skip_filter),
            frozenset(self.skip_score) if was_scored else None,
            self.uncached_scores,
        )

    def take_over(self, prepared: PreparedCycle) -> None:
        """Start with what PreFilter and PreScore left for another pod."""
        self._slots = {**prepared.slots, **self._slots}
        self.skip_filter = set(prepared.skip_filter)
        self.uncached_scores = prepared.uncached_scores

    def blank(self) -> CycleState:
        """An empty state with the same clocks."""
        return CycleState(self.timings, self.timer, self.wall_clock, self.start_limit)

    def fork(self) -> CycleState:
        """A copy to ask plugins again: what it is given is not in the original.

        No plugin skips Score in it. upstream: ``CycleState.Clone``.
        """
        twin = self.blank()
        for value in self._slots.values():
            twin.write(value)
        twin.skip_filter = set(self.skip_filter)
        return twin

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

    def allow_group(self, group_key: str, plugin: str) -> None:
        """If this pod passes Permit, allow the pods of a group that wait there, for `plugin`.

        upstream: ``WaitingPod.Allow`` for each of them.
        """
        self.group_to_allow = (group_key, plugin)

    def instruct(self, instruction: Instruction) -> None:
        """Have the shell carry out an instruction after the extension point in progress.

        For PostFilter, Unreserve and a staged PreBind.
        """
        self._instructions += (instruction,)

    def take_instructions(self) -> tuple[Instruction, ...]:
        """The instructions that were added since the last call."""
        taken, self._instructions = self._instructions, ()
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


def _never() -> bool:
    return False
