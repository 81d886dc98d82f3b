"""Plugins MaxEBSVolumeCount, MaxGCEPDVolumeCount, MaxAzureDiskVolumeCount, MaxCSIVolumeCount.

Predicates of kube-scheduler 1.12. They count in-tree volumes as what they are, while
NodeVolumeLimits counts them as volumes of the CSI driver that they are migrated to. The limits are
resources in the node's allocatable; without one, a number that is compiled in or configured.

What is later than 1.12: a claim without a volume counts for the provisioner of its class (1.14;
1.12 counted it for every kind), and MaxCSIVolumeCount reads limits of CSINode objects (1.14).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

import numpy as np

from stowage.api.cluster_events import ActionType, ClusterEvent, EventResource, QueueingHint
from stowage.api.config.errors import ConfigError
from stowage.api.config.types import ConfigStruct
from stowage.api.objects.node import Node
from stowage.api.status import SKIP
from stowage.api.values.attach_limits import (
    AZURE_LIMIT,
    CSI_LIMIT_PREFIX,
    EBS_LIMIT,
    GCE_LIMIT,
    csi_limit,
)
from stowage.api.values.csi_migration import AttachedVolume
from stowage.api.values.quantity import quantity_value
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
from stowage.plugins.volumes.limits import REASON, new_and_left
from stowage.state.nodes.node_values import NodeValues
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import NodeView, Snapshot
from stowage.state.storage.csi_nodes import NO_LIMIT

MAX_EBS_VOLUMES = 39
MAX_EBS_VOLUMES_NITRO = 25
MAX_GCE_DISKS = 16
MAX_AZURE_DISKS = 16

_NITRO = re.compile(r"^[cmr]5.*|t3|z1d")
"""Instance types with fewer slots for EBS volumes (``EBSNitroLimitRegex`` of 1.12)."""
_INSTANCE_TYPES = ("beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type")

_SKIPPED = PreFilterResult(SKIP)
_WANTED = PreFilterResult()
_TRAITS = PluginTraits(filters_what_ifs=True, rejects_per_class=True, skips_per_class=True)

DefaultLimit: TypeAlias = Callable[[Node], int]


class MaxVolumeCountArgs(ConfigStruct, frozen=True):
    """Arguments of the plugins that count disks of a cloud.

    Attributes:
        max_volumes: The limit of nodes whose allocatable has none. ``KUBE_MAX_PD_VOLS`` of 1.12;
            None for the default of the kind.
    """

    max_volumes: int | None = None

    def validate(self) -> Sequence[ConfigError]:
        """An error if the limit is not positive."""
        if self.max_volumes is None or self.max_volumes > 0:
            return ()
        return (ConfigError("maxVolumes", self.max_volumes, "greater than 0"),)


class VolumeCountFilter:
    """Rejects nodes whose volumes of a kind and those of the pod would exceed the limit.

    Args:
        name: The plugin's name.
        resource: The resource that the volumes count against.
        default_limit: The limit of a node whose allocatable does not have the resource.
    """

    traits = _TRAITS

    def __init__(self, name: str, resource: str, default_limit: DefaultLimit) -> None:
        self.name = name
        self._resource = resource
        self._limits = NodeValues(partial(_limit_of_node, resource, default_limit))

    def pre_filter(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult:
        """Skip for pods without volumes."""
        del state, snapshot
        return _WANTED if pod.volumes else _SKIPPED

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> FilterVerdict:
        """Unschedulable where used plus new volumes exceed the limit.

        As in ``MaxPDVolumeCountChecker.predicate``, a node that is beyond its limit is rejected
        even if it has all volumes of the pod already.
        """
        del state
        wanted = _wanted(pod, nodes).get(self._resource)
        if not wanted:
            return ACCEPT_ALL
        limits = self._limits.by_row(nodes.snapshot)
        new, left = new_and_left(nodes, self._resource, wanted, limits)
        return _rejected(new > left)

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Events that detach a volume, raise a limit, or turn a claim into a volume in use."""
        return _EVENTS


