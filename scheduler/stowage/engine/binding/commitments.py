"""Pods between assumed and bound: starting their binding cycles, advancing and ending them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from stowage.api.events import (
    ActionType,
    BindFailed,
    BindSucceeded,
    ClusterEvent,
    EventResource,
    PodsActivated,
    PreBindFinished,
    VolumesWritten,
    WaitingPodAllowed,
    WaitingPodRejected,
)
from stowage.api.instructions import AttemptResult, EmitEvent, PodBound, ReadPod, StopPreBind
from stowage.api.status import Code, Status, error, unschedulable
from stowage.engine.binding import BindingCycle, BindingPhase, Proceed, Step
from stowage.engine.failure import Failure, give_back_to_queue
from stowage.engine.machine import Machine
from stowage.engine.scheduling import fit_error_message
from stowage.framework import Diagnosis, PluginFailed, WaitingPod

#: How long the watch may take to show a pod bound before it is read back, in seconds.
CONFIRM_WITHIN_S = 30.0

ASSIGNED_POD_DELETE = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE)


def start_binding(machine: Machine, cycle: BindingCycle, now: float) -> None:
    """The pod has just been assumed: reserve, ask for permission, and go on.

    A pod that is going to wait, for Permit or for PreBind, says in its status where it is
    expected (``NominatedNodeNameForExpectation`` of v1.36).
    """
    machine.bindings[cycle.info.uid] = cycle
    reserved = _advance(machine, cycle, cycle.reserve, now)
    if reserved is None:
        return
    _activate_pods(machine, cycle, now)
    if _advance(machine, cycle, cycle.plan, now) is None:
        return
    if reserved.waits or cycle.pre_binds:
        nomination = machine.statuses.nominate(cycle.reference, cycle.node_name)
        if nomination is not None:
            machine.emit(nomination)
    if reserved.waits:
        machine.waiting.add(cycle.info.uid, reserved.waits, now)
        machine.permit_since[cycle.info.uid] = now
    else:
        _go_on_after_permit(machine, cycle, now)


def pre_bind_finished(machine: Machine, event: PreBindFinished, now: float) -> None:
    """The shell ran the PreBind plugins: bind, or give the pod back."""
    cycle = machine.bindings.get(event.uid)
    if cycle is None or cycle.phase is not BindingPhase.PRE_BINDING:
        return
    status = Status(event.code, event.reasons, event.plugin)
    if cycle.stage is None:
        _advance(machine, cycle, cycle.next_pre_bind if status.is_success else lambda: status, now)


def volumes_written(machine: Machine, event: VolumesWritten, now: float) -> None:
    """The shell wrote what was decided about a pod's claims: wait until they are bound."""
    cycle = machine.bindings.get(event.uid)
    if cycle is None or cycle.stage is None or event.uid in machine.stages:
        return
    try:
        cycle.stage.written(event)
    except PluginFailed as failure:
        _end_unbound(machine, cycle, failure.status, now)
        return
    machine.stages.start(event.uid, now + cycle.stage.timeout_s)
    _check_stage(machine, cycle, now)


def storage_changed(machine: Machine, resource: EventResource, key: str, now: float) -> None:
    """Something changed that pods being bound may wait for."""
    for uid in machine.stages.awaiting(resource, key):
        _check_stage(machine, machine.bindings[uid], now)


def expire_stages(machine: Machine, now: float) -> None:
    """Give back the pods whose claims were not bound in time."""
    for uid in machine.stages.expired(now):
        cycle = machine.bindings[uid]
        if cycle.stage is not None:
            _end_unbound(machine, cycle, cycle.stage.timed_out(), now)


def _check_stage(machine: Machine, cycle: BindingCycle, now: float) -> None:
    """Go on if the claims are bound, end if they never will be, else wait."""
    uid, stage = cycle.info.uid, cycle.stage
    if stage is None:
        return
    progress = stage.progress(machine.cache.snapshot())
    if progress.status.code is Code.WAIT:
        machine.stages.wait(uid, progress.awaited)
        return
    machine.stages.end(uid)
    status = progress.status
    _advance(machine, cycle, cycle.next_pre_bind if status.is_success else lambda: status, now)


def waiting_pod_allowed(machine: Machine, event: WaitingPodAllowed, now: float) -> None:
    """A Permit plugin agrees; when all have, the pod goes on."""
    cycle = machine.bindings.get(event.uid)
    if cycle is not None and machine.waiting.allow(event.uid, event.plugin):
        _end_permit_wait(machine, event.uid, Code.SUCCESS, now)
        _go_on_after_permit(machine, cycle, now)


def waiting_pod_rejected(machine: Machine, event: WaitingPodRejected, now: float) -> None:
    """A Permit plugin refuses a pod that waits."""
    cycle = machine.bindings.get(event.uid)
    if cycle is not None and event.uid in machine.waiting:
        _end_unbound(machine, cycle, unschedulable(event.message, plugin=event.plugin), now)


