"""A play: an engine with a few plugins of the story's own, its clock, and what it said."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from stowage.api.events import Event, NodeSeen, PendingPodSeen
from stowage.api.instructions import Instruction, PodReference
from stowage.engine import Engine, Journal, make_engine
from stowage.framework import Handle
from stowage.framework.extension_points import Plugin

from tests.support.builders import make_node, make_pod
from tests.support.engines import of_type
from tests.support.small_plugins import framework_of

T = TypeVar("T")

SCHEDULER = "test"
"""The profile of `framework_of`."""


def pod_of(name: str) -> PodReference:
    """How instructions name a pod of the play."""
    return PodReference("default", name, f"uid-{name}")


class Play:
    """Everything the engine answers is kept in `said`, until it is asked for by kind."""

    def __init__(
        self, *plugins: Plugin, handle: Handle | None = None, journal: Journal | None = None
    ) -> None:
        self.engine: Engine = make_engine(
            [framework_of(*plugins)], lambda _ties: 0, journal=journal
        )
        self.now = 0.0
        self.said: list[Instruction] = []
        self.posted: list[Event] = []
        if handle is not None:
            handle.connect(self.posted.append, self.engine.waiting_pods)

    def see(self, *events: Event) -> None:
        """Events arrive."""
        self._keep(self.engine.handle(events, self.now))

    def nodes(self, *names: str) -> None:
        """Nodes join."""
        self.see(*(NodeSeen(make_node(name)) for name in names))

    def pods(self, *names: str, **spec: object) -> None:
        """Pods are created."""
        pods = [make_pod(name, scheduler_name=SCHEDULER, **spec) for name in names]  # type: ignore[arg-type]
        self.see(*map(PendingPodSeen, pods))

    def schedule(self, budget: int = 10) -> None:
        """Pods are tried."""
        self._keep(self.engine.schedule(self.now, budget))

    def later(self, seconds: float) -> None:
        """Time passes."""
        self.now += seconds
        self.see()

    def hear_plugins(self) -> None:
        """What plugins asked for through the handle arrives."""
        events, self.posted[:] = tuple(self.posted), []
        self.see(*events)

    def take(self, kind: type[T]) -> list[T]:
        """What was said of this kind since it was last asked for."""
        found = of_type(kind, self.said)
        self.said = [each for each in self.said if not isinstance(each, kind)]
        return found

    def state_of(self, name: str) -> str:
        """Where the queue has a pod; empty if it does not."""
        for place, pods in self.engine.dump()["queue"].items():
            if any(pod["pod"] == f"default/{name}" for pod in pods):
                return str(place)
        return ""

    def _keep(self, answer: Iterable[Instruction]) -> None:
        self.said += answer
        self.engine.validate()