class MaxCSIVolumeCount:
    """Rejects nodes where the pod's new volumes would exceed the limit of their CSI driver.

    The limit of a CSINode comes before the node's allocatable. Only volumes that pods on the node
    use count, and only those of CSI drivers, unlike in NodeVolumeLimits.
    """

    name = "MaxCSIVolumeCount"
    traits = _TRAITS

    def __init__(self, args: NoArgs) -> None:
        del args
        self._allocatable: dict[str, NodeValues] = {}

    def pre_filter(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult:
        """Skip for pods without volumes."""
        del state, snapshot
        return _WANTED if pod.volumes else _SKIPPED

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> FilterVerdict:
        """Unschedulable where a driver has a limit and new volumes exceed it."""
        del state
        exceeded: BoolArray = np.zeros(len(nodes), dtype=np.bool_)
        for counted, wanted in _wanted(pod, nodes).items():
            limits = self._limits(counted, nodes.snapshot)
            if limits is not None:
                new, left = new_and_left(nodes, counted, wanted, limits)
                exceeded |= (new > left) & (new > 0)
        return _rejected(exceeded)

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Events that detach a volume, raise a limit, or turn a claim into a volume in use."""
        return _EVENTS

    def _limits(self, counted: str, snapshot: Snapshot) -> Int64Array | None:
        """``int64[rows]``: `NO_LIMIT` for nodes without a limit; None if no node has a limit."""
        if not counted.startswith(CSI_LIMIT_PREFIX):
            return None
        driver = counted.removeprefix(CSI_LIMIT_PREFIX)
        of_csi_nodes = snapshot.csi_nodes.limits(driver)
        resource = csi_limit(driver)
        if snapshot.resources.index_of(resource) is None:
            return of_csi_nodes
        known = self._allocatable.get(resource)
        if known is None:
            known = NodeValues(partial(_limit_of_node, resource, lambda _: NO_LIMIT))
            self._allocatable[resource] = known
        allocatable = known.by_row(snapshot)
        if of_csi_nodes is None:
            return allocatable
        return np.where(of_csi_nodes == NO_LIMIT, allocatable, of_csi_nodes)


def _wanted(pod: PodInfo, nodes: NodeView) -> dict[str, set[AttachedVolume]]:
    """The volumes of a pod by what they count as."""
    wanted: dict[str, set[AttachedVolume]] = {}
    for volume in nodes.snapshot.volume_use.volumes_of(pod):
        wanted.setdefault(volume.driver, set()).add(volume)
    return wanted


def _rejected(exceeded: BoolArray) -> FilterVerdict:
    return FilterVerdict((Rejection(REASON, exceeded),)) if exceeded.any() else ACCEPT_ALL


def _limit_of_node(resource: str, default_limit: DefaultLimit, node: Node) -> int:
    limit = node.status.allocatable.get(resource)
    return default_limit(node) if limit is None else quantity_value(limit)


def max_ebs_volumes(node: Node) -> int:
    """The default limit of EBS volumes by the node's instance type (``getMaxEBSVolume``)."""
    labels = node.metadata.labels
    instance_type = next((labels[key] for key in _INSTANCE_TYPES if key in labels), "")
    return MAX_EBS_VOLUMES_NITRO if _NITRO.search(instance_type) else MAX_EBS_VOLUMES


def after_pod_deleted(_pod: PodInfo, deleted: PodInfo, _new: None) -> QueueingHint:
    """Queue if the deleted pod was placed and had volumes."""
    return QueueingHint.when(bool(deleted.node_name) and bool(deleted.volumes))


_RAISES_A_LIMIT = ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE | ActionType.UPDATE_NODE_LABEL
_CHANGES_A_CLAIM = ActionType.ADD | ActionType.UPDATE | ActionType.DELETE
_EVENTS = (
    EventRegistration(ClusterEvent(EventResource.NODE, _RAISES_A_LIMIT)),
    EventRegistration(ClusterEvent(EventResource.CSI_NODE, ActionType.ALL)),
    EventRegistration(
        ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE),
        after_pod_deleted,
        per_class=True,
    ),
    EventRegistration(ClusterEvent(EventResource.PERSISTENT_VOLUME_CLAIM, _CHANGES_A_CLAIM)),
    EventRegistration(ClusterEvent(EventResource.PERSISTENT_VOLUME, _CHANGES_A_CLAIM)),
    EventRegistration(ClusterEvent(EventResource.STORAGE_CLASS, _CHANGES_A_CLAIM)),
)


def max_ebs_volume_count(args: MaxVolumeCountArgs) -> VolumeCountFilter:
    """Limits EBS volumes: 39, or 25 on some instance types."""
    return _limiting("MaxEBSVolumeCount", EBS_LIMIT, args, max_ebs_volumes)


def max_gce_pd_volume_count(args: MaxVolumeCountArgs) -> VolumeCountFilter:
    """Limits GCE disks: 16."""
    return _limiting("MaxGCEPDVolumeCount", GCE_LIMIT, args, lambda _: MAX_GCE_DISKS)


def max_azure_disk_volume_count(args: MaxVolumeCountArgs) -> VolumeCountFilter:
    """Limits Azure disks: 16."""
    return _limiting("MaxAzureDiskVolumeCount", AZURE_LIMIT, args, lambda _: MAX_AZURE_DISKS)


def _limiting(
    name: str, resource: str, args: MaxVolumeCountArgs, default_limit: DefaultLimit
) -> VolumeCountFilter:
    configured = args.max_volumes
    if configured is None:
        return VolumeCountFilter(name, resource, default_limit)
    return VolumeCountFilter(name, resource, lambda _: configured)
