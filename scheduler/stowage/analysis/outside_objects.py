"""Storage and device objects of a recording, without what recorded decisions did to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from stowage.analysis.cluster_objects import ClusterObjects
from stowage.analysis.recorded_life import RecordedLife
from stowage.api.events import (
    DeviceObjectGone,
    DeviceObjectSeen,
    Event,
    StorageGone,
    StorageSeen,
)
from stowage.api.objects.device import ResourceClaim
from stowage.api.objects.meta import controller_of
from stowage.api.objects.volume import PersistentVolume, PersistentVolumeClaim, VolumeAttachment
from stowage.api.values import claim_writes
from stowage.api.values.volume_claims import claim_class

ObjectEvent: TypeAlias = StorageSeen | StorageGone | DeviceObjectSeen | DeviceObjectGone

_CLAIM = PersistentVolumeClaim.__name__


class OutsideObjects:
    """Turns recorded events about storage and devices into those of another life.

    - A claim that waits for a pod stays as it was first seen, until the cluster itself binds it.
      Volumes that were bound to it are left out.
    - Attachments that were made after the first decision are left out.
    - A resource claim stays as it was first seen, without what recorded decisions allocated. Claims
      that the recorded scheduler made for extended resources are left out.

    Args:
        objects: The objects of the cluster.
        recorded: The whole recording.
    """

    def __init__(self, objects: ClusterObjects, recorded: RecordedLife) -> None:
        self._objects = objects
        self._recorded = recorded
        self._waiting: set[str] = set()

    def adapt(self, event: ObjectEvent, now: float) -> Sequence[Event]:
        """The events to show to the engine; the objects are changed at once."""
        if isinstance(event, StorageGone | DeviceObjectGone):
            return self._gone(event)
        found: object = event.object
        match found:
            case PersistentVolumeClaim():
                kept = self._keeps_claim(found)
            case PersistentVolume():
                kept = self._keeps_volume(found)
            case VolumeAttachment():
                # The objects of the first call were there before any decision.
                kept = now < self._recorded.decides_from or now == self._recorded.started
            case ResourceClaim():
                return self._resource_claim_seen(found)
            case _:
                kept = True
        if not kept:
            return ()
        self._objects.add(event.object)
        return (event,)

    def _keeps_claim(self, claim: PersistentVolumeClaim) -> bool:
        key = claim.metadata.namespaced_name
        if key in self._waiting:
            return False
        if not claim.spec.volume_name and claim_class(claim) in self._recorded.delayed_classes:
            self._waiting.add(key)
        return True

    def _keeps_volume(self, volume: PersistentVolume) -> bool:
        reference = volume.spec.claim_ref
        return reference is None or f"{reference.namespace}/{reference.name}" not in self._waiting

    def _resource_claim_seen(self, claim: ResourceClaim) -> Sequence[Event]:
        known = self._objects.find(ResourceClaim, claim.metadata.namespaced_name)
        if known is not None and known.metadata.uid == claim.metadata.uid:
            return ()
        if claim_writes.EXTENDED_RESOURCE_CLAIM in claim.metadata.annotations:
            owner = controller_of(claim.metadata)
            if owner is not None and self._is_decided(owner.uid):
                return ()
        if any(self._is_decided(each.uid) for each in claim.status.reserved_for):
            claim = claim_writes.deallocated(claim_writes.without_finalizer(claim))
        self._objects.add(claim)
        return (DeviceObjectSeen(claim),)

    def _is_decided(self, pod_uid: str) -> bool:
        """Whether the pod got its node in the recording, and so another one may get it here."""
        uid = self._recorded.replaces.get(pod_uid, pod_uid)
        story = self._recorded.stories.get(uid)
        return story is not None and (story.was_pending or uid != pod_uid)

    def _gone(self, event: StorageGone | DeviceObjectGone) -> Sequence[Event]:
        key = f"{event.namespace}/{event.name}" if event.namespace else event.name
        if event.kind == _CLAIM:
            self._waiting.discard(key)
        known = self._objects.remove(event.kind, key)
        return () if known is None else (event,)
