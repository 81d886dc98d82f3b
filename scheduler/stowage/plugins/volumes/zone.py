"""Plugin VolumeZone: a volume with zone labels can be used in these zones only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from stowage.api.cluster_events import ActionType, ClusterEvent, EventResource, QueueingHint
from stowage.api.objects.volume import PersistentVolume, PersistentVolumeClaim, StorageClass
from stowage.api.status import SKIP, Status, unresolvable
from stowage.api.values.csi_migration import REGION, REGION_BETA, ZONE, ZONE_BETA
from stowage.api.values.selectors import Operator, Requirement
from stowage.api.values.volume_claims import WAIT_FOR_FIRST_CONSUMER, claim_class
from stowage.framework import (
    ACCEPT_ALL,
    CycleState,
    EventRegistration,
    FilterVerdict,
    NoArgs,
    PluginTraits,
    PreFilterResult,
    Rejection,
)
from stowage.framework.verdict import BoolArray
from stowage.plugins.volumes.claims import (
    claim_not_found,
    claims_of,
    class_not_found,
    uses_claim,
    volume_not_found,
)
from stowage.state.nodes.node_matching import requirement_mask
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import NodeView, Snapshot

REASON = "node(s) had no available volume zone"
_LABELS = (ZONE_BETA, REGION_BETA, ZONE, REGION)
_SUCCESSOR = {ZONE_BETA: ZONE, REGION_BETA: REGION}
_DELIMITER = "__"
_SKIPPED = PreFilterResult(SKIP)


class ZoneLabel(NamedTuple):
    """A zone or region label of a volume, and the values that a node may have."""

    key: str
    values: tuple[str, ...]


class _ZoneLabels(msgspec.Struct, frozen=True):
    """The zone and region labels of all volumes of a pod."""

    labels: tuple[ZoneLabel, ...]


class VolumeZone:
    """Rejects nodes outside the zones and regions of the pod's bound volumes."""

    name = "VolumeZone"
    traits = PluginTraits(
        reads_placed_pods=False,
        never_needs_pods=True,
        rejects_per_class=True,
        skips_per_class=True,
    )

    def __init__(self, args: NoArgs) -> None:
        del args

    def pre_filter(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult:
        """Skip if no volume has such labels; reject the pod if a claim or its volume is missing."""
        if not pod.volumes:
            return _SKIPPED
        labels: list[ZoneLabel] = []
        for used in claims_of(pod):
            if used.is_ephemeral:
                continue
            found = _volume_of(f"{pod.namespace}/{used.name}", used.name, snapshot)
            if isinstance(found, Status):
                return PreFilterResult(found)
            if found is not None:
                labels.extend(zone_labels(found))
        if not labels:
            return _SKIPPED
        state.write(_ZoneLabels(tuple(labels)))
        return PreFilterResult()

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> FilterVerdict:
        """Unresolvable where a label differs; nodes without any zone or region label pass."""
        del pod
        labelled = np.zeros(len(nodes), dtype=np.bool_)
        for key in _LABELS:
            labelled |= requirement_mask(nodes, Requirement(key, Operator.EXISTS))
        inside = np.ones(len(nodes), dtype=np.bool_)
        for label in state.read(_ZoneLabels).labels:
            inside &= _is_inside(nodes, label)
        refused = labelled & ~inside
        if not refused.any():
            return ACCEPT_ALL
        return FilterVerdict((Rejection(REASON, refused, unresolvable=True),))

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Added and changed classes, claims and volumes; added and relabelled nodes."""
        both = ActionType.ADD | ActionType.UPDATE
        node_action = ActionType.ADD | ActionType.UPDATE_NODE_LABEL
        storage_class = ClusterEvent(EventResource.STORAGE_CLASS, ActionType.ADD)
        claim = ClusterEvent(EventResource.PERSISTENT_VOLUME_CLAIM, both)
        volume = ClusterEvent(EventResource.PERSISTENT_VOLUME, both)
        return (
            EventRegistration(storage_class, after_class_added, per_class=True),
            EventRegistration(ClusterEvent(EventResource.NODE, node_action)),
            EventRegistration(claim, after_claim_changed),
            EventRegistration(volume, after_volume_changed, per_class=True),
        )


def after_class_added(_pod: PodInfo, _old: None, added: StorageClass) -> QueueingHint:
    """Queue for a class that waits for its first consumer."""
    waits = added.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
    return QueueingHint.QUEUE if waits else QueueingHint.SKIP


def after_claim_changed(
    pod: PodInfo, _old: PersistentVolumeClaim | None, new: PersistentVolumeClaim
) -> QueueingHint:
    """Queue for a claim that the pod names."""
    is_named = uses_claim(pod, new, ephemeral=False)
    return QueueingHint.QUEUE if is_named else QueueingHint.SKIP


def after_volume_changed(
    _pod: PodInfo, old: PersistentVolume | None, new: PersistentVolume
) -> QueueingHint:
    """Queue for a volume that is new or whose zone labels changed."""
    if old is None or list(zone_labels(old)) != list(zone_labels(new)):
        return QueueingHint.QUEUE
    return QueueingHint.SKIP


def zone_labels(volume: PersistentVolume) -> Iterator[ZoneLabel]:
    """The zone and region labels of a volume; a label with an empty value is ignored."""
    for key in _LABELS:
        label = volume.metadata.labels.get(key)
        if label is None:
            continue
        values = [value.strip() for value in label.split(_DELIMITER)]
        if all(values):
            yield ZoneLabel(key, tuple(sorted(set(values))))


def _volume_of(key: str, name: str, snapshot: Snapshot) -> PersistentVolume | Status | None:
    """The volume of a claim; None if the claim waits for its pod; or the rejection."""
    if not name:
        return unresolvable("PersistentVolumeClaim had no name")
    storage = snapshot.storage
    claim = storage.claims.get_api_object(key)
    if claim is None:
        return unresolvable(claim_not_found(name))
    if claim.spec.volume_name:
        volume = storage.volumes.get_api_object(claim.spec.volume_name)
        return volume or unresolvable(volume_not_found(claim.spec.volume_name))
    class_name = claim_class(claim)
    if not class_name:
        return unresolvable("PersistentVolumeClaim had no pv name and storageClass name")
    storage_class = storage.classes.get(class_name)
    if storage_class is None:
        return unresolvable(class_not_found(class_name))
    if storage_class.volume_binding_mode is None:
        return unresolvable(f'VolumeBindingMode not set for StorageClass "{class_name}"')
    if storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER:
        return None
    return unresolvable("PersistentVolume had no name")


def _is_inside(nodes: NodeView, label: ZoneLabel) -> BoolArray:
    """``bool[nodes]``: nodes that match by this label or, without it, by the one replacing it."""
    inside = requirement_mask(nodes, Requirement(label.key, Operator.IN, label.values))
    successor = _SUCCESSOR.get(label.key)
    if successor is None:
        return inside
    absent = requirement_mask(nodes, Requirement(label.key, Operator.DOES_NOT_EXIST))
    instead = requirement_mask(nodes, Requirement(successor, Operator.IN, label.values))
    either: BoolArray = inside | (absent & instead)
    return either
