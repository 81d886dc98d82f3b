"""One scheduling attempt: a pod popped from the queue gets a node, or a reason why not."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from stowage.api.instructions import AttemptResult, EmitEvent
from stowage.api.status import error
from stowage.engine.binding import BindingCycle
from stowage.engine.binding.commitments import start_binding
from stowage.engine.extenders.consultations import Consultation
from stowage.engine.extenders.consulting import (
    consulted,
    not_consulted,
    reviewed,
    start_consultation,
    start_review,
)
from stowage.engine.failure import Failure, give_back_to_queue
from stowage.engine.machine import Machine
from stowage.engine.preemption.evictions import make_room
from stowage.engine.scheduling import (
    ConsultationNeeded,
    Consulted,
    Failed,
    NodeSearch,
    ReviewNeeded,
    Scheduled,
    SchedulingResult,
    SchedulingStep,
    Unschedulable,
    step_pod,
)
from stowage.framework import CycleState
from stowage.queue.queued_pod import QueuedPod
from stowage.state.pods.pod_info import PodInfo


def attempt_pod(machine: Machine, queued: QueuedPod, now: float) -> None:
    """Run one scheduling cycle for a pod in flight; ``scheduleOnePod`` of v1.36."""
    if not _skip(machine, queued.info):
        attempt = _Attempt(queued, queued.info, machine.new_cycle(), machine.timer())
        step = _decide(machine, attempt, not_consulted(machine, queued.info))
        _go_on(machine, attempt, step, now)


def resume_pod(machine: Machine, consultation: Consultation, now: float) -> None:
    """Run the cycle again for a pod that the extenders have answered, or now have a place for."""
    queued, info, answer = consultation.queued, consultation.info, consultation.answer
    if _skip(machine, info):
        return
    was_asked = answer is not None or consultation.reviews
    started = consultation.started if was_asked else machine.timer()
    attempt = _Attempt(queued, info, machine.new_cycle(), started, consultation)
    step: SchedulingStep
    if answer is not None and answer.error:
        step = Failed(error(answer.error))
    else:
        step = _decide(machine, attempt, consulted(machine, consultation))
    _go_on(machine, attempt, step, now)


class _Attempt(msgspec.Struct, frozen=True):
    """A pod being attempted; `info` may be newer than the queue's, `started` is timer seconds.

    `consultation` is what extenders have had a say in so far; None if they were not asked.
    """

    queued: QueuedPod
    info: PodInfo
    state: CycleState
    started: float
    consultation: Consultation | None = None


def _go_on(machine: Machine, attempt: _Attempt, step: SchedulingStep, now: float) -> None:
    """Do what follows from the cycle: consult extenders, bind, or give back."""
    queued, info = attempt.queued, attempt.info
    if isinstance(step, ConsultationNeeded):
        start_consultation(machine, queued, info, step, attempt.started)
        return
    if isinstance(step, ReviewNeeded):
        start_review(machine, queued, info, step, attempt.started, attempt.consultation)
        return
    machine.emit(_attempt_result(machine, queued, step, machine.timer() - attempt.started))
    if isinstance(step, Scheduled):
        machine.next_start_row = step.next_start_row
        framework = machine.frameworks[info.scheduler_name]
        binder = machine.extenders.binder_of(info.spec)
        cycle = BindingCycle(
            queued, info, step.node_name, framework, attempt.state, extender=binder
        )
        machine.cache.assume_pod(info, step.node_name)
        machine.queue.nominator.remove(info.uid)
        start_binding(machine, cycle, now)
    else:
        if isinstance(step, Failed):
            machine.note_error(step.status, machine.frameworks[info.scheduler_name], "predicate")
        if isinstance(step, Unschedulable) and step.preemption is not None:
            make_room(machine, info, step.preemption, now)
        give_back_to_queue(machine, queued, info, _failure(step), now)


def _skip(machine: Machine, info: PodInfo) -> bool:
    """Whether there is nothing to decide; the pod is done then.

    It is being deleted, has a node already, or names a scheduler that is not ours.
    """
    is_placed = machine.cache.get_pod(info.uid) is not None
    is_ours = info.scheduler_name in machine.frameworks
    if is_ours and not is_placed and not info.terminating:
        return False
    if is_ours and info.terminating:
        note = f"skip schedule deleting pod: {info.key}"
        machine.emit(
            EmitEvent(
                info.reference,
                "Warning",
                "FailedScheduling",
                "Scheduling",
                note,
                info.scheduler_name,
                resource_version=info.resource_version,
            )
        )
    machine.queue.done(info.uid)
    return True


def _decide(machine: Machine, attempt: _Attempt, said: Consulted | None) -> SchedulingStep:
    """The cycle's answer; a fault in it is an error of this pod and of no other."""
    info, state = _with_nomination(machine, attempt.info), attempt.state
    framework = machine.frameworks[info.scheduler_name]
    search = NodeSearch(
        nominated=machine.queue.nominator,
        percentage=framework.profile.percentage_of_nodes_to_score,
        start_row=machine.next_start_row,
        consulted=said,
        reviews_victims=bool(machine.extenders and machine.extenders.to_review(info.spec)),
        review=None if attempt.consultation is None else reviewed(attempt.consultation),
        refusals=machine.refusals,
    )
    snapshot = machine.cache.snapshot()
    try:
        return step_pod(framework, snapshot, info, state, machine.choose, search)
    except Exception as fault:
        machine.problem(f"Pod {info.key}", f"scheduling cycle: {fault!r}")
        return Failed(error(f"scheduling cycle: {fault!r}"))


def _with_nomination(machine: Machine, info: PodInfo) -> PodInfo:
    """The pod with the nomination made here, should the watch not have shown it yet."""
    nominated = machine.queue.nominator.node_of(info.uid)
    if nominated is None or nominated == info.nominated_node_name:
        return info
    return replace(info, nominated_node_name=nominated)


def _attempt_result(
    machine: Machine, queued: QueuedPod, outcome: SchedulingResult, duration_s: float
) -> AttemptResult:
    """What the shell logs and counts."""
    info = queued.info
    if isinstance(outcome, Scheduled):
        return AttemptResult(
            pod=info.reference,
            result="scheduled",
            scheduler_name=info.scheduler_name,
            attempts=queued.attempts,
            duration_s=duration_s,
            node_name=outcome.node_name,
            evaluated_nodes=outcome.evaluated_nodes,
            feasible_nodes=outcome.feasible_nodes,
            configuration=machine.configuration,
        )
    error_result = AttemptResult(
        pod=info.reference,
        result="error",
        scheduler_name=info.scheduler_name,
        attempts=queued.attempts,
        duration_s=duration_s,
        configuration=machine.configuration,
    )
    if isinstance(outcome, Failed):
        return replace(error_result, message=outcome.status.message)
    return replace(
        error_result,
        result="unschedulable",
        message=outcome.message,
        evaluated_nodes=outcome.evaluated_nodes,
        unschedulable_plugins=tuple(sorted(outcome.unschedulable_plugins)),
    )


def _failure(outcome: Unschedulable | Failed) -> Failure:
    if isinstance(outcome, Failed):
        return Failure(outcome.status.message, is_error=True)
    return Failure(
        outcome.message,
        rejected_by=outcome.plugins_to_hear,
        pending=outcome.pending_plugins,
        nominated_node_name=outcome.nominated_node_name,
    )
