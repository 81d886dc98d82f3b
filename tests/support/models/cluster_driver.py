"""Drives an engine beside a model of the API server, which executes the instructions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random

from stowage.api.events import Event
from stowage.api.instructions import Instruction
from stowage.engine import Engine
from tests.support.engines import default_engine
from tests.support.models.engine_driver import EngineDriver
from tests.support.models.model_cluster import ModelCluster
from tests.support.models.model_storage import ModelStorage


class ClusterDriver(EngineDriver):
    """An engine, a model cluster and optional model storage; checks invariants after each call.

    Args:
        make: See `EngineDriver`.
        rng: Breaks ties between nodes; by default the first node wins.
        storage: Executes the instructions about claims and volumes.
        checks_capacity: Whether overcommitted nodes are an error.
    """

    def __init__(
        self,
        make: Callable[..., Engine] = default_engine,
        *,
        rng: Random | None = None,
        storage: ModelStorage | None = None,
        checks_capacity: bool = True,
    ) -> None:
        super().__init__(make, rng.randrange if rng is not None else lambda _num_ties: 0)
        self.cluster = ModelCluster()
        self._checks_capacity = checks_capacity
        self.storage = storage

    def deliver(self, *, watches: str = "pending assigned") -> list[Instruction]:
        """Pass the engine all pending answers and the pending events of these watches."""
        return self.handle(*self.cluster.take_events(watches))

    def deliver_storage(self, *, watch: bool = True, answers: bool = True) -> list[Instruction]:
        """Pass the engine the pending events and answers about claims and volumes."""
        assert self.storage is not None
        events: list[Event] = self.storage.take_answers() if answers else []
        return self.handle(*events, *(self.storage.take_watch() if watch else ()))

    def carry_out(self, instructions: Iterable[Instruction]) -> None:
        """Execute instructions in the models, and check the models."""
        self.cluster.carry_out(instructions)
        if self.storage is not None:
            self.storage.carry_out(instructions)
        self.cluster.check_bindings()
        if self._checks_capacity:
            self.cluster.check_capacity()

    def end_faults(self) -> None:
        """Let no further request fail."""
        cluster = self.cluster
        cluster.lost_answers = cluster.refusals = cluster.failing_evictions = 0
        if self.storage is not None:
            self.storage.refusals = 0
