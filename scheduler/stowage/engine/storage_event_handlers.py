"""Handlers of storage events: update the cache, continue bindings, and move waiting pods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stowage.api.cluster_events import ActionType, ClusterEvent, EventResource
from stowage.api.events import StorageGone, StorageSeen
from stowage.api.interruptible import Interruptible
from stowage.api.objects.volume import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    StorageObject,
    VolumeAttachment,
)
from stowage.engine.binding.event_handlers import object_changed
from stowage.engine.state.engine_state import EngineState

RESOURCES: Mapping[type[StorageObject], EventResource] = {
    PersistentVolumeClaim: EventResource.PERSISTENT_VOLUME_CLAIM,
    PersistentVolume: EventResource.PERSISTENT_VOLUME,
    StorageClass: EventResource.STORAGE_CLASS,
    CSINode: EventResource.CSI_NODE,
    CSIDriver: EventResource.CSI_DRIVER,
    CSIStorageCapacity: EventResource.CSI_STORAGE_CAPACITY,
    VolumeAttachment: EventResource.VOLUME_ATTACHMENT,
}
_KINDS = {kind.__name__: kind for kind in RESOURCES}


def storage_seen(
    state: EngineState, event: StorageSeen, now: float
) -> Interruptible[Sequence[ClusterEvent]]:
    """A storage object was added or updated: continue bindings that wait for it, move pods."""
    metadata = event.object.metadata
    if missing := _missing_name(event.object):
        subject = f"{type(event.object).__name__} {metadata.name}"
        state.outbox.report(subject, f'{missing}: "" (expected a name)')
        return ()
    change = state.cache.update_storage(event.object)
    if change.ignored:
        return ()
    resource = RESOURCES[type(event.object)]
    object_changed(state, resource, metadata.namespaced_name, now)
    action = ActionType.ADD if change.old is None else ActionType.UPDATE
    seen = ClusterEvent(resource, action)
    yield from state.queue.move_steps(seen, change.old, change.new, now)
    return state.queue.registered(seen)


def _missing_name(found: StorageObject) -> str:
    """The field that has to name something and is empty; an empty string if all fields are set."""
    if not found.metadata.name:
        return "metadata.name"
    if isinstance(found, VolumeAttachment) and not found.spec.node_name:
        return "spec.nodeName"
    return ""


def storage_gone(
    state: EngineState, event: StorageGone, now: float
) -> Interruptible[Sequence[ClusterEvent]]:
    """A storage object was deleted."""
    kind = _KINDS[event.kind]
    key = f"{event.namespace}/{event.name}" if event.namespace else event.name
    old = state.cache.remove_storage(kind, key)
    if old is None:
        return ()
    resource = RESOURCES[kind]
    object_changed(state, resource, key, now)
    gone = ClusterEvent(resource, ActionType.DELETE)
    yield from state.queue.move_steps(gone, old, None, now)
    return state.queue.registered(gone)
