"""The parts of the engine, held together; no behaviour of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stowage.api.config.extenders import NO_EXTENDERS, Extenders
from stowage.api.instructions import Instruction, PodReference, ReportProblem
from stowage.api.status import Code, Status
from stowage.engine.binding import BindingCycle, WaitingPods
from stowage.engine.binding.volume_waits import Stages
from stowage.engine.extenders.consultations import Consultations
from stowage.engine.pod_statuses import KnownStatuses
from stowage.engine.scheduling import KnownRefusals
from stowage.engine.settings import Configure, not_configurable
from stowage.framework import CycleState, Framework, Timings
from stowage.queue.scheduling_queue import SchedulingQueue
from stowage.state.cache import ClusterCache

if TYPE_CHECKING:
    from stowage.engine.preemption.evictions import PreemptionUnderWay


@dataclass(slots=True)
class Machine:
    """What the engine owns.

    Attributes:
        frameworks: One per profile, by scheduler name.
        extenders: Who has a say besides the plugins.
        bindings: Pods that have a node and are not bound yet, by UID.
        consultations: Pods that wait for extenders, by UID.
        stages: Pods being bound whose claims are not bound yet.
        unconfirmed: Pods the API server has bound and the watch has not shown yet, by UID, with
            the time of the answer; in order of that time.
        statuses: What the API server says of pending pods.
        configuration: Hash of the configuration in force; empty if nobody gave one.
        configure: Reads another one.
        timings: Takes durations of sampled cycles; None takes none.
        permit_since: When pods began to wait at Permit, by UID.
        volume_errors: How often volumes were the reason of an error, by stage: predicate, assume,
            bind.
        next_start_row: Where the next search starts if it is limited by
            ``percentageOfNodesToScore``, so that all nodes have their turn.
        preemptions: Evictions under way, by the UID of the pod they make room for.
        last_victims: Who waits for the end of a victim, preemptors by its UID, in order.
        released: UIDs of preemptors that need not wait any more, some of which are gated still,
            in order.
        awaiting: Whom the end of a victim is to bring back, pods by its UID,
            in order.
        refusals: What pods that fit nowhere were told about the cluster as it is.
        outbox: Instructions gathered by the call in progress.
    """

    frameworks: Mapping[str, Framework]
    cache: ClusterCache
    queue: SchedulingQueue
    choose: Callable[[int], int]
    timer: Callable[[], float]
    extenders: Extenders = NO_EXTENDERS
    bindings: dict[str, BindingCycle] = field(default_factory=dict)
    consultations: Consultations = field(init=False)
    waiting: WaitingPods = field(default_factory=WaitingPods)
    stages: Stages = field(default_factory=Stages)
    unconfirmed: dict[str, tuple[PodReference, float]] = field(default_factory=dict)
    statuses: KnownStatuses = field(default_factory=KnownStatuses)
    configuration: str = ""
    configure: Configure = not_configurable
    timings: Timings | None = None
    permit_since: dict[str, float] = field(default_factory=dict)
    volume_errors: Counter[str] = field(default_factory=Counter)
    plugin_failures: Counter[str] = field(default_factory=Counter)
    next_start_row: int = 0
    preemptions: dict[str, PreemptionUnderWay] = field(default_factory=dict)
    last_victims: dict[str, dict[str, None]] = field(default_factory=dict)
    released: dict[str, None] = field(default_factory=dict)
    awaiting: dict[str, dict[str, None]] = field(default_factory=dict)
    refusals: KnownRefusals = field(default_factory=KnownRefusals)
    outbox: list[Instruction] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.consultations = Consultations(self.extenders.max_consultations)

    def new_cycle(self) -> CycleState:
        """The state of a cycle that begins; it is timed if it is its turn."""
        timings = self.timings
        return CycleState(timings if timings is not None and timings.is_sampled() else None)

    def note_error(self, status: Status, framework: Framework, stage: str) -> None:
        """Count an error of a plugin, and at a stage if it is one of volumes."""
        if status.code is Code.ERROR and status.plugin:
            self.plugin_failures[status.plugin] += 1
        if status.code is Code.ERROR and framework.has_staged_pre_bind(status.plugin):
            self.volume_errors[stage] += 1

    def emit(self, instruction: Instruction) -> None:
        """Add to the answer of the call in progress."""
        self.outbox.append(instruction)

    def note_leaving(self, uid: str) -> None:
        """A placed pod is gone or terminating: whoever waits for that need not any more."""
        waiting = self.last_victims.get(uid) if self.last_victims else None
        if waiting is None:
            return
        self.released.update(waiting)
        for preemptor in [each for each in waiting if self.preemptions[each].is_answered]:
            del self.preemptions[preemptor], waiting[preemptor]
        if not waiting:
            del self.last_victims[uid]

    def problem(self, subject: str, text: str) -> None:
        """Report something that is wrong and stops nothing else."""
        self.outbox.append(ReportProblem(subject, text))

    def take_outbox(self) -> list[Instruction]:
        """The answer of the call in progress, which starts anew."""
        for text in self.queue.drain_problems():
            self.problem("scheduling queue", text)
        answer, self.outbox = self.outbox, []
        return answer
