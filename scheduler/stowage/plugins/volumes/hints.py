"""Queueing hints of VolumeBinding: events that may make a pod it rejected schedulable."""

from __future__ import annotations

from stowage.api.cluster_events import QueueingHint
from stowage.api.objects.volume import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolumeClaim,
    StorageClass,
)
from stowage.api.values.csi_migration import MIGRATED_PLUGINS
from stowage.plugins.volumes.claims import uses_claim
from stowage.plugins.volumes.provisioning import volume_limit
from stowage.state.pods.pod_info import PodInfo


def after_class_changed(_pod: PodInfo, old: StorageClass | None, new: StorageClass) -> QueueingHint:
    """Queue for a new class or changed topologies."""
    return _queue_if(old is None or old.allowed_topologies != new.allowed_topologies)


def after_claim_changed(
    pod: PodInfo, _old: PersistentVolumeClaim | None, new: PersistentVolumeClaim
) -> QueueingHint:
    """Queue for a claim that the pod uses."""
    return _queue_if(uses_claim(pod, new))


def after_csi_node_changed(_pod: PodInfo, old: CSINode | None, new: CSINode) -> QueueingHint:
    """Queue for a new CSINode or changed migrated plugins."""
    if old is None:
        return QueueingHint.QUEUE
    before = old.metadata.annotations.get(MIGRATED_PLUGINS, "")
    return _queue_if(before != new.metadata.annotations.get(MIGRATED_PLUGINS, ""))


def after_csi_driver_changed(_pod: PodInfo, old: CSIDriver, new: CSIDriver | None) -> QueueingHint:
    """Queue if the scheduler stops checking the driver's storage capacity.

    kube-scheduler requeues only pods with an inline volume of the driver, for which it checks no
    capacity, and none when the driver is deleted.
    """
    return _queue_if(_checks_capacity(old) and not _checks_capacity(new))


def after_capacity_changed(
    _pod: PodInfo, old: CSIStorageCapacity | None, new: CSIStorageCapacity
) -> QueueingHint:
    """Queue for a new capacity object, or one that allows larger volumes."""
    if old is None:
        return QueueingHint.QUEUE
    before, after = volume_limit(old), volume_limit(new)
    return _queue_if(after is not None and (before is None or after > before))


def _checks_capacity(driver: CSIDriver | None) -> bool:
    return driver is not None and bool(driver.spec.storage_capacity)


def _queue_if(helps: bool) -> QueueingHint:
    return QueueingHint.QUEUE if helps else QueueingHint.SKIP
