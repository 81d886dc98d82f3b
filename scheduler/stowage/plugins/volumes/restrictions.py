"""Plugin VolumeRestrictions: exclusive disks, and claims that only one pod may use."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from stowage.api.cluster_events import ActionType, ClusterEvent, EventResource, QueueingHint
from stowage.api.objects.volume import PersistentVolumeClaim
from stowage.api.status import SKIP, unresolvable
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
from stowage.framework.verdict import BoolArray, Int64Array
from stowage.plugins.volumes.claims import claim_not_found, claims_of, uses_claim
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import NodeView, Snapshot
from stowage.state.storage.volume_use import disk_conflicts

REASON_DISK = "node(s) had no available disk"
REASON_CLAIM = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode "
    "already in-use by another pod"
)
_ONE_POD = "ReadWriteOncePod"
_NOWHERE: Int64Array = np.empty(0, dtype=np.int64)
_SKIPPED = PreFilterResult(SKIP)
_WANTED = PreFilterResult()


class _Taken(msgspec.Struct, frozen=True):
    """The pod's claims that are for one pod.

    Attributes:
        claims: Their names.
        num_taken: How many of them are used by some pod on a node.
    """

    claims: frozenset[str]
    num_taken: int


class VolumeRestrictions:
    """Rejects nodes where a disk of the pod is in use, or all nodes if a claim is in use."""

    name = "VolumeRestrictions"
    traits = PluginTraits(
        filters_what_ifs=True,
        never_needs_pods=True,
        rejects_per_class=True,
        skips_per_class=True,
    )

    def __init__(self, args: NoArgs) -> None:
        del args

    def pre_filter(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult:
        """Skip without disks and conflicting claims; reject the pod if a claim does not exist."""
        if not pod.volumes:
            return _SKIPPED
        claims = set()
        num_taken = 0
        for used in claims_of(pod):
            if used.is_ephemeral:
                continue
            key = f"{pod.namespace}/{used.name}"
            claim = snapshot.storage.claims.get_api_object(key)
            if claim is None:
                return PreFilterResult(unresolvable(claim_not_found(used.name)))
            if _ONE_POD in claim.spec.access_modes and used.name not in claims:
                claims.add(used.name)
                num_taken += snapshot.volume_use.is_claim_used(key, snapshot.exists)
        if not num_taken and not any(_needs_check(pod)):
            return _SKIPPED
        state.write(_Taken(frozenset(claims), num_taken))
        return _WANTED

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> FilterVerdict:
        """Unschedulable where a disk is in use, or where a claim of the pod is in use."""
        rejections = []
        elsewhere = np.ones(len(nodes), dtype=np.bool_)
        in_conflict = _in_conflict(pod, nodes)
        if in_conflict is not None:
            rejections.append(Rejection(REASON_DISK, in_conflict))
            elsewhere = ~in_conflict
        taken = _num_taken(state.read(_Taken), nodes) > 0
        if taken.any():
            rejections.append(Rejection(REASON_CLAIM, elsewhere & taken))
        return FilterVerdict(tuple(rejections)) if rejections else ACCEPT_ALL

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Deleted pods, added nodes, added claims."""
        pod, node = EventResource.ASSIGNED_POD, EventResource.NODE
        claim = EventResource.PERSISTENT_VOLUME_CLAIM
        return (
            EventRegistration(ClusterEvent(pod, ActionType.DELETE), after_pod_deleted),
            EventRegistration(ClusterEvent(node, ActionType.ADD)),
            EventRegistration(ClusterEvent(claim, ActionType.ADD), after_claim_added),
        )


def _in_conflict(pod: PodInfo, nodes: NodeView) -> BoolArray | None:
    """``bool[nodes]``: where a disk of the pod is in use; None if nowhere."""
    before = nodes.snapshot.volume_use.conflicts(pod.volumes)
    changes = nodes.changes
    if changes is None:
        return None if before is None else nodes.take(before) > 0

    def conflicts_with(other: PodInfo) -> int:
        return disk_conflicts(pod.volumes, other.volumes)

    among = _NOWHERE if before is None else np.flatnonzero(before)
    change = changes.sum_by_pod("conflicting disks", conflicts_with, among)
    in_conflict: BoolArray = (change if before is None else nodes.take(before) + change) > 0
    return in_conflict if in_conflict.any() else None


def _num_taken(taken: _Taken, nodes: NodeView) -> Int64Array:
    """``int64[nodes]``: number of exclusive claims in use (``conflictingPVCRefCount``).

    A pod that comes or goes counts by the names of its claims alone, in whatever namespace:
    ``conflictingPVCRefCountForPod`` of v1.36.
    """
    numbers: Int64Array = np.full(len(nodes), taken.num_taken, dtype=np.int64)
    if nodes.changes is None or not taken.claims:
        return numbers

    def num_named(other: PodInfo) -> int:
        return sum(
            volume.persistent_volume_claim is not None
            and volume.persistent_volume_claim.claim_name in taken.claims
            for volume in other.volumes
        )

    among = nodes.snapshot.volume_use.users_of_names(taken.claims)
    return numbers + nodes.changes.sum_by_pod("claims for one pod", num_named, among)


def after_pod_deleted(pod: PodInfo, deleted: PodInfo, _new: None) -> QueueingHint:
    """Queue for a deleted pod that used a disk of the pod, or a claim of its namespace.

    kube-scheduler requeues for no pod of another namespace, though its disks are in conflict, too.
    """
    if disk_conflicts(pod.volumes, deleted.volumes):
        return QueueingHint.QUEUE
    if deleted.namespace != pod.namespace:
        return QueueingHint.SKIP
    freed = {used.name for used in claims_of(deleted) if not used.is_ephemeral}
    wanted = {used.name for used in claims_of(pod) if not used.is_ephemeral}
    return QueueingHint.QUEUE if freed & wanted else QueueingHint.SKIP


def after_claim_added(pod: PodInfo, _old: None, claim: PersistentVolumeClaim) -> QueueingHint:
    """Queue for a claim that the pod names."""
    is_named = uses_claim(pod, claim, ephemeral=False)
    return QueueingHint.QUEUE if is_named else QueueingHint.SKIP


def _needs_check(pod: PodInfo) -> list[bool]:
    """The volumes that are disks of the four exclusive kinds."""
    return [
        each.gce_persistent_disk is not None
        or each.aws_elastic_block_store is not None
        or each.rbd is not None
        or each.iscsi is not None
        for each in pod.volumes
    ]
