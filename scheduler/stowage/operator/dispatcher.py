"""Carries out the engine's instructions and returns the outcomes as events.

Each kind of work has its own worker pool, so that slow Events and status patches never delay a
binding.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import structlog
from cachetools import TTLCache

from stowage.api.events import (
    BindFailed,
    ClaimDeletionFinished,
    ClaimsWritten,
    EvictionFinished,
    VolumesWritten,
)
from stowage.api.instructions import (
    AttemptResult,
    BindByExtender,
    BindClaims,
    BindingConditionsAwaited,
    BindPod,
    BindVolumes,
    ClearNomination,
    ConfigurationApplied,
    ConfigurationFailed,
    ConsultExtenders,
    ConsultOnVictims,
    DeallocateClaim,
    DeleteClaim,
    EmitEvent,
    EvictPod,
    Instruction,
    PatchPodGroupStatus,
    PatchPodStatus,
    PodBound,
    PodGroupAttemptResult,
    PodReference,
    PreemptionAttempted,
    PreemptionFinished,
    ReadPod,
    ReleaseClaims,
    ReportProblem,
    RunPreBind,
    StopPreBind,
)
from stowage.operator import clock
from stowage.operator.attempt_log import log_attempt
from stowage.operator.decisions.recorder import DecisionRecorder
from stowage.operator.extenders.dispatcher import ExtenderDispatcher
from stowage.operator.inbox import Inbox
from stowage.operator.metrics.scheduler_metrics import Metrics
from stowage.operator.writers.binder import Binder
from stowage.operator.writers.claim_releaser import ClaimReleaser, Release
from stowage.operator.writers.claim_writer import ClaimWriter
from stowage.operator.writers.event_recorder import EventRecorder
from stowage.operator.writers.evictor import Evictor
from stowage.operator.writers.pod_group_status import PodGroupStatusWriter
from stowage.operator.writers.pod_reader import PodReader
from stowage.operator.writers.pod_status import PodStatusWriter
from stowage.operator.writers.pre_binder import PreBinder
from stowage.operator.writers.volume_writer import VolumeWriter
from stowage.operator.writers.worker_pool import WorkerPool

if TYPE_CHECKING:
    # Imports OpenTelemetry, which is optional.
    from stowage.operator.tracing.attempt_traces import AttemptTraces

MAX_BINDINGS_IN_FLIGHT = 64
MAX_PRE_BINDS_IN_FLIGHT = 64
MAX_VOLUME_WRITES_IN_FLIGHT = 64
MAX_CLAIM_WRITES_IN_FLIGHT = 64
MAX_CLAIM_RELEASES_IN_FLIGHT = 16
MAX_READS_IN_FLIGHT = 8
MAX_EVICTIONS_IN_FLIGHT = 64

PROBLEM_LOG_INTERVAL_S = 60.0
"""An invalid object may change a hundred times a second; it is logged once per interval."""

MAX_REMEMBERED_PROBLEMS = 1024

Job = TypeVar("Job", RunPreBind, BindVolumes, BindPod)

log = structlog.get_logger("scheduler")


class Writers(msgspec.Struct, frozen=True, kw_only=True):
    """The writers, one for each kind of instruction."""

    pre_binder: PreBinder
    volumes: VolumeWriter
    claims: ClaimWriter
    claim_releaser: ClaimReleaser
    binder: Binder
    pod_reader: PodReader
    pod_status: PodStatusWriter
    pod_group_status: PodGroupStatusWriter
    evictor: Evictor
    events: EventRecorder
    extenders: ExtenderDispatcher
    decisions: DecisionRecorder
    configuration_applied: Callable[[ConfigurationApplied], None]
    configuration_failed: Callable[[ConfigurationFailed], None]


class Dispatcher:
    """Passes instructions to worker pools, the log, metrics and traces; `dispatch` never waits.

    Attributes:
        num_unknown_outcomes: After `close`, the number of pods for which a write may still be on
            its way that takes something: a node, a volume or devices.
    """

    def __init__(
        self,
        inbox: Inbox,
        writers: Writers,
        metrics: Metrics,
        traces: AttemptTraces | None = None,
    ) -> None:
        self._inbox = inbox
        self._writers = writers
        self._metrics = metrics
        self._traces = traces
        self.num_unknown_outcomes = 0
        self._logged_problems: TTLCache[tuple[str, str], None] = TTLCache(
            MAX_REMEMBERED_PROBLEMS, PROBLEM_LOG_INTERVAL_S, timer=clock.monotonic
        )
        self._bindings: WorkerPool[BindPod] = WorkerPool(
            "bindings", MAX_BINDINGS_IN_FLIGHT, self._traced(self._bind), self._answer_unbound
        )
        self._pre_binds: WorkerPool[RunPreBind] = WorkerPool(
            "pre-binds", MAX_PRE_BINDS_IN_FLIGHT, self._traced(self._run_pre_bind)
        )
        self._volume_writes: WorkerPool[BindVolumes] = WorkerPool(
            "volume writes",
            MAX_VOLUME_WRITES_IN_FLIGHT,
            self._traced(self._bind_volumes),
            self._answer_unwritten,
        )
        self._claim_writes: WorkerPool[BindClaims] = WorkerPool(
            "claim writes", MAX_CLAIM_WRITES_IN_FLIGHT, self._bind_claims, self._answer_not_bound
        )
        self._claim_releases: WorkerPool[Release] = WorkerPool(
            "claim releases",
            MAX_CLAIM_RELEASES_IN_FLIGHT,
            self._release,
            self._answer_not_released,
        )
        self._reads: WorkerPool[PodReference] = WorkerPool("reads", MAX_READS_IN_FLIGHT, self._read)
        self._evictions: WorkerPool[EvictPod] = WorkerPool(
            "evictions", MAX_EVICTIONS_IN_FLIGHT, self._evict, self._answer_not_evicted
        )
        self._handlers = self._handlers_by_type()

    def _handlers_by_type(self) -> dict[type[Any], Callable[[Any], None]]:
        writers = self._writers
        return {
            BindPod: self._bindings.add,
            BindByExtender: self._bind_by_extender,
            ConsultExtenders: writers.extenders.evaluate,
            ConsultOnVictims: writers.extenders.review,
            RunPreBind: self._pre_binds.add,
            BindVolumes: self._volume_writes.add,
            BindClaims: self._claim_writes.add,
            ReleaseClaims: self._release_claims,
            DeallocateClaim: self._release_claims,
            DeleteClaim: self._release_claims,
            StopPreBind: self._stop_pre_bind,
            ReadPod: lambda instruction: self._reads.add(instruction.pod),
            EmitEvent: writers.events.emit,
            PatchPodStatus: writers.pod_status.patch,
            ClearNomination: writers.pod_status.clear_nomination,
            EvictPod: self._evictions.add,
            PreemptionAttempted: self._record_preemption,
            PreemptionFinished: self._record_preemption_finished,
            BindingConditionsAwaited: self._metrics.observe_binding_conditions,
            PatchPodGroupStatus: writers.pod_group_status.patch,
            AttemptResult: self._record_attempt,
            PodGroupAttemptResult: self._record_group_attempt,
            PodBound: self._record_bound,
            ReportProblem: self._record_problem,
            ConfigurationApplied: writers.configuration_applied,
            ConfigurationFailed: writers.configuration_failed,
        }

    @property
    def num_unfinished_bindings(self) -> int:
        """Number of pods that have been scheduled and are not bound yet."""
        by_extenders = self._writers.extenders.num_unfinished_bindings
        before = len(self._pre_binds) + len(self._volume_writes) + len(self._claim_writes)
        return len(self._bindings) + before + by_extenders

    @property
    def pools(self) -> Sequence[WorkerPool[Any]]:
        """The workers of all kinds of instructions."""
        writers = self._writers
        return (
            self._bindings,
            self._pre_binds,
            self._volume_writes,
            self._claim_writes,
            self._claim_releases,
            self._reads,
            self._evictions,
            writers.pod_status.pool,
            writers.pod_group_status.pool,
            writers.events.pool,
            *writers.extenders.pools,
        )

    def extender_failure_counts(self) -> Mapping[str, int]:
        """Number of failures of each extender, by URL."""
        return self._writers.extenders.failure_counts()

    def dispatch(self, instructions: Iterable[Instruction]) -> None:
        """Start to carry out the instructions."""
        for instruction in instructions:
            self._handlers[type(instruction)](instruction)

    async def close(self, grace_s: float) -> None:
        """Start nothing more; writes in flight have `grace_s` to end, but those of pod statuses.

        Sets `num_unknown_outcomes`.
        """
        await self._pre_binds.close(0)
        await self._reads.close(0)
        await self._writers.pod_status.close(0)
        await self._writers.pod_group_status.close(0)
        # Concurrently, because the next leader waits for all of them.
        taking = asyncio.gather(
            self._bindings.close(grace_s),
            self._volume_writes.close(grace_s),
            self._claim_writes.close(grace_s),
            self._writers.extenders.close(grace_s),
        )
        await asyncio.gather(
            taking,
            # Writes of claims wait for them.
            self._claim_releases.close(grace_s),
            self._evictions.close(grace_s),
            self._writers.events.close(grace_s),
        )
        self.num_unknown_outcomes = sum(await taking)

    def _traced(self, work: Callable[[Job], Awaitable[None]]) -> Callable[[Job], Awaitable[None]]:
        """`work`, whose requests belong to the trace of the pod's attempt."""
        return work if self._traces is None else self._traces.within(work)

    def _record_attempt(self, attempt: AttemptResult) -> None:
        self._metrics.observe_attempt(attempt)
        if self._traces is not None:
            self._traces.attempt_ended(attempt)
        log_attempt(attempt, self._writers.decisions.record(attempt))

    def _record_group_attempt(self, attempt: PodGroupAttemptResult) -> None:
        self._metrics.observe_group_attempt(attempt)
        log.info(
            "pod group attempted",
            group=f"{attempt.namespace}/{attempt.name}",
            result=attempt.result,
            pods=attempt.num_pods,
            fitting=attempt.num_fitting,
            message=attempt.message,
        )

    def _record_preemption(self, attempted: PreemptionAttempted) -> None:
        self._metrics.observe_preemption(attempted)
        if attempted.node_name:
            log.info(
                "preempting",
                pod=attempted.pod.key,
                node=attempted.node_name,
                victims=attempted.num_victims,
            )

    def _record_preemption_finished(self, finished: PreemptionFinished) -> None:
        self._metrics.observe_preemption_finished(finished)
        write = log.warning if finished.is_error else log.info
        write(
            "preemption failed" if finished.is_error else "preempted",
            pod=finished.pod.key,
            node=finished.node_name,
        )

    def _record_problem(self, problem: ReportProblem) -> None:
        self._metrics.observe_problem()
        key = (problem.subject, problem.text)
        if key not in self._logged_problems:
            self._logged_problems[key] = None
            log.warning("problem", subject=problem.subject, text=problem.text)

    def _record_bound(self, bound: PodBound) -> None:
        self._writers.pod_status.forget(bound.pod.uid)
        self._metrics.observe_bound(bound)
        if self._traces is not None:
            self._traces.pod_bound(bound)

    async def _bind(self, instruction: BindPod) -> None:
        await self._writers.pod_status.cancel_and_wait(instruction.pod.uid)
        started = clock.timer()
        outcome = await self._writers.binder.bind(instruction)
        status = "Error" if isinstance(outcome, BindFailed) else "Success"
        self._metrics.observe_bind(instruction.pod.uid, status, clock.timer() - started)
        if isinstance(outcome, BindFailed):
            log.warning(
                "pod not bound",
                pod=instruction.pod.key,
                node=instruction.node_name,
                error=outcome.message,
            )
        self._inbox.put(outcome)

    async def _answer_unbound(self, instruction: BindPod, fault: Exception) -> None:
        pod, node_name = instruction.pod, instruction.node_name
        self._inbox.put(await self._writers.binder.outcome_after_fault(pod, node_name, fault))

    def _bind_by_extender(self, instruction: BindByExtender) -> None:
        self._writers.pod_status.forget(instruction.pod.uid)
        self._writers.extenders.bind(instruction)

    async def _run_pre_bind(self, instruction: RunPreBind) -> None:
        outcome = await self._writers.pre_binder.run(instruction)
        if outcome is not None:
            self._inbox.put(outcome)

    async def _bind_volumes(self, instruction: BindVolumes) -> None:
        outcome = await self._writers.volumes.write(instruction)
        if outcome is None:
            return
        if outcome.error:
            log.warning("volumes not bound", pod=instruction.pod.key, error=outcome.error)
        self._inbox.put(outcome)

    async def _answer_unwritten(self, instruction: BindVolumes, fault: Exception) -> None:
        self._inbox.put(VolumesWritten(instruction.pod.uid, instruction.number, error=repr(fault)))

    def _release_claims(self, instruction: Release) -> None:
        self._writers.claim_releaser.announce(instruction)
        self._claim_releases.add(instruction)

    async def _release(self, instruction: Release) -> None:
        outcome = await self._writers.claim_releaser.release(instruction)
        if outcome is not None:
            self._inbox.put(outcome)

    async def _answer_not_released(self, instruction: Release, fault: Exception) -> None:
        if isinstance(instruction, DeleteClaim):
            self._inbox.put(ClaimDeletionFinished(instruction.claim, repr(fault)))

    async def _bind_claims(self, instruction: BindClaims) -> None:
        # A reservation that an earlier attempt gives back must not go after it is made again.
        await self._writers.claim_releaser.wait_for_releases(instruction.pod)
        outcome = await self._writers.claims.write(instruction)
        if outcome.error:
            log.warning("claims not written", pod=instruction.pod.key, error=outcome.error)
        self._inbox.put(outcome)

    async def _answer_not_bound(self, instruction: BindClaims, fault: Exception) -> None:
        self._inbox.put(ClaimsWritten(instruction.pod.uid, instruction.number, error=repr(fault)))

    def _stop_pre_bind(self, instruction: StopPreBind) -> None:
        uid = instruction.pod.uid
        self._pre_binds.drop_waiting(lambda job: job.pod.uid == uid)
        self._volume_writes.drop_waiting(lambda job: job.pod.uid == uid)
        self._writers.pre_binder.stop(instruction.pod)
        self._writers.volumes.stop(instruction.pod)
        self._writers.claims.stop(instruction.pod)

    async def _evict(self, instruction: EvictPod) -> None:
        outcome = await self._writers.evictor.evict(instruction)
        if outcome.error:
            log.warning("pod not evicted", pod=instruction.victim.key, error=outcome.error)
        self._inbox.put(outcome)

    async def _answer_not_evicted(self, instruction: EvictPod, fault: Exception) -> None:
        preemptor_uid, victim = instruction.preemptor.uid, instruction.victim
        self._inbox.put(EvictionFinished(preemptor_uid, victim, error=repr(fault)))

    async def _read(self, pod: PodReference) -> None:
        event = await self._writers.pod_reader.read(pod)
        if event is not None:
            self._inbox.put(event)
