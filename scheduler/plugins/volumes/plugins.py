"""VolumeRestrictions, NodeVolumeLimits, VolumeBinding and VolumeZone, as far as pods pass them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from scheduler.api.config import ConfigError
from scheduler.api.config_types import ConfigStruct
from scheduler.api.events import ActionType, ClusterEvent, EventResource
from scheduler.api.pod import PodSpec
from scheduler.api.status import SKIP, Status, unresolvable
from scheduler.framework import CycleState, EventRegistration, NoArgs, PreFilterResult
from scheduler.state.pod_info import PodInfo
from scheduler.state.snapshot import NodeView, Snapshot

CLAIMS_NOT_SUPPORTED = "pod uses PersistentVolumeClaims, which this version does not place yet"
_SKIPPED = PreFilterResult(SKIP)

#: Inline disks that two pods may not both write, by field of the volume.
EXCLUSIVE_DISKS = {
    "gce_persistent_disk": "gcePersistentDisk",
    "aws_elastic_block_store": "awsElasticBlockStore",
    "rbd": "rbd",
    "iscsi": "iscsi",
}
#: Inline disks that count against a CSI driver's limit on the node.
COUNTED_DISKS = {
    "azure_disk": "azureDisk",
    "azure_file": "azureFile",
    "cinder": "cinder",
    "vsphere_volume": "vsphereVolume",
    "portworx_volume": "portworxVolume",
    "csi": "csi",
}


class VolumeBindingArgs(ConfigStruct, frozen=True):
    """How long PreBind waits for volumes; without effect as long as none is bound."""

    bind_timeout_seconds: int = 600

    def validate(self) -> Iterator[ConfigError]:
        """The time must not be negative."""
        if self.bind_timeout_seconds < 0:
            yield ConfigError("bindTimeoutSeconds", self.bind_timeout_seconds, "0 or more")


class VolumeRestrictions:
    """Stands where disks that only one pod may use are kept apart."""

    name = "VolumeRestrictions"

    def __init__(self, args: NoArgs) -> None:
        del args

    def pre_filter(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult:
        """Skip unless the pod mounts such a disk inline; then unresolvable."""
        del state, snapshot
        return _refuse_inline(pod.spec, EXCLUSIVE_DISKS)

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Pods that go, nodes and claims that come."""
        return _registrations(
            (EventResource.ASSIGNED_POD, ActionType.DELETE),
            (EventResource.NODE, ActionType.ADD),
            (EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD | ActionType.UPDATE),
        )


class NodeVolumeLimits:
    """Stands where the volumes of a node are counted against the limits of their drivers."""

    name = "NodeVolumeLimits"

    def __init__(self, args: NoArgs) -> None:
        del args

    def pre_filter(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult:
        """Skip unless the pod mounts a counted disk inline; then unresolvable."""
        del state, snapshot
        return _refuse_inline(pod.spec, COUNTED_DISKS)

    def events_to_register(self) -> Sequence[EventRegistration]:
        """More room for volumes."""
        return _registrations(
            (EventResource.CSI_NODE, ActionType.ADD | ActionType.UPDATE),
            (EventResource.ASSIGNED_POD, ActionType.DELETE),
            (EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD),
            (EventResource.VOLUME_ATTACHMENT, ActionType.DELETE),
        )


class VolumeBinding:
    """Stands where claims are matched with volumes."""

    name = "VolumeBinding"

    def __init__(self, args: VolumeBindingArgs) -> None:
        del args

    def pre_filter(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult:
        """Skip for pods without claims, unresolvable for pods with claims."""
        del state, snapshot
        if has_claims(pod.spec):
            return PreFilterResult(unresolvable(CLAIMS_NOT_SUPPORTED))
        return _SKIPPED

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Status:
        """Skip: storage capacity is not scored by default."""
        del state, pod, nodes
        return SKIP

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Whatever may bring volumes in reach."""
        both = ActionType.ADD | ActionType.UPDATE
        return _registrations(
            (EventResource.STORAGE_CLASS, both),
            (EventResource.PERSISTENT_VOLUME_CLAIM, both),
            (EventResource.PERSISTENT_VOLUME, both),
            (EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL),
            (EventResource.CSI_NODE, both),
            (EventResource.CSI_DRIVER, ActionType.UPDATE),
            (EventResource.CSI_STORAGE_CAPACITY, both),
        )


class VolumeZone:
    """Stands where the zones of bound volumes are compared with the node's."""

    name = "VolumeZone"

    def __init__(self, args: NoArgs) -> None:
        del args

    def pre_filter(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult:
        """Skip: pods with claims do not get past VolumeBinding."""
        del state, snapshot
        if has_claims(pod.spec):
            return PreFilterResult(unresolvable(CLAIMS_NOT_SUPPORTED))
        return _SKIPPED

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Classes, claims and volumes that come or change, nodes that come or change labels."""
        both = ActionType.ADD | ActionType.UPDATE
        return _registrations(
            (EventResource.STORAGE_CLASS, ActionType.ADD),
            (EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL),
            (EventResource.PERSISTENT_VOLUME_CLAIM, both),
            (EventResource.PERSISTENT_VOLUME, both),
        )


def has_claims(spec: PodSpec) -> bool:
    """Whether the pod uses claims, by name or through ephemeral volumes."""
    return bool(spec.volumes) and any(
        volume.persistent_volume_claim is not None or volume.ephemeral is not None
        for volume in spec.volumes
    )


def _refuse_inline(spec: PodSpec, kinds: dict[str, str]) -> PreFilterResult:
    for volume in spec.volumes:
        for field, kind in kinds.items():
            if getattr(volume, field) is not None:
                reason = f"pod uses an inline {kind} volume, which this version does not place yet"
                return PreFilterResult(unresolvable(reason))
    return _SKIPPED


def _registrations(*events: tuple[EventResource, ActionType]) -> tuple[EventRegistration, ...]:
    return tuple(EventRegistration(ClusterEvent(resource, action)) for resource, action in events)
