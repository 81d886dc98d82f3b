"""Drives an engine on a virtual clock and checks its invariants after each call."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar, get_args

from stowage.api.events import ConfigurationChanged, Event, NodeSeen, PendingPodSeen
from stowage.api.instructions import Instruction, PodReference, ReportProblem
from stowage.engine import Engine, Journal, replay
from tests.support.builders import make_node, make_pod
from tests.support.engines import default_engine, of_type

T = TypeVar("T")

#: A configuration that is refused is reported under the event's name, too.
_EVENTS = frozenset(kind.__name__ for kind in get_args(Event) if kind is not ConfigurationChanged)


class EngineDriver:
    """An engine, the virtual time and every instruction the engine has returned.

    The engine's invariants are checked after every call with an event or an instruction. No handler
    of an event may raise: the engine would report it under the event's name, and go on.
    Subclasses override `carry_out` to act on instructions.

    Args:
        make: Builds the engine; called with ``choose``, ``journal`` and ``wall_clock``.
        choose: Breaks ties between nodes; by default the first node wins.

    Attributes:
        now: Virtual seconds; passed to every call of the engine.
        journal: Every call of the engine and its answer.
        instructions: What the engine has returned and `take` has not yet removed.
    """

    def __init__(
        self,
        make: Callable[..., Engine] = default_engine,
        choose: Callable[[int], int] = lambda _num_ties: 0,
        wall_clock: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self._make = make
        self.journal = Journal()
        self.engine = make(choose=choose, journal=self.journal, wall_clock=wall_clock)
        self.now = 0.0
        self.instructions: list[Instruction] = []

    def handle(self, *events: Event) -> list[Instruction]:
        """Pass events to the engine."""
        answer = self.engine.handle(events, self.now)
        if events or answer:
            self._record(answer)
        return answer

    def schedule(self, budget: int = 10) -> list[Instruction]:
        """Let the engine schedule up to `budget` pods."""
        answer = self.engine.schedule(self.now, budget)
        if answer:
            self._record(answer)
        return answer

    def advance(self, seconds: float) -> list[Instruction]:
        """Advance the virtual time."""
        self.now += seconds
        return self.handle()

    def add_nodes(self, *names: str, **fields: Any) -> None:
        """Add nodes; `fields` are those of `make_node`."""
        self.handle(*(NodeSeen(make_node(name, **fields)) for name in names))

    def create_pods(self, *names: str, **fields: Any) -> list[Instruction]:
        """Create pods; `fields` are those of `make_pod`."""
        return self.handle(*(PendingPodSeen(make_pod(name, **fields)) for name in names))

    def take(self, kind: type[T]) -> list[T]:
        """Remove and return the recorded instructions of one kind."""
        found = of_type(kind, self.instructions)
        self.instructions = [each for each in self.instructions if not isinstance(each, kind)]
        return found

    def queue_of(self, name: str) -> str:
        """The queue that holds a pod of the default namespace; empty if none does."""
        for queue, pods in self.engine.dump()["queue"].items():
            if any(pod["pod"] == f"default/{name}" for pod in pods):
                return str(queue)
        return ""

    def check_replay(self) -> None:
        """Assert that replaying the journal gives the same answers and the same final state."""
        replayed: list[Engine] = []

        def rebuild(choose: Callable[[int], int], wall_clock: Callable[[], float]) -> Engine:
            replayed.append(self._make(choose=choose, journal=None, wall_clock=wall_clock))
            return replayed[-1]

        replay(self.journal, rebuild)
        assert replayed[0].dump() == self.engine.dump()

    def carry_out(self, instructions: Iterable[Instruction]) -> None:
        """Execute instructions; by default do nothing."""

    def _record(self, instructions: list[Instruction]) -> None:
        self.engine.validate()
        problems = of_type(ReportProblem, instructions)
        assert [each for each in problems if each.subject in _EVENTS] == []
        self.instructions += instructions
        self.carry_out(instructions)


def reference(name: str) -> PodReference:
    """The reference that instructions carry for a pod made by `make_pod`."""
    return PodReference("default", name, f"uid-{name}")