def waiting_pods(machine: Machine) -> list[WaitingPod]:
    """The pods that wait at Permit, in the order they came."""
    waiting = []
    for uid, plugins in machine.waiting.plugins().items():
        cycle = machine.bindings[uid]
        waiting.append(WaitingPod(cycle.info, cycle.node_name, plugins))
    return waiting


def expire_waiting_pods(machine: Machine, now: float) -> None:
    """Reject the pods whose Permit time limit has passed."""
    for uid, status in machine.waiting.expire(now):
        _end_unbound(machine, machine.bindings[uid], status, now)


def bind_succeeded(machine: Machine, event: BindSucceeded, now: float) -> None:
    """The pod is bound; the cache keeps it assumed until the watch shows it."""
    cycle = machine.bindings.pop(event.uid, None)
    if cycle is None:
        return
    queued, info = cycle.queued, cycle.info
    machine.statuses.forget(event.uid)
    if machine.cache.is_assumed(event.uid):
        machine.unconfirmed[event.uid] = (cycle.reference, now)
    machine.emit(
        EmitEvent(
            pod=cycle.reference,
            event_type="Normal",
            reason="Scheduled",
            action="Binding",
            note=f"Successfully assigned {info.key} to {cycle.node_name}",
            scheduler_name=info.scheduler_name,
            resource_version=info.resource_version,
        )
    )
    first = queued.initial_attempt_at
    since_first = 0.0 if first is None else now - first
    machine.emit(
        PodBound(
            cycle.reference, cycle.node_name, info.scheduler_name, queued.attempts, since_first
        )
    )
    _tell_plugins(machine, cycle, cycle.bound)
    _activate_pods(machine, cycle, now)


def bind_failed(machine: Machine, event: BindFailed, now: float) -> None:
    """The pod is known not to be bound where we wanted it."""
    cycle = machine.bindings.get(event.uid)
    if cycle is None:
        return
    text = event.message
    if not event.by_extender:
        text = f'running Bind plugin "{cycle.bind_plugin}": {text}'
    _end_unbound(machine, cycle, error(text), now)


def pods_activated(machine: Machine, event: PodsActivated, now: float) -> None:
    """A plugin wants pods tried."""
    machine.queue.activate(event.uids, now)


def pending_pod_gone(machine: Machine, uid: str, now: float) -> bool:
    """The watch of pending pods lost a pod; True if it has a binding cycle.

    Once the Binding is sent its answer decides. Before that the pod was deleted, or bound by
    somebody else, and there is nothing left to bind.
    """
    cycle = machine.bindings.get(uid)
    if cycle is None:
        return False
    cycle.left_pending = True
    if cycle.phase is BindingPhase.PRE_BINDING:
        machine.emit(StopPreBind(cycle.reference))
    if cycle.phase is not BindingPhase.BINDING:
        _end_unbound(machine, cycle, unschedulable("pod was deleted or bound elsewhere"), now)
    return True


def cancel_unbound(machine: Machine, uid: str, now: float) -> bool:
    """Give a pod back to the queue whose place a preemptor takes; False if it is too late.

    It is too late once the Binding is sent, and for a pod that is bound: those have to be deleted.
    Nobody's event will help the pod more than time, so it is tried again after its backoff; in
    kube-scheduler it waits for one of the preemption plugin's.
    """
    cycle = machine.bindings.get(uid)
    if cycle is None or cycle.phase is BindingPhase.BINDING:
        return False
    if cycle.phase is BindingPhase.PRE_BINDING:
        machine.emit(StopPreBind(cycle.reference))
    cycle.was_preempted = True
    _end_unbound(machine, cycle, unschedulable("preempted"), now)
    return True


def try_again_without(machine: Machine, victim_uid: str, now: float) -> None:
    """A pod is gone: try those again for which it had to go.

    Its preemptor, and who made no more room for as long as it was there. Unlike kube-scheduler,
    which asks the plugins that rejected them whether its end helps, and leaves them waiting for the
    five-minute flush if their rules do not speak of it.
    """
    waiting = machine.awaiting.pop(victim_uid, None)
    if waiting is not None:
        machine.queue.try_again(waiting, ASSIGNED_POD_DELETE, now)


def read_back_unconfirmed(machine: Machine, now: float) -> None:
    """Ask for the pods that were bound a while ago and that the watch has not shown.

    A pod bound and deleted within one gap of the watch would otherwise stay assumed for ever.
    """
    while machine.unconfirmed:
        uid, (reference, bound_at) = next(iter(machine.unconfirmed.items()))
        if not machine.cache.is_assumed(uid):
            del machine.unconfirmed[uid]
        elif bound_at + CONFIRM_WITHIN_S <= now:
            del machine.unconfirmed[uid]
            machine.unconfirmed[uid] = (reference, now)
            machine.emit(ReadPod(reference))
        else:
            return


def next_commitment_deadline(machine: Machine) -> float | None:
    """When a waiting pod expires or an unconfirmed one is to be read back."""
    deadlines = [machine.waiting.next_deadline(), machine.stages.next_deadline()]
    if machine.unconfirmed:
        _, bound_at = next(iter(machine.unconfirmed.values()))
        deadlines.append(bound_at + CONFIRM_WITHIN_S)
    return min((each for each in deadlines if each is not None), default=None)


