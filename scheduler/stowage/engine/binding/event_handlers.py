"""Events, timeouts and changes of storage objects, for the pods that are being bound."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

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

#: The outcomes of instructions that a binding cycle emits.
Finished: TypeAlias = PreBindFinished | VolumesWritten | BindSucceeded | BindFailed

_FINISHED: Mapping[type[Finished], BindingEvent] = {
    PreBindFinished: BindingEvent.PRE_BIND_FINISHED,
    VolumesWritten: BindingEvent.VOLUMES_WRITTEN,
    BindSucceeded: BindingEvent.BIND_SUCCEEDED,
    BindFailed: BindingEvent.BIND_FAILED,
}


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


def instruction_finished(state: EngineState, event: Finished, now: float) -> None:
    """The shell has carried out an instruction of a binding cycle."""
    advance_binding(state, event.uid, _FINISHED[type(event)], now, event)


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
