"""One scheduling attempt of one pod, from the queue to its Binding.

    step                                      function                            where
    1.  take a pod                            next_pod                            here
    2.  skip a pod that needs no node         skip_pod_schedule                   here
    3.  scheduling cycle                      scheduling_cycle                    here
    3.1 choose a node on a snapshot           schedule_pod                        scheduling
          filter                              find_nodes_that_fit_pod             scheduling
          filter by extenders                 find_nodes_that_pass_extenders      scheduling
          score                               prioritize_nodes, select_host       scheduling
    3.2 ask extenders; 1. resumes the attempt consult_extenders                   extenders
    3.3 no node: evict victims, requeue       fail_scheduling_cycle               here
    3.4 assume the pod on the node            assume                              here
    3.5 reserve                               run_reserve                         binding
    3.6 permit                                run_permit                          binding
    4.  binding cycle: pre-bind, bind         binding_cycle                       binding
    failure after 3.4: unreserve, forget      fail_binding_cycle                  binding
    every failure: requeue, tell the owner    handle_scheduling_failure           scheduling_failure

The steps are those of kube-scheduler's ``schedule_one.go``, under its names. Two things differ. The
scheduling cycle does not wait for extenders: it ends with a question, and is repeated with the
answer. The binding cycle does not wait in a goroutine: it is a state machine, and each instruction
to the shell (pre-bind, write volumes, bind) is answered by an event.
"""

from __future__ import annotations

from msgspec.structs import replace

from stowage.api.instructions import AttemptResult
from stowage.api.status import error
from stowage.engine.binding.state_machine import binding_cycle
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
    Scheduled,
    SchedulingOutcome,
    SchedulingRequest,
    SchedulingResult,
    Unschedulable,
    VictimReviewNeeded,
    schedule_pod,
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


def schedule_one(state: EngineState, now: float) -> bool:
    """Attempt the next pod; False if no pod is ready. ``ScheduleOne`` of v1.36."""
    # 1. Take the next pod.
    attempt = next_pod(state, now)
    if attempt is None:
        return False
    # 2. Skip it if it needs no node.
    if skip_pod_schedule(state, attempt.info):
        return True
    # 3. Choose a node, assume the pod there, reserve and permit.
    cycle = scheduling_cycle(state, attempt, now)
    # 4. Bind it; all waiting is left to the state machine of the binding cycle.
    if cycle is not None:
        binding_cycle(state, cycle, now)
    return True


def next_pod(state: EngineState, now: float) -> Attempt | None:
    """The pod that extenders have answered about or have capacity for, else the head of the queue.

    Returns:
        None if no pod is ready.
    """
    consultation = state.consultations.take_ready()
    if consultation is not None:
        started = consultation.started if consultation.was_asked else state.timer()
        return Attempt(consultation.queued, consultation.info, started, consultation)
    queued = state.queue.pop(now)
    return None if queued is None else Attempt(queued, queued.info, state.timer())


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


def scheduling_cycle(state: EngineState, attempt: Attempt, now: float) -> BindingCycle | None:
    """Choose a node, assume the pod there, reserve and permit; ``schedulingCycle`` of v1.36.

    Returns:
        The binding cycle to start; None if the pod waits for extenders or is back in the queue.
    """
    # 3.1 Choose a node.
    cycle_state = state.new_cycle_state()
    outcome = _schedule_pod(state, attempt, cycle_state)
    # 3.2 The choice depends on extenders that have not answered: ask them.
    if isinstance(outcome, ExtendersNeeded | VictimReviewNeeded):
        consult_extenders(state, attempt, outcome)
        return None
    duration_s = state.timer() - attempt.started
    state.outbox.emit(_attempt_result(state, attempt.queued, outcome, duration_s))
    # 3.3 No node takes the pod: evict victims if that helps, and requeue it.
    if not isinstance(outcome, Scheduled):
        fail_scheduling_cycle(state, attempt, outcome, now)
        return None
    # 3.4 Assume the pod on the node.
    cycle = assume(state, attempt, outcome, cycle_state)
    # 3.5 Reserve and 3.6 permit. If either fails, the pod is forgotten and requeued.
    reserved = run_step(state, cycle, run_reserve, now)
    if not reserved or not run_step(state, cycle, run_permit, now):
        return None
    return cycle


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
    info = attempt.info
    state.next_start_row = outcome.next_start_row
    state.cache.assume_pod(info, outcome.node_name)
    state.queue.nominator.remove(info.uid)
    cycle = BindingCycle(
        attempt.queued,
        info,
        outcome.node_name,
        state.frameworks[info.scheduler_name],
        cycle_state,
        state.extenders.binder_of(info.spec),
    )
    state.bindings.add(cycle)
    return cycle


def _schedule_pod(
    state: EngineState, attempt: Attempt, cycle_state: CycleState
) -> SchedulingOutcome:
    """Run the scheduling algorithm; an exception fails this pod and no other."""
    consultation = attempt.consultation
    if consultation is not None and consultation.answer is not None and consultation.answer.error:
        return Failed(error(consultation.answer.error))
    info = _with_nomination(state, attempt.info)
    framework = state.frameworks[info.scheduler_name]
    request = SchedulingRequest(
        framework,
        state.cache.snapshot(),
        info,
        cycle_state,
        state.ties,
        nominated=state.queue.nominator,
        percentage=framework.profile.percentage_of_nodes_to_score,
        start_row=state.next_start_row,
        extender_answers=extender_answers(state, info, consultation),
        reviews_victims=bool(state.extenders and state.extenders.to_review(info.spec)),
        victim_review=victim_review(consultation),
    )
    try:
        return schedule_pod(request, state.refusals)
    except Exception as fault:
        text = f"scheduling cycle: {fault!r}"
        state.outbox.report(f"Pod {info.key}", text)
        return Failed(error(text))


def _with_nomination(state: EngineState, info: PodInfo) -> PodInfo:
    """The pod with the nomination made here, which the watch may not have shown yet."""
    nominated = state.queue.nominator.node_of(info.uid)
    if nominated is None or nominated == info.nominated_node_name:
        return info
    return replace(info, nominated_node_name=nominated)


def _attempt_result(
    state: EngineState, queued: QueuedPod, outcome: SchedulingResult, duration_s: float
) -> AttemptResult:
    """The attempt's outcome for log and metrics."""
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
        )
    error_result = AttemptResult(
        pod=info.reference,
        result="error",
        scheduler_name=info.scheduler_name,
        attempts=queued.attempts,
        duration_s=duration_s,
        configuration=state.configuration,
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
