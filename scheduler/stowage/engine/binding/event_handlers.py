"""Events, timeouts and changes of objects, for the pods that are being bound."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from stowage.api.cluster_events import EventResource
from stowage.api.events import (
    BindFailed,
    BindSucceeded,
    ClaimsWritten,
    PodsActivated,
    PreBindFinished,
    VolumesWritten,
    WaitingPodAllowed,
    WaitingPodRejected,
)
from stowage.api.instructions import DeleteClaim, ReadPod
from stowage.api.objects.device import ResourceClaim
from stowage.api.status import unschedulable
from stowage.api.values.claim_writes import reference_to
from stowage.engine.binding.created_claims import hold_created_claim
from stowage.engine.binding.freed_devices import (
    CLAIM_UPDATE,
    end_reservations,
    move_pods_to_freed_devices,
)
from stowage.engine.binding.state_machine import BindingEvent, advance_binding, allow_waiting_pod
from stowage.engine.state.engine_state import EngineState
from stowage.framework import WaitingPod

_Finished: TypeAlias = PreBindFinished | VolumesWritten | BindSucceeded | BindFailed

_FINISHED: Mapping[type[_Finished], BindingEvent] = {
    PreBindFinished: BindingEvent.PRE_BIND_FINISHED,
    VolumesWritten: BindingEvent.WRITTEN,
    BindSucceeded: BindingEvent.BIND_SUCCEEDED,
    BindFailed: BindingEvent.BIND_FAILED,
}


def waiting_pod_allowed(state: EngineState, event: WaitingPodAllowed, now: float) -> None:
    """A Permit plugin allows a pod; when all have, the pod goes on."""
    allow_waiting_pod(state, event.uid, event.plugin, now)


def waiting_pod_rejected(state: EngineState, event: WaitingPodRejected, now: float) -> None:
    """A Permit plugin rejects a pod that waits."""
    status = unschedulable(event.message, plugin=event.plugin)
    advance_binding(state, event.uid, BindingEvent.REJECTED, now, status)


def pods_activated(state: EngineState, event: PodsActivated, now: float) -> None:
    """A plugin activates pods."""
    state.queue.activate(event.uids, now)


def pre_bind_finished(
    state: EngineState, event: PreBindFinished | VolumesWritten, now: float
) -> None:
    """The shell has carried out a PreBind instruction.

    An outcome that was on its way when its cycle ended is ignored: the pod may be in the same phase
    of a later cycle, on another node.
    """
    cycle = state.bindings.get(event.uid)
    if cycle is not None and cycle.pre_bind_number == event.number:
        advance_binding(state, event.uid, _FINISHED[type(event)], now, event)


def bind_finished(state: EngineState, event: BindSucceeded | BindFailed, now: float) -> None:
    """The shell has tried to bind a pod; its cycle has waited for that."""
    advance_binding(state, event.uid, _FINISHED[type(event)], now, event)


def claims_written(state: EngineState, event: ClaimsWritten, now: float) -> None:
    """The shell has written claims: take them as they are now, and go on with the pod.

    If its cycle has ended, the claims stay as written: they are the pod's when it is tried again,
    and the claim controller takes them back if it is gone. A claim that was created for extended
    resources is deleted, because another attempt would not use it.
    """
    for claim in event.claims:
        _assume_claim(state, claim, now)
    abandoned = state.bindings.abandoned_writes.pop(event.number, None)
    cycle = abandoned or state.bindings.get(event.uid)
    if cycle is None or cycle.claims_number != event.number:
        return
    written = [claim.metadata.uid for claim in event.claims]
    # Companions that share a claim still hold its devices until they have reserved it, too.
    state.cache.give_up_allocations(written, event.uid)
    if event.extended is not None:
        hold_created_claim(state, cycle, event.extended)
    if abandoned is None:
        advance_binding(state, event.uid, BindingEvent.WRITTEN, now, event)
        return
    end_reservations(state, abandoned)
    move_pods_to_freed_devices(state, abandoned, now)
    if event.extended is not None:
        state.outbox.emit(DeleteClaim(abandoned.reference, reference_to(event.extended)))


def _assume_claim(state: EngineState, claim: ResourceClaim, now: float) -> None:
    """Take a claim as the API server returned it; pods may wait for it."""
    key, claims = claim.metadata.namespaced_name, state.cache.snapshot().devices.claims
    old = claims.get(key)
    state.cache.assume_claim(claim)
    new = claims.get(key)
    if new is not None and new is not old:
        object_changed(state, EventResource.RESOURCE_CLAIM, key, now)
        state.queue.move_on_event(CLAIM_UPDATE, old, new, now)


def object_changed(state: EngineState, resource: EventResource, key: str, now: float) -> None:
    """An object has changed that pods may wait for."""
    for uid in state.bindings.object_waits.pods_awaiting(resource, key):
        advance_binding(state, uid, BindingEvent.OBJECT_CHANGED, now)


def expire_binding_timeouts(state: EngineState, now: float) -> None:
    """Take back the pods whose waits have timed out; repeat what has had no effect for long."""
    bindings = state.bindings
    for uid, status in bindings.permit_waits.expire(now):
        advance_binding(state, uid, BindingEvent.REJECTED, now, status)
    for uid in bindings.object_waits.expire(now):
        advance_binding(state, uid, BindingEvent.WAIT_TIMED_OUT, now)
    for pod in bindings.unconfirmed.take_overdue(now, state.cache.is_assumed):
        state.outbox.emit(ReadPod(pod))
    for deletion in bindings.created_claims.take_overdue(now):
        state.outbox.emit(deletion)


def waiting_pods(state: EngineState) -> list[WaitingPod]:
    """The pods that wait on Permit, in the order in which they started to wait."""
    waiting = []
    for uid, plugins in state.bindings.permit_waits.plugins().items():
        cycle = state.bindings.get(uid)
        if cycle is not None:
            waiting.append(WaitingPod(cycle.info, cycle.node_name, plugins))
    return waiting
