"""Events, timeouts and changes of storage objects, for the pods that are being bound."""

from __future__ import annotations

from stowage.api.events import (
    BindFailed,
    BindSucceeded,
    EventResource,
    PodsActivated,
    PreBindFinished,
    VolumesWritten,
    WaitingPodAllowed,
    WaitingPodRejected,
)
from stowage.api.instructions import ReadPod
from stowage.api.status import unschedulable
from stowage.engine.binding.state_machine import BindingEvent, advance_binding
from stowage.engine.state.engine_state import EngineState
from stowage.framework import WaitingPod


def waiting_pod_allowed(state: EngineState, event: WaitingPodAllowed, now: float) -> None:
    """A Permit plugin allows a pod; when all have, the pod goes on."""
    if state.bindings.permit_waits.allow(event.uid, event.plugin):
        advance_binding(state, event.uid, BindingEvent.ALLOWED, now)


def waiting_pod_rejected(state: EngineState, event: WaitingPodRejected, now: float) -> None:
    """A Permit plugin rejects a pod that waits."""
    status = unschedulable(event.message, plugin=event.plugin)
    advance_binding(state, event.uid, BindingEvent.REJECTED, now, status)


def pods_activated(state: EngineState, event: PodsActivated, now: float) -> None:
    """A plugin activates pods."""
    state.queue.activate(event.uids, now)


def pre_bind_finished(state: EngineState, event: PreBindFinished, now: float) -> None:
    """The shell has run PreBind plugins."""
    advance_binding(state, event.uid, BindingEvent.PRE_BIND_FINISHED, now, event)


def volumes_written(state: EngineState, event: VolumesWritten, now: float) -> None:
    """The shell has written a pod's claims and volumes."""
    advance_binding(state, event.uid, BindingEvent.VOLUMES_WRITTEN, now, event)


def bind_succeeded(state: EngineState, event: BindSucceeded, now: float) -> None:
    """The API server has bound a pod."""
    advance_binding(state, event.uid, BindingEvent.BIND_SUCCEEDED, now, event)


def bind_failed(state: EngineState, event: BindFailed, now: float) -> None:
    """The API server has not bound a pod."""
    advance_binding(state, event.uid, BindingEvent.BIND_FAILED, now, event)


def storage_changed(state: EngineState, resource: EventResource, key: str, now: float) -> None:
    """A storage object or a node has changed that pods may wait for."""
    for uid in state.bindings.volume_waits.pods_awaiting(resource, key):
        advance_binding(state, uid, BindingEvent.STORAGE_CHANGED, now)


def expire_binding_timeouts(state: EngineState, now: float) -> None:
    """Take back the pods whose waits have timed out; read back the pods that stay unconfirmed."""
    bindings = state.bindings
    for uid, status in bindings.permit_waits.expire(now):
        advance_binding(state, uid, BindingEvent.REJECTED, now, status)
    for uid in bindings.volume_waits.expire(now):
        advance_binding(state, uid, BindingEvent.VOLUMES_TIMED_OUT, now)
    for pod in bindings.unconfirmed.take_overdue(now, state.cache.is_assumed):
        state.outbox.emit(ReadPod(pod))


def waiting_pods(state: EngineState) -> list[WaitingPod]:
    """The pods that wait on Permit, in the order in which they started to wait."""
    waiting = []
    for uid, plugins in state.bindings.permit_waits.plugins().items():
        cycle = state.bindings.get(uid)
        if cycle is not None:
            waiting.append(WaitingPod(cycle.info, cycle.node_name, plugins))
    return waiting
