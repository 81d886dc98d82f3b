"""The state of the engine, held together; the parts keep themselves consistent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from cachetools import LRUCache

from stowage.api.config.extenders import NO_EXTENDERS, Extenders
from stowage.api.config.feature_gates import FeatureGates
from stowage.engine.scheduling import RefusalCache, TieBreaker
from stowage.engine.settings import Configure, not_configurable
from stowage.engine.state.bindings import Bindings
from stowage.engine.state.consultations import Consultations
from stowage.engine.state.error_counts import ErrorCounts
from stowage.engine.state.group_evictions import GroupEvictions
from stowage.engine.state.outbox import Outbox
from stowage.engine.state.pod_group_statuses import PodGroupStatuses
from stowage.engine.state.pod_statuses import PodStatuses
from stowage.engine.state.preemptions import Preemptions
from stowage.engine.state.time_limits import TimeLimits
from stowage.engine.state.wall_clock import WallClock
from stowage.framework import CycleState, Framework, Timings
from stowage.queue.scheduling_queue import SchedulingQueue
from stowage.state.cache import ClusterCache
from stowage.state.devices.features import device_features

_MAX_LEFT_NODES = 4096


@dataclass(slots=True)
class EngineState:
    """Everything the engine knows.

    Attributes:
        frameworks: One per profile, by scheduler name.
        queue: The pods that wait to be scheduled.
        ties: Picks one of several equally good nodes.
        timer: A clock for durations.
        wall_clock: Returns the seconds since the epoch, and keeps what it returned.
        limits: Starts the time limits of plugins, by the timer.
        extenders: The configured extenders.
        cache: The cluster.
        bindings: Pods that are assumed and not bound yet.
        preemptions: Evictions in progress.
        consultations: Pods that wait for extenders.
        group_evictions: Evictions for pod groups in progress.
        group_statuses: The conditions of pod groups at the API server.
        statuses: The statuses of pending pods at the API server.
        refusals: Refusals by equivalence class.
        errors: Error counts.
        outbox: The instructions of the call in progress.
        timings: Records durations of sampled cycles; None records none.
        configuration: Hash of the active configuration; empty if it is not known.
        configure: Makes frameworks and queue settings from a configuration.
        next_start: The position in the search order at which the next search begins if
            ``percentageOfNodesToScore`` limits it, so that every node gets its turn.
        turns: Number of pods of each profile that were placed by scores, by scheduler name.
        left_nodes: UIDs of pods that were deleted or ended on their node; the latest ones. The
            watch of pending pods may still show them.
        last_decision: Number of attempts that have ended; the number of the last one.
    """

    frameworks: Mapping[str, Framework]
    queue: SchedulingQueue
    ties: TieBreaker
    timer: Callable[[], float]
    wall_clock: WallClock
    extenders: Extenders = NO_EXTENDERS
    limits: TimeLimits = field(init=False)
    cache: ClusterCache = field(init=False)
    bindings: Bindings = field(default_factory=Bindings)
    preemptions: Preemptions = field(default_factory=Preemptions)
    consultations: Consultations = field(init=False)
    group_evictions: GroupEvictions = field(default_factory=GroupEvictions)
    group_statuses: PodGroupStatuses = field(default_factory=PodGroupStatuses)
    statuses: PodStatuses = field(default_factory=PodStatuses)
    refusals: RefusalCache = field(default_factory=RefusalCache)
    errors: ErrorCounts = field(default_factory=ErrorCounts)
    outbox: Outbox = field(default_factory=Outbox)
    timings: Timings | None = None
    configuration: str = ""
    configure: Configure = not_configurable
    next_start: int = 0
    turns: Counter[str] = field(default_factory=Counter)
    left_nodes: LRUCache[str, None] = field(default_factory=lambda: LRUCache(_MAX_LEFT_NODES))
    last_decision: int = 0

    def __post_init__(self) -> None:
        self.limits = TimeLimits(self.timer)
        self.cache = ClusterCache(
            device_features(self.gates), pod_level=self.gates.enabled("PodLevelResources")
        )
        self.consultations = Consultations(self.extenders.max_consultations)

    @property
    def gates(self) -> FeatureGates:
        """The feature gates of the process; those of all frameworks."""
        return next(iter(self.frameworks.values())).gates

    def takes_first(self, framework: Framework) -> bool:
        """Whether a search ends at the first feasible node, as nothing tells nodes apart.

        upstream: ``hasScoring`` and ``hasExtenderFilters``.
        """
        return not framework.rates_nodes and not self.extenders.judge_nodes

    def next_decision(self) -> int:
        """The number of the attempt that ends."""
        self.last_decision += 1
        return self.last_decision

    def new_cycle_state(self, uid: str) -> CycleState:
        """The state of the pod's cycle that begins; sampled cycles get timings."""
        timings = None if self.timings is None else self.timings.of_cycle(uid)
        return CycleState(timings, self.timer, self.wall_clock, self.limits.start)
