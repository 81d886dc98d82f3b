"""A record of the engine's calls and answers, and their replay; for tests and simulations.

A running scheduler keeps no journal. A replay needs all calls since the start. A checkpoint to
begin from is not possible: the cluster's objects could be kept, but not the decisions about them.

- A pod that is being bound has a cycle state that plugins write, a framework that may belong to an
  earlier configuration, and the state of its volume PreBind.
- Plugins hold what they reserved, and have no method to export or import it.
- A pod in flight is requeued by the events since it was popped, with their old and new objects.
- The order of pods with equal sort keys depends on when they entered five queues and the cache's
  rows, and ties between nodes depend on the order of the rows.

A checkpoint without one of these replays to another state, and a checkpoint with all of them is a
second copy of every data structure. So a bounded journal only shows the last calls, and only a
complete one can be replayed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeAlias

import msgspec
from msgspec.structs import replace

from stowage.api.events import Event
from stowage.api.instructions import AttemptResult, Instruction


class HandleCall(msgspec.Struct, frozen=True):
    """A call of ``Engine.handle``."""

    now: float
    events: tuple[Event, ...]
    instructions: tuple[Instruction, ...]


class ScheduleCall(msgspec.Struct, frozen=True):
    """A call of ``Engine.schedule``; `choices` are the results of ties."""

    now: float
    budget: int
    choices: tuple[int, ...]
    instructions: tuple[Instruction, ...]


Entry: TypeAlias = HandleCall | ScheduleCall


class ReplayDiverged(AssertionError):  # noqa: N818 - it names the finding
    """A replayed call returned other instructions than the recorded one."""


class IncompleteJournal(ValueError):  # noqa: N818 - it names the finding
    """The journal has dropped its first calls, so it cannot be replayed."""


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


def replay(journal: Journal, make_engine: Callable[[Callable[[int], int]], Replayable]) -> None:
    """Repeat all calls of `journal` on a fresh engine and compare every answer.

    Args:
        journal: A complete journal.
        make_engine: Makes the engine with the ``choose`` that it is passed, which repeats the
            recorded choices.

    Raises:
        IncompleteJournal: The journal has dropped calls.
        ReplayDiverged: An answer differs; durations do not count.
    """
    if not journal.is_complete:
        raise IncompleteJournal(
            f"the journal kept the last {len(journal)} calls only; replay needs all since the start"
        )
    choices: deque[int] = deque()
    engine = make_engine(lambda _num_ties: choices.popleft())
    for number, entry in enumerate(journal.entries):
        if isinstance(entry, HandleCall):
            answer = engine.handle(entry.events, entry.now)
        else:
            choices.extend(entry.choices)
            answer = engine.schedule(entry.now, entry.budget)
        if _timeless(answer) != _timeless(entry.instructions):
            raise ReplayDiverged(
                f"call {number} answered {_timeless(answer)}, recorded {entry.instructions}"
            )


def _timeless(instructions: Iterable[Instruction]) -> list[Instruction]:
    """The instructions without measured durations."""
    return [
        replace(each, duration_s=0.0) if isinstance(each, AttemptResult) else each
        for each in instructions
    ]
