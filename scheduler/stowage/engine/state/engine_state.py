"""The state of the engine, held together; the parts keep themselves consistent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from stowage.api.config.extenders import NO_EXTENDERS, Extenders
from stowage.engine.scheduling import RefusalCache, TieBreaker
from stowage.engine.settings import Configure, not_configurable
from stowage.engine.state.bindings import Bindings
from stowage.engine.state.consultations import Consultations
from stowage.engine.state.error_counts import ErrorCounts
from stowage.engine.state.outbox import Outbox
from stowage.engine.state.pod_statuses import PodStatuses
from stowage.engine.state.preemptions import Preemptions
from stowage.framework import CycleState, Framework, Timings
from stowage.queue.scheduling_queue import SchedulingQueue
from stowage.state.cache import ClusterCache


@dataclass(slots=True)
class EngineState:
    """Everything the engine knows.

    Attributes:
        frameworks: One per profile, by scheduler name.
        queue: The pods that wait to be scheduled.
        ties: Picks one of several equally good nodes.
        timer: A clock for durations.
        extenders: The configured extenders.
        cache: The cluster.
        bindings: Pods that are assumed and not bound yet.
        preemptions: Evictions in progress.
        consultations: Pods that wait for extenders.
        statuses: The statuses of pending pods at the API server.
        refusals: Refusals by equivalence class.
        errors: Error counts.
        outbox: The instructions of the call in progress.
        timings: Records durations of sampled cycles; None records none.
        configuration: Hash of the active configuration; empty if it is not known.
        configure: Makes frameworks and queue settings from a configuration.
        next_start_row: Where the next search starts if ``percentageOfNodesToScore`` limits it, so
            that every node gets its turn.
    """

    frameworks: Mapping[str, Framework]
    queue: SchedulingQueue
    ties: TieBreaker
    timer: Callable[[], float]
    extenders: Extenders = NO_EXTENDERS
    cache: ClusterCache = field(default_factory=ClusterCache)
    bindings: Bindings = field(default_factory=Bindings)
    preemptions: Preemptions = field(default_factory=Preemptions)
    consultations: Consultations = field(init=False)
    statuses: PodStatuses = field(default_factory=PodStatuses)
    refusals: RefusalCache = field(default_factory=RefusalCache)
    errors: ErrorCounts = field(default_factory=ErrorCounts)
    outbox: Outbox = field(default_factory=Outbox)
    timings: Timings | None = None
    configuration: str = ""
    configure: Configure = not_configurable
    next_start_row: int = 0

    def __post_init__(self) -> None:
        self.consultations = Consultations(self.extenders.max_consultations)

    def new_cycle_state(self) -> CycleState:
        """The state of a cycle that begins; sampled cycles get timings."""
        timings = self.timings
        return CycleState(timings if timings is not None and timings.is_sampled() else None)
