"""A record of the engine's calls and answers, and their replay.

Tests and simulations keep a journal in memory; ``stowage run --record`` writes the same calls to a
file (`stowage.recording`). A replay that compares decisions needs all calls since the start. A
checkpoint to begin it from is not possible: the cluster's objects can be kept, as the segments of a
recording do, but not the decisions about them.

- A pod that is being bound has a cycle state that plugins write, a framework that may belong to an
  earlier configuration, and the state of its volume PreBind.
- Plugins hold what they reserved, and have no method to export or import it.
- A pod in flight is requeued by the events since it was popped, with their old and new objects.
- The order of pods with equal sort keys depends on when each entered the queue, or returned to it,
  and ties between nodes depend on the order of the cache's rows.

A checkpoint without one of these replays to another state, and a checkpoint with all of them is a
second copy of every data structure. So a bounded journal only shows the last calls, and only a
complete one can be replayed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import zip_longest
from typing import Generic, Protocol, TypeAlias, TypeVar

import msgspec
from msgspec.structs import replace

from stowage.api.events import Event
from stowage.api.instructions import (
    AttemptResult,
    BindingConditionsAwaited,
    Instruction,
    PodGroupAttemptResult,
    PodReference,
)


class HandleCall(msgspec.Struct, frozen=True):
    """A call of ``Engine.handle``; `wall_times` are the readings of the wall clock."""

    now: float
    events: tuple[Event, ...]
    instructions: tuple[Instruction, ...]
    wall_times: tuple[float, ...] = ()


class ScheduleCall(msgspec.Struct, frozen=True):
    """A call of ``Engine.schedule``.

    `choices` are the results of ties, `wall_times` the readings of the wall clock. `late_checks`
    are the numbers of the checks of time limits that found one passed.
    """

    now: float
    budget: int
    choices: tuple[int, ...]
    instructions: tuple[Instruction, ...]
    wall_times: tuple[float, ...] = ()
    late_checks: tuple[int, ...] = ()


Entry: TypeAlias = HandleCall | ScheduleCall
EngineT = TypeVar("EngineT", bound="Replayable")


class ReplayDiverged(AssertionError):  # noqa: N818 - it names the finding
    """A replayed call returned other instructions than the recorded one."""


class IncompleteJournal(ValueError):  # noqa: N818 - it names the finding
    """The journal has dropped its first calls, so it cannot be replayed."""


class CallRecorder(Protocol):
    """Receives every call of an engine."""

    def record(self, entry: Entry) -> None:
        """Append a call."""
        ...


class Journal:
    """The last calls, with their answers.

    Args:
        max_entries: The number of calls that are kept; 0 keeps none.
    """

    def __init__(self, max_entries: int = 10_000) -> None:
        self._entries: deque[Entry] = deque(maxlen=max_entries)
        self._recorded = 0

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def is_complete(self) -> bool:
        """Whether no call has been dropped."""
        return self._recorded == len(self._entries)

    @property
    def entries(self) -> Sequence[Entry]:
        """The recorded calls, oldest first."""
        return tuple(self._entries)

    def record(self, entry: Entry) -> None:
        """Append a call."""
        self._recorded += 1
        self._entries.append(entry)


class Replayable(Protocol):
    """The methods of the engine that a replay calls."""

    def handle(self, events: Iterable[Event], now: float) -> list[Instruction]:
        """Handle events."""
        ...

    def schedule(self, now: float, budget: int) -> list[Instruction]:
        """Attempt pods."""
        ...

    def repeat_time_limits(self, passed: Sequence[int]) -> None:
        """Let time limits pass at these checks of the next calls, and at no others."""
        ...

    def time_limits_passed(self) -> Sequence[int]:
        """The checks since then that found a time limit passed."""
        ...


#: Makes an engine from its ``choose`` and its ``wall_clock``.
MakeEngine: TypeAlias = Callable[[Callable[[int], int], Callable[[], float]], EngineT]


class Replay(Generic[EngineT]):
    """Repeats recorded calls on a fresh engine, one by one, and compares the answers.

    Args:
        make_engine: Makes the engine with the ``choose`` and the ``wall_clock`` that it is passed,
            which repeat what was recorded.
        unix_offset_s: Seconds since 1970 at the engine's time 0: the wall clock for questions
            between two calls, of which nothing is recorded.

    Attributes:
        engine: The engine.
        num_calls: Number of repeated calls.
    """

    def __init__(self, make_engine: MakeEngine[EngineT], unix_offset_s: float = 0.0) -> None:
        self._choices: deque[int] = deque()
        self._wall_times: deque[float] = deque()
        self._unix_s = self._unix_offset_s = unix_offset_s
        self.engine = make_engine(lambda _num_ties: self._choices.popleft(), self._wall_time)
        self.num_calls = 0

    def repeat(self, entry: Entry) -> None:
        """Repeat a call.

        Raises:
            ReplayDiverged: An answer differs; durations do not count.
        """
        self._begin(entry)
        if isinstance(entry, HandleCall):
            answer = self.engine.handle(entry.events, entry.now)
        else:
            answer = self.engine.schedule(entry.now, entry.budget)
        self._compare(entry, answer)

    def repeat_until_attempt(self, entry: ScheduleCall, pod: str) -> None:
        """Repeat a call attempt by attempt, up to the attempt of `pod` (``namespace/name``).

        Raises:
            ReplayDiverged: The result of this attempt differs.
        """
        self._begin(entry)
        recorded = _attempts_of(pod, entry.instructions)
        replayed: list[Instruction] = []
        for _ in range(entry.budget):
            replayed = _attempts_of(pod, self.engine.schedule(entry.now, 1))
            if replayed:
                break
        self._choices.clear()
        self._wall_times.clear()
        passed = tuple(self.engine.time_limits_passed())
        begun = replace(entry, instructions=tuple(recorded[:1]), late_checks=passed)
        self._compare(begun, replayed[:1])

    def _begin(self, entry: Entry) -> None:
        """Provide what a call got from outside."""
        self._unix_s = self._unix_offset_s + entry.now
        self._wall_times.extend(entry.wall_times)
        if isinstance(entry, ScheduleCall):
            self._choices.extend(entry.choices)
            self.engine.repeat_time_limits(entry.late_checks)

    def _compare(self, entry: Entry, answer: Sequence[Instruction]) -> None:
        difference = _difference(_timeless(entry.instructions), _timeless(answer))
        if not difference and self._choices:
            difference = f"{len(self._choices)} of the recorded ties between nodes did not occur"
        if not difference and self._wall_times:
            difference = f"the wall clock was read {len(self._wall_times)} times more"
        if not difference and isinstance(entry, ScheduleCall):
            num_missing = len(entry.late_checks) - len(self.engine.time_limits_passed())
            if num_missing:
                difference = f"{num_missing} of the recorded time limits did not pass"
        if difference:
            method = "handle" if isinstance(entry, HandleCall) else "schedule"
            raise ReplayDiverged(
                f"call {self.num_calls} ({method} at {entry.now:.6f} s) differs: {difference}"
            )
        self.num_calls += 1

    def _wall_time(self) -> float:
        """The next recorded reading; between two calls the time of the last one."""
        return self._wall_times.popleft() if self._wall_times else self._unix_s


def replay(journal: Journal, make_engine: MakeEngine[Replayable]) -> None:
    """Repeat all calls of `journal` on a fresh engine and compare every answer.

    Args:
        journal: A complete journal.
        make_engine: See `Replay`.

    Raises:
        IncompleteJournal: The journal has dropped calls.
        ReplayDiverged: An answer differs; durations do not count.
    """
    if not journal.is_complete:
        raise IncompleteJournal(
            f"the journal kept the last {len(journal)} calls only; replay needs all since the start"
        )
    calls = Replay(make_engine)
    for entry in journal.entries:
        calls.repeat(entry)


def _attempts_of(pod: str, instructions: Iterable[Instruction]) -> list[Instruction]:
    return [
        each for each in instructions if isinstance(each, AttemptResult) and each.pod.key == pod
    ]


def _timeless(instructions: Iterable[Instruction]) -> list[Instruction]:
    """The instructions without measured durations."""
    return [_without_durations(each) for each in instructions]


def _without_durations(instruction: Instruction) -> Instruction:
    if isinstance(instruction, AttemptResult):
        return replace(instruction, duration_s=0.0, steps=())
    if isinstance(instruction, PodGroupAttemptResult):
        return replace(instruction, duration_s=0.0, algorithm_duration_s=0.0)
    if isinstance(instruction, BindingConditionsAwaited):
        return replace(instruction, duration_s=0.0)
    return instruction


def _difference(recorded: Sequence[Instruction], replayed: Sequence[Instruction]) -> str:
    """The first instruction that differs, with its pod; empty if all are equal."""
    for number, (one, other) in enumerate(zip_longest(recorded, replayed)):
        if one != other:
            first, second = _shown(one, other), _shown(other, one)
            return (
                f"instruction {number}{_pod_of(one or other)}: recorded {first}, replayed {second}"
            )
    return ""


def _shown(one: Instruction | None, other: Instruction | None) -> str:
    """An instruction as text: of two of one kind only what differs, the pod before all else."""
    if one is None or type(one) is not type(other):
        return repr(one)
    differing = [
        field for field in one.__struct_fields__ if getattr(one, field) != getattr(other, field)
    ]
    shown = [each for each in differing if each == "pod"] or differing
    text = ", ".join(f"{field}={_text(getattr(one, field))}" for field in shown)
    return f"{type(one).__name__}({text})"


def _text(value: object) -> str:
    return value.key if isinstance(value, PodReference) else repr(value)


def _pod_of(instruction: Instruction | None) -> str:
    pod = getattr(instruction, "pod", None) or getattr(instruction, "victim", None)
    return f" about pod {pod.key}" if isinstance(pod, PodReference) else ""
