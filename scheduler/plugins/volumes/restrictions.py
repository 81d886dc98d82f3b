"""VolumeRestrictions: some disks are for one pod a node, some claims for one pod at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from scheduler.api.events import ActionType, ClusterEvent, EventResource, QueueingHint
from scheduler.api.status import SKIP, unresolvable
from scheduler.api.volume import PersistentVolumeClaim
from scheduler.framework import (
    ACCEPT_ALL,
    CycleState,
    EventRegistration,
    FilterVerdict,
    NoArgs,
    PreFilterResult,
    Reads,
    Rejection,
)
from scheduler.plugins.volumes.claims import claim_not_found, claims_of, uses_claim
from scheduler.state.pod_info import PodInfo
from scheduler.state.snapshot import NodeView, Snapshot
from scheduler.state.volume_use import disk_uses

REASON_DISK = "node(s) had no available disk"
REASON_CLAIM = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode "
    "already in-use by another pod"
)
_ONE_POD = "ReadWriteOncePod"
_SKIPPED = PreFilterResult(SKIP)
_WANTED = PreFilterResult()


@dataclass(frozen=True, slots=True)
class _Taken:
    """Whether a claim that is for one pod is used by another."""

    is_claim_taken: bool


class VolumeRestrictions:
    """Refuses nodes where a disk of the pod is in use; all nodes if such a claim is in use."""

    name = "VolumeRestrictions"
    filter_reads = Reads.CLUSTER

    def __init__(self, args: NoArgs) -> None:
        del args

    def pre_filter(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult:
        """Skip without disks, unless a claim for one pod is taken; a missing claim is refused."""
        if not pod.volumes:
            return _SKIPPED
        is_taken = False
        for used in claims_of(pod):
            if used.is_ephemeral:
                continue
            key = f"{pod.namespace}/{used.name}"
            claim = snapshot.storage.claims.seen(key)
            if claim is None:
                return PreFilterResult(unresolvable(claim_not_found(used.name)))
            if _ONE_POD in claim.spec.access_modes:
                is_taken |= snapshot.volume_use.is_claim_used(key, snapshot.exists)
        if not is_taken and not any(_needs_check(pod)):
            return _SKIPPED
        state.write(_Taken(is_taken))
        return _WANTED

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> FilterVerdict:
        """Unschedulable where a disk conflicts; elsewhere too if a claim is taken."""
        rejections = []
        elsewhere = np.ones(len(nodes), dtype=np.bool_)
        conflicts = nodes.snapshot.volume_use.in_conflict(pod.volumes)
        if conflicts is not None:
            refused = nodes.take(conflicts)
            rejections.append(Rejection(REASON_DISK, refused))
            elsewhere = ~refused
        if state.read(_Taken).is_claim_taken:
            rejections.append(Rejection(REASON_CLAIM, elsewhere))
        return FilterVerdict(tuple(rejections)) if rejections else ACCEPT_ALL

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Pods that go, nodes and claims that come."""
        pod, node = EventResource.ASSIGNED_POD, EventResource.NODE
        claim = EventResource.PERSISTENT_VOLUME_CLAIM
        return (
            EventRegistration(ClusterEvent(pod, ActionType.DELETE), after_pod_deleted),
            EventRegistration(ClusterEvent(node, ActionType.ADD)),
            EventRegistration(ClusterEvent(claim, ActionType.ADD), after_claim_added),
        )


def after_pod_deleted(pod: PodInfo, deleted: PodInfo, _new: None) -> QueueingHint:
    """A pod of the namespace that had a disk or a claim of this one."""
    if deleted.namespace != pod.namespace:
        return QueueingHint.SKIP
    gone = {use.disk: use.is_shared for use in disk_uses(deleted.volumes)}
    for use in disk_uses(pod.volumes):
        if use.disk in gone and not (use.is_shared and gone[use.disk]):
            return QueueingHint.QUEUE
    freed = {used.name for used in claims_of(deleted) if not used.is_ephemeral}
    wanted = {used.name for used in claims_of(pod) if not used.is_ephemeral}
    return QueueingHint.QUEUE if freed & wanted else QueueingHint.SKIP


def after_claim_added(pod: PodInfo, _old: None, claim: PersistentVolumeClaim) -> QueueingHint:
    """A claim that the pod names."""
    is_named = uses_claim(pod, claim, ephemeral=False)
    return QueueingHint.QUEUE if is_named else QueueingHint.SKIP


def _needs_check(pod: PodInfo) -> list[bool]:
    """Which volumes are disks of the four kinds."""
    return [
        each.gce_persistent_disk is not None
        or each.aws_elastic_block_store is not None
        or each.rbd is not None
        or each.iscsi is not None
        for each in pod.volumes
    ]
