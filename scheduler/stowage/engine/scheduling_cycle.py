"""The scheduling cycle of one pod: choose a node, assume the pod there, reserve and permit."""

from __future__ import annotations

from msgspec.structs import replace

from stowage.api.instructions import AttemptResult
from stowage.api.interruptible import Interruptible
from stowage.api.status import error
from stowage.engine.binding.failure import emit_instructions
from stowage.engine.binding.steps import run_permit, run_reserve, run_step
from stowage.engine.extenders.consulting import (
    consult_extenders,
    extender_answers,
    victim_review,
)
from stowage.engine.preemption.evictions import start_preemption
from stowage.engine.scheduling import (
    ExtendersNeeded,
    Failed,
    RefusalCache,
    Scheduled,
    SchedulingOutcome,
    SchedulingRequest,
    SchedulingResult,
    Unschedulable,
    VictimReviewNeeded,
    scheduling_steps,
)
from stowage.engine.scheduling_failure import (
    Failure,
    failed_scheduling_event,
    handle_scheduling_failure,
)
from stowage.engine.state.attempt import Attempt
from stowage.engine.state.bindings import BindingCycle
from stowage.engine.state.engine_state import EngineState
from stowage.framework import CycleState
from stowage.queue.queued_pod import QueuedPod
from stowage.state.pods.pod_info import PodInfo

SLOW_CYCLE_S = 0.1
"""A slower cycle is reported with its steps; upstream: ``utiltrace`` in ``schedulePod``."""


def skip_pod_schedule(state: EngineState, info: PodInfo) -> bool:
    """Drop a pod that is being deleted, has a node, or names a scheduler that is no profile here.

    ``skipPodSchedule`` of v1.36.
    """
    is_placed = state.cache.get_pod(info.uid) is not None
    is_ours = info.scheduler_name in state.frameworks
    if is_ours and not is_placed and not info.terminating:
        return False
    if is_ours and info.terminating:
        message = f"skip schedule deleting pod: {info.key}"
        state.outbox.emit(failed_scheduling_event(info, message))
    state.queue.done(info.uid)
    return True


def scheduling_cycle(
    state: EngineState, attempt: Attempt, now: float
) -> Interruptible[BindingCycle | None]:
    """Choose a node, assume the pod there, reserve and permit; ``schedulingCycle`` of v1.36.

    Returns:
        The binding cycle to start; None if the pod waits for extenders or is back in the queue.
    """
    # 3.1 Choose a node.
    cycle_state = state.new_cycle_state(attempt.info.uid)
    outcome = yield from _choose_node(state, attempt, cycle_state)
    # 3.2 The choice depends on extenders that have not answered: ask them.
    if isinstance(outcome, ExtendersNeeded | VictimReviewNeeded):
        consult_extenders(state, attempt, outcome)
        return None
    move_search_start(state, outcome)
    duration_s = state.timer() - attempt.started
    result = attempt_result(state, attempt.queued, outcome, duration_s)
    if duration_s > SLOW_CYCLE_S:
        result = replace(result, steps=cycle_state.durations(attempt.started))
    state.outbox.emit(result)
    # 3.3 No node takes the pod: evict victims if that helps, and requeue it.
    if not isinstance(outcome, Scheduled):
        emit_instructions(state, cycle_state)
        fail_scheduling_cycle(state, attempt, outcome, now)
        return None
    if attempt.info.pod_class.has_many_terms:
        yield
    # 3.4 Assume the pod on the node.
    cycle = assume(state, attempt, outcome, cycle_state)
    # 3.5 Reserve and 3.6 permit. If either fails, the pod is forgotten and requeued.
    reserved = run_step(state, cycle, run_reserve, now)
    if not reserved or not run_step(state, cycle, run_permit, now):
        return None
    return cycle


def move_search_start(state: EngineState, outcome: SchedulingResult) -> None:
    """Let the next limited search begin where this one ended; ``nextStartNodeIndex`` of v1.36."""
    num_nodes = state.cache.snapshot().num_nodes
    if num_nodes and not isinstance(outcome, Failed):
        state.next_start = (state.next_start + outcome.searched_nodes) % num_nodes


def take_turn(state: EngineState, info: PodInfo, outcome: Scheduled) -> None:
    """Count a choice among scored nodes, for ties that are broken in turn."""
    if outcome.scores is not None:
        state.turns[info.scheduler_name] += 1


def fail_scheduling_cycle(
    state: EngineState, attempt: Attempt, outcome: Unschedulable | Failed, now: float
) -> None:
    """Start the preemption that PostFilter decided on, if any, and requeue the pod."""
    info = attempt.info
    if isinstance(outcome, Failed):
        state.errors.count(outcome.status, state.frameworks[info.scheduler_name], "predicate")
        failure = Failure(outcome.status.message, is_error=True)
    else:
        if outcome.preemption is not None:
            start_preemption(state, info, outcome.preemption, now)
        failure = Failure(
            outcome.message,
            rejected_by=outcome.requeueing_plugins,
            pending=outcome.pending_plugins,
            nominated_node_name=outcome.nominated_node_name,
        )
    handle_scheduling_failure(state, attempt.queued, info, failure, now)


