"""What the engine was told and what it answered, so that any state can be reached again.

A journal that dropped its beginning cannot be replayed, and keeps no checkpoint to begin from. The
objects known would be easy to keep, as events that tell of each once. What was decided is not:

- a pod being bound holds its cycle state, which plugins write as they like, its framework, which
  may be an older configuration's, and the stage of its volumes;
- plugins hold what they reserved, and nothing asks them for it or gives it back to them;
- a pod in flight is judged by the events since it was popped, with old and new objects;
- turns among equals follow from when pods came and how often they moved, in five queues and in the
  cache's rows, and the next pick among tied nodes from the order of the rows.

A checkpoint that leaves any of it out replays to another state, and one that holds all is a second
copy of every room's books. So a bounded journal is a flight recorder: its tail shows what happened,
and only a complete one is replayed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeAlias

import msgspec
from msgspec.structs import replace

from stowage.api.events import Event
from stowage.api.instructions import AttemptResult, Instruction


class Handled(msgspec.Struct, frozen=True):
    """A call of ``Engine.handle``."""

    now: float
    events: tuple[Event, ...]
    instructions: tuple[Instruction, ...]


class Scheduled(msgspec.Struct, frozen=True):
    """A call of ``Engine.schedule``; `choices` are the ties the random generator broke."""

    now: float
    budget: int
    choices: tuple[int, ...]
    instructions: tuple[Instruction, ...]


Entry: TypeAlias = Handled | Scheduled


class ReplayDiverged(AssertionError):  # noqa: N818 - it names the finding
    """A replayed call answered differently from the recorded one."""


class IncompleteJournal(ValueError):  # noqa: N818 - it names the finding
    """The journal has dropped its beginning, so there is nothing to replay from."""


class Journal:
    """A bounded log of calls and answers.

    Args:
        max_entries: How many calls are kept; the oldest go first. 0 keeps none.
    """

    def __init__(self, max_entries: int = 10_000) -> None:
        self._entries: deque[Entry] = deque(maxlen=max_entries)
        self._recorded = 0

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def is_complete(self) -> bool:
        """Whether nothing has been dropped yet."""
        return self._recorded == len(self._entries)

    @property
    def entries(self) -> Sequence[Entry]:
        """The calls still known, oldest first."""
        return tuple(self._entries)

    def record(self, entry: Entry) -> None:
        """Append a call."""
        self._recorded += 1
        self._entries.append(entry)


class Replayable(Protocol):
    """The part of the engine that a replay drives."""

    def handle(self, events: Iterable[Event], now: float) -> list[Instruction]:
        """Take in events."""
        ...

    def schedule(self, now: float, budget: int) -> list[Instruction]:
        """Try pods."""
        ...


def replay(journal: Journal, make_engine: Callable[[Callable[[int], int]], Replayable]) -> None:
    """Repeat all calls of `journal` on a fresh engine and compare every answer.

    Args:
        journal: A complete journal.
        make_engine: Builds the engine around the ``choose`` callable it is given, which
            repeats the recorded choices.

    Raises:
        IncompleteJournal: The beginning was dropped.
        ReplayDiverged: An answer differs; durations do not count.
    """
    if not journal.is_complete:
        raise IncompleteJournal(
            f"the journal kept the last {len(journal)} calls only; replay needs all since the start"
        )
    choices: deque[int] = deque()
    engine = make_engine(lambda _num_ties: choices.popleft())
    for number, entry in enumerate(journal.entries):
        if isinstance(entry, Handled):
            answer = engine.handle(entry.events, entry.now)
        else:
            choices.extend(entry.choices)
            answer = engine.schedule(entry.now, entry.budget)
        if _timeless(answer) != _timeless(entry.instructions):
            raise ReplayDiverged(
                f"call {number} answered {_timeless(answer)}, recorded {entry.instructions}"
            )


def _timeless(instructions: Iterable[Instruction]) -> list[Instruction]:
    """The instructions without the durations that a clock measured."""
    return [
        replace(each, duration_s=0.0) if isinstance(each, AttemptResult) else each
        for each in instructions
    ]