def _advance(
    machine: Machine, cycle: BindingCycle, step: Callable[[], Step], now: float
) -> Proceed | None:
    """Take one step; None if it ended the cycle, and no other, as a plugin that raises does."""
    try:
        outcome = step()
    except PluginFailed as failed:
        outcome = failed.status
    except Exception as fault:
        machine.problem(f"Pod {cycle.info.key}", f"binding cycle: {fault!r}")
        outcome = error(f"binding cycle: {fault!r}")
    if isinstance(outcome, Proceed):
        machine.outbox.extend(outcome.instructions)
        return outcome
    _end_unbound(machine, cycle, outcome, now)
    return None


def _go_on_after_permit(machine: Machine, cycle: BindingCycle, now: float) -> None:
    """Nothing can find the pod unschedulable any more, so what happens is not kept for it."""
    machine.queue.done(cycle.info.uid)
    _advance(machine, cycle, cycle.pre_bind, now)


def _activate_pods(machine: Machine, cycle: BindingCycle, now: float) -> None:
    """Try the pods that plugins named in this cycle."""
    if cycle.state.pods_to_activate:
        machine.queue.activate(cycle.state.take_pods_to_activate(), now)


def _tell_plugins(machine: Machine, cycle: BindingCycle, tell: Callable[[], None]) -> None:
    """Tell plugins what cannot be undone; one that raises is reported and holds up nothing."""
    try:
        tell()
    except PluginFailed as failed:
        machine.problem(f"Pod {cycle.info.key}", failed.status.message)


def _end_unbound(machine: Machine, cycle: BindingCycle, status: Status, now: float) -> None:
    """Undo everything since assume, and requeue the pod unless it is gone.

    ``handleBindingCycleError`` of v1.36: what the pod held is free for others, as if a placed pod
    had been deleted. A pod that was rejected is not woken by that itself. In the scheduling cycle
    nobody else has been tried meanwhile, so nobody need be woken.
    """
    uid = cycle.info.uid
    machine.bindings.pop(uid, None)
    machine.note_error(status, cycle.framework, "assume" if cycle.stage is None else "bind")
    machine.waiting.remove(uid)
    machine.stages.end(uid)
    _end_permit_wait(machine, uid, status.code, now)
    _tell_plugins(machine, cycle, cycle.give_back)
    machine.cache.forget_pod(uid)
    if cycle.phase is BindingPhase.RESERVING:
        _requeue(machine, cycle, status, now)
        return
    assumed = cycle.info.on_node(cycle.node_name)
    if status.is_rejected:
        _requeue(machine, cycle, status, now)
        machine.queue.move_on_event(
            ASSIGNED_POD_DELETE, assumed, None, now, lambda pod: pod.uid != uid
        )
        try_again_without(machine, uid, now)
    else:
        machine.note_leaving(uid)
        machine.queue.move_on_event(ASSIGNED_POD_DELETE, assumed, None, now)
        try_again_without(machine, uid, now)
        _requeue(machine, cycle, status, now)


def _requeue(machine: Machine, cycle: BindingCycle, status: Status, now: float) -> None:
    """Report how the attempt ended, and give the pod back if it still waits for a node."""
    uid, failure = cycle.info.uid, _failure(cycle, status)
    machine.emit(
        AttemptResult(
            pod=cycle.reference,
            result="error" if failure.is_error else "unschedulable",
            scheduler_name=cycle.info.scheduler_name,
            attempts=cycle.queued.attempts,
            message=failure.message,
            unschedulable_plugins=tuple(sorted(failure.rejected_by)),
            configuration=machine.configuration,
        )
    )
    if cycle.left_pending or cycle.was_deleted or machine.cache.get_pod(uid) is not None:
        machine.queue.done(uid)
        machine.statuses.forget(uid)
        return
    give_back_to_queue(machine, cycle.queued, cycle.info, failure, now)


def _failure(cycle: BindingCycle, status: Status) -> Failure:
    """What the status means; a rejection up to Permit is a verdict on the one node chosen."""
    if not status.is_rejected:
        return Failure(status.message, is_error=True)
    if cycle.phase not in (BindingPhase.RESERVING, BindingPhase.WAITING_ON_PERMIT):
        return Failure(status.message)
    # Upstream names whoever rejected a pod that waited, even nobody; whom nobody rejected in the
    # scheduling cycle is tried again after a backoff.
    was_waiting = cycle.phase is BindingPhase.WAITING_ON_PERMIT and not cycle.was_preempted
    by = frozenset({status.plugin}) if status.plugin or was_waiting else frozenset()
    message = fit_error_message(Diagnosis(1, Counter(status.reasons)))
    return Failure(
        message, rejected_by=by, pending=by if status.code is Code.PENDING else frozenset()
    )


def _end_permit_wait(machine: Machine, uid: str, code: Code, now: float) -> None:
    """Tell how long the pod has waited at Permit, if it has."""
    since = machine.permit_since.pop(uid, None)
    if since is not None and machine.timings is not None:
        machine.timings.observer.observe_permit_wait(code.title, now - since)