def assume(
    state: EngineState, attempt: Attempt, outcome: Scheduled, cycle_state: CycleState
) -> BindingCycle:
    """Count the pod on its node from now on, before it is bound; ``assume`` of v1.36."""
    take_turn(state, attempt.info, outcome)
    return place_on(state, attempt, outcome.node_name, cycle_state)


def place_on(
    state: EngineState, attempt: Attempt, node_name: str, cycle_state: CycleState
) -> BindingCycle:
    """Assume the pod on a node."""
    info = attempt.info
    state.cache.assume_pod(info, node_name)
    # A group that is placed a second time has no nomination in memory any more.
    nominated = state.queue.nominator.node_of(info.uid) or info.nominated_node_name
    state.queue.nominator.remove(info.uid)
    cycle = BindingCycle(
        attempt.queued,
        info,
        node_name,
        state.frameworks[info.scheduler_name],
        cycle_state,
        state.extenders.binder_of(info.spec),
        state.last_decision,
        info.generation,
        left_node="" if nominated == node_name else nominated,
    )
    state.bindings.add(cycle)
    return cycle


def _choose_node(
    state: EngineState, attempt: Attempt, cycle_state: CycleState
) -> Interruptible[SchedulingOutcome]:
    """Run the scheduling algorithm, unless the extenders have failed."""
    consultation = attempt.consultation
    if consultation is not None and consultation.answer is not None and consultation.answer.error:
        return Failed(error(consultation.answer.error))
    request = scheduling_request(state, attempt, cycle_state)
    return (yield from choose_node(state, request, state.refusals))


def scheduling_request(
    state: EngineState, attempt: Attempt, cycle_state: CycleState
) -> SchedulingRequest:
    """The request to choose a node for the pod in the cluster as it is now."""
    consultation = attempt.consultation
    info = _with_nomination(state, attempt.info)
    framework = state.frameworks[info.scheduler_name]
    cycle_state.mark("Snapshot" if consultation is None else "Extenders")
    return SchedulingRequest(
        framework,
        state.cache.snapshot(),
        info,
        cycle_state,
        state.ties,
        nominated=state.queue.nominator,
        percentage=framework.profile.percentage_of_nodes_to_score,
        start=state.next_start,
        takes_first=state.takes_first(framework),
        turn=state.turns[info.scheduler_name],
        extender_answers=extender_answers(state, info, consultation),
        reviews_victims=bool(state.extenders and state.extenders.to_review(info.spec)),
        victim_review=victim_review(consultation),
    )


def choose_node(
    state: EngineState, request: SchedulingRequest, refusals: RefusalCache | None
) -> Interruptible[SchedulingOutcome]:
    """Run the scheduling algorithm in steps; an exception fails this pod and no other.

    Raises:
        MemoryError: Outside of plugins.
    """
    try:
        return (yield from scheduling_steps(request, refusals))
    except MemoryError:
        raise  # no pod is at fault
    except Exception as fault:
        text = f"scheduling cycle: {fault!r}"
        state.outbox.report(f"Pod {request.pod.key}", text)
        return Failed(error(text))


def _with_nomination(state: EngineState, info: PodInfo) -> PodInfo:
    """The pod with the nomination made here, which the watch may not have shown yet."""
    nominated = state.queue.nominator.node_of(info.uid)
    if nominated is None or nominated == info.nominated_node_name:
        return info
    return replace(info, nominated_node_name=nominated)


def attempt_result(
    state: EngineState, queued: QueuedPod, outcome: SchedulingResult, duration_s: float
) -> AttemptResult:
    """The attempt's outcome for log, metrics and the record of decisions."""
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
            configuration=state.configuration,
            decision=state.next_decision(),
            best=outcome.best_nodes(),
            first_fit=outcome.feasible.first_fit,
        )
    error_result = AttemptResult(
        pod=info.reference,
        result="error",
        scheduler_name=info.scheduler_name,
        attempts=queued.attempts,
        duration_s=duration_s,
        configuration=state.configuration,
        decision=state.next_decision(),
    )
    if isinstance(outcome, Failed):
        return replace(error_result, message=outcome.status.message)
    return replace(
        error_result,
        result="unschedulable",
        message=outcome.message,
        evaluated_nodes=outcome.evaluated_nodes,
        unschedulable_plugins=tuple(sorted(outcome.unschedulable_plugins)),
        nominated_node_name=outcome.nominated_node_name or "",
        reason_counts=dict(outcome.diagnosis.reason_counts),
    )
