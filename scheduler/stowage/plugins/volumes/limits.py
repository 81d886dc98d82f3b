"""Plugin NodeVolumeLimits: limits the volumes that a CSI driver attaches to a node."""

from __future__ import annotations

from collections.abc import Sequence, Set

import numpy as np

from stowage.api.cluster_events import ActionType, ClusterEvent, EventResource, QueueingHint
from stowage.api.config.feature_gates import DEFAULT_FEATURE_GATES, FeatureGates
from stowage.api.objects.volume import (
    CSIDriver,
    CSINode,
    PersistentVolumeClaim,
    VolumeAttachment,
)
from stowage.api.status import SKIP
from stowage.api.values.csi_migration import AttachedVolume, csi_volume_of_pod, is_migratable
from stowage.api.values.volume_claims import is_generated_for
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
from stowage.plugins.volumes.claims import claim_not_found, claims_of, not_owner, uses_claim
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import NodeView, Snapshot

REASON = "node(s) exceed max volume count"
_SKIPPED = PreFilterResult(SKIP)
_WANTED = PreFilterResult()


class NodeVolumeLimits:
    """Rejects nodes where the pod's new volumes would exceed the limit of their driver."""

    name = "NodeVolumeLimits"
    traits = PluginTraits(
        filters_what_ifs=True,
        never_needs_pods=True,
        rejects_per_class=True,
        skips_per_class=True,
    )

    def __init__(self, args: NoArgs, gates: FeatureGates = DEFAULT_FEATURE_GATES) -> None:
        del args
        self._needs_drivers = gates.enabled("VolumeLimitScaling")

    def pre_filter(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult:
        """Skip for pods without claims and without inline volumes migrated to CSI."""
        del state, snapshot
        return _WANTED if _counts(pod) else _SKIPPED

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> FilterVerdict:
        """Unschedulable where attached plus new volumes of a driver exceed its limit.

        As in ``CSILimits.Filter``, volumes that pods on the node use are not new, and volumes that
        are attached without such a pod count too.

        Raises:
            ValueError: A claim of the pod has no name, or belongs to another pod.
        """
        del state
        problem = _missing_claim(pod, nodes.snapshot)
        if problem:
            everywhere = np.ones(len(nodes), dtype=np.bool_)
            return FilterVerdict((Rejection(problem, everywhere, unresolvable=True),))
        by_driver: dict[str, set[AttachedVolume]] = {}
        for volume in nodes.snapshot.volume_use.volumes_of(pod):
            by_driver.setdefault(volume.driver, set()).add(volume)
        missing = _missing_drivers(nodes, sorted(by_driver)) if self._needs_drivers else ()
        exceeded: BoolArray = np.zeros(len(nodes), dtype=np.bool_)
        for driver, volumes in by_driver.items():
            limits = nodes.snapshot.csi_nodes.limits(driver)
            if limits is not None:
                new, left = new_and_left(nodes, driver, volumes, limits)
                exceeded |= (new > left) & (new > 0)
        for rejection in missing:
            exceeded &= ~rejection.mask
        if exceeded.any():
            missing = (*missing, Rejection(REASON, exceeded))
        return FilterVerdict(missing) if missing else ACCEPT_ALL

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Events that raise a limit or detach a volume, and new claims."""
        csi_node, pod = EventResource.CSI_NODE, EventResource.ASSIGNED_POD
        claim = EventResource.PERSISTENT_VOLUME_CLAIM
        attachment = EventResource.VOLUME_ATTACHMENT
        driver = ClusterEvent(EventResource.CSI_DRIVER, ActionType.UPDATE | ActionType.DELETE)
        needed = (EventRegistration(driver, after_driver_changed, per_class=True),)
        return (
            *(needed if self._needs_drivers else ()),
            EventRegistration(ClusterEvent(csi_node, ActionType.ADD)),
            EventRegistration(
                ClusterEvent(csi_node, ActionType.UPDATE),
                self._after_csi_node_updated,
                per_class=True,
            ),
            EventRegistration(
                ClusterEvent(pod, ActionType.DELETE), after_pod_deleted, per_class=True
            ),
            EventRegistration(ClusterEvent(claim, ActionType.ADD), after_claim_added),
            EventRegistration(
                ClusterEvent(attachment, ActionType.DELETE), after_attachment_deleted
            ),
        )

    def _after_csi_node_updated(self, pod: PodInfo, old: CSINode, new: CSINode) -> QueueingHint:
        """Queue for limits; where drivers may be needed, also for a driver that is new."""
        if self._needs_drivers and _drivers(new) - _drivers(old):
            return QueueingHint.QUEUE
        return after_csi_node_updated(pod, old, new)


def after_csi_node_updated(_pod: PodInfo, old: CSINode, new: CSINode) -> QueueingHint:
    """Queue if a limit is new, was raised, or is gone, which kube-scheduler takes no notice of."""
    before, after = _limits(old), _limits(new)
    is_raised = any(limit > before.get(driver, 0) for driver, limit in after.items())
    return QueueingHint.when(is_raised or bool(before.keys() - after.keys()))


def after_driver_changed(_pod: PodInfo, old: CSIDriver, new: CSIDriver | None) -> QueueingHint:
    """Queue if a driver is needed no more; kube-scheduler takes no notice of it."""
    return QueueingHint.when(_is_needed(old) and not _is_needed(new))


def after_pod_deleted(_pod: PodInfo, deleted: PodInfo, _new: None) -> QueueingHint:
    """Queue if the deleted pod was placed and may have had a volume attached."""
    had_volumes = bool(deleted.node_name) and _counts(deleted)
    return QueueingHint.QUEUE if had_volumes else QueueingHint.SKIP


def after_claim_added(pod: PodInfo, _old: None, claim: PersistentVolumeClaim) -> QueueingHint:
    """Queue for a claim that the pod uses."""
    return QueueingHint.QUEUE if uses_claim(pod, claim) else QueueingHint.SKIP


def after_attachment_deleted(pod: PodInfo, deleted: VolumeAttachment, _new: None) -> QueueingHint:
    """Queue for a detached volume of any driver if the pod has claims, else of its own drivers.

    kube-scheduler does not count the claims of ephemeral volumes here.
    """
    for volume in pod.volumes:
        if volume.persistent_volume_claim is not None or volume.ephemeral is not None:
            return QueueingHint.QUEUE
        inline = csi_volume_of_pod(volume)
        if inline is not None and inline.driver == deleted.spec.attacher:
            return QueueingHint.QUEUE
    return QueueingHint.SKIP


def _counts(pod: PodInfo) -> bool:
    """Whether some volume of a pod may have to be attached."""
    return any(
        volume.persistent_volume_claim is not None
        or volume.ephemeral is not None
        or is_migratable(volume)
        for volume in pod.volumes
    )


def _missing_claim(pod: PodInfo, snapshot: Snapshot) -> str:
    """The message for the first claim that does not exist; empty if all exist."""
    for used in claims_of(pod):
        if not used.name:
            raise ValueError("PersistentVolumeClaim had no name")
        claim = snapshot.storage.claims.get_api_object(f"{pod.namespace}/{used.name}")
        if claim is None:
            return f"looking up PVC {pod.namespace}/{used.name}: {claim_not_found(used.name)}"
        if used.is_ephemeral and not is_generated_for(claim, pod.uid):
            raise ValueError(not_owner(claim, pod))
    return ""


def new_and_left(
    nodes: NodeView, driver: str, wanted: Set[AttachedVolume], limits: Int64Array
) -> tuple[Int64Array, Int64Array]:
    """Volumes that are not in use on a node, and how many more its limit allows.

    Args:
        nodes: The nodes.
        driver: The CSI driver, or a limit of 1.12.
        wanted: The volumes of a pod.
        limits: ``int64[rows]``.

    Returns:
        Two arrays ``int64[nodes]``.
    """
    use = nodes.snapshot.volume_use
    new = np.full(nodes.snapshot.num_rows, len(wanted), dtype=np.int64)
    for volume in wanted:
        new[use.rows_with(volume)] -= 1
    attached = use.attached(driver)
    # Compare free slots: adding to the limit of a node without one would overflow.
    left = limits if attached is None else limits - attached
    new_here, left_here = nodes.take(new), nodes.take(left)
    if nodes.changes is not None:
        # Where all new volumes fit, changes to other volumes do not matter.
        more, shared = nodes.changes.volumes(driver, wanted, left < len(wanted))
        new_here, left_here = new_here - shared, left_here - more
    return new_here, left_here


def _missing_drivers(nodes: NodeView, drivers: Sequence[str]) -> tuple[Rejection, ...]:
    """Where a driver that must be on the node is not; each node for the first such driver."""
    open_nodes = np.ones(len(nodes), dtype=np.bool_)
    rejections = []
    for name in drivers:
        if not _is_needed(nodes.snapshot.storage.csi_drivers.get(name)):
            continue
        installed = nodes.snapshot.csi_nodes.installed(name)
        lacks = open_nodes if installed is None else open_nodes & ~nodes.take(installed)
        if lacks.any():
            rejections.append(Rejection(f"{name} CSI driver is not installed on the node", lacks))
        open_nodes = open_nodes & ~lacks
    return tuple(rejections)


def _is_needed(driver: CSIDriver | None) -> bool:
    return driver is not None and driver.spec.prevent_pod_scheduling_if_missing is True


def _drivers(csi_node: CSINode) -> set[str]:
    return {driver.name for driver in csi_node.spec.drivers}


def _limits(csi_node: CSINode) -> dict[str, int]:
    return {
        driver.name: driver.allocatable.count
        for driver in csi_node.spec.drivers
        if driver.allocatable is not None and driver.allocatable.count is not None
    }
