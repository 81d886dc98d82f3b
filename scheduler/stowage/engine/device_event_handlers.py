"""Handlers of events of claims, device classes and slices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from stowage.api.cluster_events import ActionType, ClusterEvent, EventResource
from stowage.api.decoding.errors import InvalidObject
from stowage.api.events import DeviceObjectGone, DeviceObjectSeen
from stowage.api.interruptible import Interruptible
from stowage.api.objects.device import DeviceClass, DeviceObject, ResourceClaim, ResourceSlice
from stowage.api.objects.meta import controller_of
from stowage.api.values.claim_writes import EXTENDED_RESOURCE_CLAIM
from stowage.engine.binding.created_claims import created_claim_gone, created_claim_seen
from stowage.engine.binding.event_handlers import object_changed
from stowage.engine.binding.freed_devices import CLAIM_UPDATE
from stowage.engine.state.engine_state import EngineState
from stowage.state.devices.devices import device_kind

RESOURCES: Mapping[type[DeviceObject], EventResource] = {
    ResourceClaim: EventResource.RESOURCE_CLAIM,
    DeviceClass: EventResource.DEVICE_CLASS,
    ResourceSlice: EventResource.RESOURCE_SLICE,
}


def device_object_seen(
    state: EngineState, event: DeviceObjectSeen, now: float
) -> Interruptible[Sequence[ClusterEvent]]:
    """A claim, device class or slice was added or updated: go on with bindings, move pods."""
    found, metadata = event.object, event.object.metadata
    if not metadata.name:
        subject = f"{type(found).__name__} {metadata.namespace}"
        state.outbox.report(subject, 'metadata.name: "" (expected a name)')
        return ()
    claims = state.cache.snapshot().devices.claims
    before = claims.get(metadata.namespaced_name) if isinstance(found, ResourceClaim) else None
    try:
        change = state.cache.update_device_object(found)
    except InvalidObject as invalid:
        state.outbox.report(f"{type(found).__name__} {metadata.name}", str(invalid))
        return ()
    if change.ignored:
        return ()
    if isinstance(found, ResourceClaim):
        created_claim_seen(state, metadata.namespaced_name, now)
    resource = RESOURCES[type(found)]
    object_changed(state, resource, metadata.namespaced_name, now)
    if isinstance(found, ResourceClaim) and before is not None:
        # What the scheduler has written may be newer than what the watch shows.
        after = claims.get(metadata.namespaced_name)
        yield from state.queue.move_steps(CLAIM_UPDATE, before, after, now)
        return state.queue.registered(CLAIM_UPDATE)
    action = ActionType.ADD if change.old is None else ActionType.UPDATE
    seen = ClusterEvent(resource, action)
    yield from state.queue.move_steps(seen, change.old, found, now)
    return state.queue.registered(seen)


def device_object_gone(
    state: EngineState, event: DeviceObjectGone, now: float
) -> Interruptible[Sequence[ClusterEvent]]:
    """A claim, device class or slice was deleted."""
    kind = device_kind(event.kind)
    key = f"{event.namespace}/{event.name}" if event.namespace else event.name
    claim = state.cache.snapshot().devices.claims.get(key) if kind is ResourceClaim else None
    old = state.cache.remove_device_object(kind, key)
    if kind is ResourceClaim:
        created_claim_gone(state, key, now)
    if old is None:
        return ()
    resource, gone = RESOURCES[kind], ClusterEvent(RESOURCES[kind], ActionType.DELETE)
    object_changed(state, resource, key, now)
    if claim is not None and claim.status.allocation is not None:
        # A list after a gap shows the end of a claim without the deallocation before it, and
        # perhaps without the allocation that the scheduler has written.
        free = replace(claim, status=replace(claim.status, allocation=None))
        yield from state.queue.move_steps(CLAIM_UPDATE, claim, free, now)
    yield from state.queue.move_steps(gone, old, None, now)
    if isinstance(old, ResourceClaim) and EXTENDED_RESOURCE_CLAIM in old.metadata.annotations:
        _retry_owner(state, old, gone, now)
    return state.queue.registered(gone)


def _retry_owner(state: EngineState, claim: ResourceClaim, event: ClusterEvent, now: float) -> None:
    """Retry the pod that a claim for extended resources kept from being scheduled.

    kube-scheduler deletes the claim of an attempt that ended before its time, and has no hint for
    its end: the pod waits for the flush of unschedulable pods after five minutes.
    """
    owner = controller_of(claim.metadata)
    if owner is not None:
        state.queue.try_again([owner.uid], event, now)
