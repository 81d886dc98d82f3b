"""What the watches report of storage: into the cache, and to the pods it may help."""

from __future__ import annotations

from collections.abc import Mapping

from stowage.api.events import ActionType, ClusterEvent, EventResource, StorageGone, StorageSeen
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
from stowage.engine.binding.commitments import storage_changed
from stowage.engine.machine import Machine

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


def storage_seen(machine: Machine, event: StorageSeen, now: float) -> None:
    """Take in an object of storage, go on with pods that wait for it, wake pods it may help."""
    metadata = event.object.metadata
    if missing := _missing_name(event.object):
        subject = f"{type(event.object).__name__} {metadata.name}"
        machine.problem(subject, f'{missing}: "" (expected a name)')
        return
    change = machine.cache.update_storage(event.object)
    if change.ignored:
        return
    resource = RESOURCES[type(event.object)]
    storage_changed(machine, resource, metadata.namespaced_name, now)
    action = ActionType.ADD if change.old is None else ActionType.UPDATE
    machine.queue.move_on_event(ClusterEvent(resource, action), change.old, change.new, now)


def _missing_name(found: StorageObject) -> str:
    """The field without which there is nothing to keep the object by; empty if it is there."""
    if not found.metadata.name:
        return "metadata.name"
    if isinstance(found, VolumeAttachment) and not found.spec.node_name:
        return "spec.nodeName"
    return ""


def storage_gone(machine: Machine, event: StorageGone, now: float) -> None:
    """Forget an object of storage."""
    kind = _KINDS[event.kind]
    key = f"{event.namespace}/{event.name}" if event.namespace else event.name
    old = machine.cache.remove_storage(kind, key)
    if old is None:
        return
    resource = RESOURCES[kind]
    storage_changed(machine, resource, key, now)
    machine.queue.move_on_event(ClusterEvent(resource, ActionType.DELETE), old, None, now)
