"""Pods between assumed and bound: starting their binding cycles, advancing and ending them."""

from __future__ import annotations

from collections.abc import Callable

from scheduler.api.events import (
    ActionType,
    BindFailed,
    BindSucceeded,
    ClusterEvent,
    EventResource,
    PreBindFinished,
    WaitingPodAllowed,
    WaitingPodRejected,
)
from scheduler.api.extenders import EXTENDER_PLUGIN
from scheduler.api.instructions import EmitEvent, PodBound, ReadPod, StopPreBind
from scheduler.api.status import Code, Status, unschedulable
from scheduler.binding import BindingCycle, Proceed, begin_binding
from scheduler.binding.binding_cycle import BindingPhase, Step
from scheduler.engine.failure import Failure, give_back_to_queue
from scheduler.engine.machine import Machine
from scheduler.framework import PluginFailed, WaitingPod

#: How long the watch may take to show a pod bound before it is read back, in seconds.
CONFIRM_WITHIN_S = 30.0

ASSIGNED_POD_DELETE = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE)


def start_binding(machine: Machine, cycle: BindingCycle, now: float) -> None:
    """The pod has just been assumed: reserve, ask for permission, and go on."""
    machine.bindings[cycle.info.uid] = cycle
    _advance(machine, cycle, lambda: begin_binding(cycle), now)


def pre_bind_finished(machine: Machine, event: PreBindFinished, now: float) -> None:
    """The shell ran the PreBind plugins: bind, or give the pod back."""
    cycle = machine.bindings.get(event.uid)
    if cycle is None or cycle.phase is not BindingPhase.PRE_BINDING:
        return
    status = Status(event.code, event.reasons, event.plugin)
    _advance(machine, cycle, cycle.bind if status.is_success else lambda: status, now)


def waiting_pod_allowed(machine: Machine, event: WaitingPodAllowed, now: float) -> None:
    """A Permit plugin agrees; when all have, the pod goes on."""
    cycle = machine.bindings.get(event.uid)
    if cycle is not None and machine.waiting.allow(event.uid, event.plugin):
        _end_permit_wait(machine, event.uid, Code.SUCCESS, now)
        _advance(machine, cycle, cycle.pre_bind, now)


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
    machine.queue.done(event.uid)
    machine.reported.pop(event.uid, None)
    if machine.cache.is_assumed(event.uid):
        machine.unconfirmed[event.uid] = (cycle.reference, now)
    _tell_plugins(machine, cycle, cycle.bound)
    machine.emit(
        EmitEvent(
            pod=cycle.reference,
            event_type="Normal",
            reason="Scheduled",
            action="Binding",
            note=f"Successfully assigned {info.key} to {cycle.node_name}",
            scheduler_name=info.scheduler_name,
        )
    )
    first = queued.initial_attempt_at
    since_first = 0.0 if first is None else now - first
    machine.emit(
        PodBound(
            cycle.reference, cycle.node_name, info.scheduler_name, queued.attempts, since_first
        )
    )


def bind_failed(machine: Machine, event: BindFailed, now: float) -> None:
    """The pod is known not to be bound where we wanted it."""
    cycle = machine.bindings.get(event.uid)
    if cycle is None:
        return
    status = Status(Code.ERROR, (event.message,), EXTENDER_PLUGIN)
    if cycle.extender is None:
        text = f'running Bind plugin "DefaultBinder": {event.message}'
        status = Status(Code.ERROR, (text,), "DefaultBinder")
    _end_unbound(machine, cycle, status, now)


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
    Nobody's event will help the pod more than time, so it is tried again after its backoff.
    """
    cycle = machine.bindings.get(uid)
    if cycle is None or cycle.phase is BindingPhase.BINDING:
        return False
    if cycle.phase is BindingPhase.PRE_BINDING:
        machine.emit(StopPreBind(cycle.reference))
    _end_unbound(machine, cycle, unschedulable("preempted"), now)
    return True


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
    deadlines = [machine.waiting.next_deadline()]
    if machine.unconfirmed:
        _, bound_at = next(iter(machine.unconfirmed.values()))
        deadlines.append(bound_at + CONFIRM_WITHIN_S)
    return min((each for each in deadlines if each is not None), default=None)


def _advance(machine: Machine, cycle: BindingCycle, step: Callable[[], Step], now: float) -> None:
    """Take one step; a plugin that raises ends this cycle and no other."""
    try:
        outcome = step()
    except PluginFailed as failed:
        outcome = failed.status
    except Exception as fault:
        machine.problem(f"Pod {cycle.info.key}", f"binding cycle: {fault!r}")
        outcome = Status(Code.ERROR, (f"binding cycle: {fault!r}",))
    if isinstance(outcome, Proceed):
        machine.outbox.extend(outcome.instructions)
        if outcome.waits:
            machine.waiting.add(cycle.info.uid, outcome.waits, now)
            machine.permit_since[cycle.info.uid] = now
    else:
        _end_unbound(machine, cycle, outcome, now)


def _tell_plugins(machine: Machine, cycle: BindingCycle, tell: Callable[[], None]) -> None:
    """Tell plugins what cannot be undone; one that raises is reported and holds up nothing."""
    try:
        tell()
    except PluginFailed as failed:
        machine.problem(f"Pod {cycle.info.key}", failed.status.message)


def _end_unbound(machine: Machine, cycle: BindingCycle, status: Status, now: float) -> None:
    """Undo everything since assume; requeue the pod unless it is gone."""
    uid = cycle.info.uid
    machine.bindings.pop(uid, None)
    machine.waiting.remove(uid)
    _end_permit_wait(machine, uid, status.code, now)
    _tell_plugins(machine, cycle, cycle.give_back)
    machine.cache.forget_pod(uid)
    machine.queue.move_on_event(ASSIGNED_POD_DELETE, cycle.info, None, now)
    if cycle.left_pending or cycle.was_deleted or machine.cache.get_pod(uid) is not None:
        machine.queue.done(uid)
        machine.reported.pop(uid, None)
        return
    failure = Failure(
        message=status.message,
        is_error=not status.is_rejected,
        rejected_by=frozenset({status.plugin}) if status.plugin else frozenset(),
    )
    give_back_to_queue(machine, cycle.queued, cycle.info, failure, now)


def _end_permit_wait(machine: Machine, uid: str, code: Code, now: float) -> None:
    """Tell how long the pod has waited at Permit, if it has."""
    since = machine.permit_since.pop(uid, None)
    if since is not None and machine.timings is not None:
        machine.timings.observer.observe_permit_wait(code.title, now - since)
