"""The end of a binding cycle whose pod is not bound."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from msgspec.structs import replace

from stowage.api.instructions import AttemptResult
from stowage.api.status import Code, Status
from stowage.engine.binding.freed_devices import end_reservations, move_pods_to_freed_devices
from stowage.engine.binding.freed_volumes import move_pods_to_freed_volumes
from stowage.engine.scheduling_failure import Failure, handle_scheduling_failure
from stowage.engine.state.bindings import BindingCycle, BindingPhase, LastSeen
from stowage.engine.state.engine_state import EngineState
from stowage.framework import CycleState, Diagnosis, PluginFailed, fit_error_message
from stowage.queue.queue_events import ASSIGNED_POD_DELETE
from stowage.queue.queued_pod import QueueState

_IN_SCHEDULING_CYCLE = frozenset({BindingPhase.RESERVING, BindingPhase.PERMITTING})
_UP_TO_PERMIT = _IN_SCHEDULING_CYCLE | {BindingPhase.WAITING_ON_PERMIT}
_IN_STAGED_PRE_BIND = frozenset({BindingPhase.WRITING, BindingPhase.WAITING_FOR_OBJECTS})


def fail_binding_cycle(
    state: EngineState,
    cycle: BindingCycle,
    status: Status,
    now: float,
    *,
    is_preempted: bool = False,
) -> None:
    """Undo everything since assume, and requeue the pod unless it is gone.

    ``handleBindingCycleError`` of v1.36. The resources of the pod are free again, as if an assigned
    pod had been deleted. That event does not move the pod itself if it was rejected. In the
    scheduling cycle there is no event, because no other pod was tried since the pod was assumed.
    """
    uid = cycle.info.uid
    waiting_since = state.bindings.remove(uid)
    if cycle.durations is not None:
        cycle.durations.end_plugin(status.code)
        cycle.durations.end_pre_bind(status.code)
    volume_stage = "bind" if cycle.phase in _IN_STAGED_PRE_BIND else "assume"
    state.errors.count(status, cycle.framework, volume_stage)
    observe_permit_wait(state, waiting_since, status.code, now)
    if cycle.phase is not BindingPhase.RESERVING:
        unreserve(state, cycle)
        if cycle.allocated_claims and not _may_write_claims(cycle):
            move_pods_to_freed_devices(state, cycle, now)
        if cycle.phase not in _IN_SCHEDULING_CYCLE:
            move_pods_to_freed_volumes(state, cycle, now)
    state.cache.forget_pod(uid)
    failure = _failure(cycle.phase, status, is_preempted)
    if cycle.phase in _IN_SCHEDULING_CYCLE:
        _requeue(state, cycle, failure, now)
        return
    freed = cycle.info.on_node(cycle.node_name)
    if status.is_rejected:
        _requeue(state, cycle, failure, now)
        state.queue.move_on_event(ASSIGNED_POD_DELETE, freed, None, now, lambda pod: pod.uid != uid)
        retry_after_victim(state, uid, now)
    else:
        state.preemptions.victim_leaves(uid)
        state.queue.move_on_event(ASSIGNED_POD_DELETE, freed, None, now)
        retry_after_victim(state, uid, now)
        _requeue(state, cycle, failure, now)


def unreserve(state: EngineState, cycle: BindingCycle) -> None:
    """Run Unreserve in reverse order, and take back the plans of Reserve.

    Devices that the shell may be writing to claims stay in flight until it reports.
    """
    run = cycle.framework.run_unreserve
    tell_plugins(state, cycle, lambda: run(cycle.cycle_state, cycle.info, cycle.node_name))
    emit_instructions(state, cycle.cycle_state)
    for plan in cycle.reserve_plans.values():
        state.cache.forget_storage(plan.volumes, plan.claims, cycle.info.uid, cycle.written)
    if _may_write_claims(cycle):
        state.bindings.abandoned_writes[cycle.claims_number] = cycle
    elif cycle.allocated_claims:
        end_reservations(state, cycle)


def _may_write_claims(cycle: BindingCycle) -> bool:
    return cycle.phase is BindingPhase.WRITING and cycle.pre_bind_number == cycle.claims_number


def emit_instructions(state: EngineState, cycle_state: CycleState) -> None:
    """Emit the instructions that plugins have left in the state of a cycle."""
    for instruction in cycle_state.take_instructions():
        state.outbox.emit(instruction)


def tell_plugins(state: EngineState, cycle: BindingCycle, tell: Callable[[], None]) -> None:
    """Run plugins that cannot stop the engine any more; report one that raises."""
    try:
        tell()
    except PluginFailed as failed:
        state.outbox.report(f"Pod {cycle.info.key}", failed.status.message)


def observe_permit_wait(state: EngineState, since: float | None, code: Code, now: float) -> None:
    """Record how long a pod waited on Permit; `since` is None if it did not."""
    if since is not None and state.timings is not None:
        state.timings.observer.observe_permit_wait(code.title, now - since)


def retry_after_victim(state: EngineState, victim_uid: str, now: float) -> None:
    """A victim is gone: retry its preemptor and the pods whose preemption waited for its end.

    kube-scheduler leaves it to the queueing hints of the plugins that rejected those pods. If no
    hint takes notice, the pods wait for the flush of unschedulable pods after five minutes.
    A pod group is retried at once when its last victim is gone; kube-scheduler, while it is idle,
    retries it all the time.
    """
    retries = state.preemptions.take_retries(victim_uid)
    if retries:
        state.queue.try_again(retries, ASSIGNED_POD_DELETE, now)
    for key in state.group_evictions.victim_is_gone(victim_uid):
        activate_group(state, key, now)


def activate_group(state: EngineState, key: str, now: float) -> None:
    """Try a group at once: one member that PreEnqueue admits takes the others with it."""
    for uid in state.cache.pod_groups.members(key).unscheduled:
        state.queue.activate((uid,), now)
        if state.queue.state_of(uid) is QueueState.ACTIVE:
            return


def _requeue(state: EngineState, cycle: BindingCycle, failure: Failure, now: float) -> None:
    """Emit the result of the attempt, and requeue the pod if it is still pending."""
    uid = cycle.info.uid
    state.outbox.emit(
        AttemptResult(
            pod=cycle.reference,
            result="error" if failure.is_error else "unschedulable",
            scheduler_name=cycle.info.scheduler_name,
            attempts=cycle.queued.attempts,
            message=failure.message,
            unschedulable_plugins=tuple(sorted(failure.rejected_by)),
            configuration=state.configuration,
            decision=state.next_decision(),
        )
    )
    if cycle.last_seen is not LastSeen.PENDING or state.cache.get_pod(uid) is not None:
        state.queue.done(uid)
        state.statuses.forget(uid)
        state.cache.forget_pending_member(uid)
        return
    failure = replace(failure, generation=cycle.generation)
    handle_scheduling_failure(state, cycle.queued, cycle.info, failure, now)


def _failure(phase: BindingPhase, status: Status, is_preempted: bool) -> Failure:
    """The failure in the queue's terms; a rejection up to Permit is a fit error of one node."""
    if not status.is_rejected:
        return Failure(status.message, is_error=True)
    if phase not in _UP_TO_PERMIT:
        return Failure(status.message)
    # kube-scheduler names the plugin that rejected a waiting pod even if its name is empty.
    names_plugin = phase is BindingPhase.WAITING_ON_PERMIT and not is_preempted
    rejected_by = frozenset({status.plugin}) if status.plugin or names_plugin else frozenset[str]()
    return Failure(
        fit_error_message(Diagnosis(1, Counter(status.reasons))),
        rejected_by=rejected_by,
        pending=rejected_by if status.code is Code.PENDING else frozenset(),
    )
