"""Volumes in pods, persistent volumes and claims, storage classes and CSI objects."""

from typing import TypeAlias

import msgspec

from stowage.api.objects.meta import (
    ApiStruct,
    Int64,
    LabelSelector,
    ObjectMeta,
    ObjectReference,
    Quantities,
)
from stowage.api.objects.node import NodeSelector


class PersistentVolumeClaimVolumeSource(ApiStruct, frozen=True):
    """A volume backed by a claim of the pod's namespace."""

    claim_name: str = ""
    read_only: bool = False


class EphemeralVolumeSource(ApiStruct, frozen=True):
    """A volume backed by a claim named ``<pod>-<volume>`` and owned by the pod."""


class GCEPersistentDiskVolumeSource(ApiStruct, frozen=True):
    """A GCE disk, in a pod or a persistent volume."""

    pd_name: str = ""
    partition: Int64 = 0
    read_only: bool = False


class AWSElasticBlockStoreVolumeSource(ApiStruct, frozen=True):
    """An EBS volume, in a pod or a persistent volume."""

    volume_id: str = msgspec.field(default="", name="volumeID")
    partition: Int64 = 0
    read_only: bool = False


class RBDVolumeSource(ApiStruct, frozen=True):
    """A Ceph block device, in a pod or a persistent volume."""

    monitors: tuple[str, ...] = ()
    image: str = ""
    pool: str = ""
    read_only: bool = False


class ISCSIVolumeSource(ApiStruct, frozen=True):
    """An iSCSI disk, in a pod or a persistent volume."""

    iqn: str = ""
    read_only: bool = False


class AzureDiskVolumeSource(ApiStruct, frozen=True):
    """An Azure disk, in a pod or a persistent volume."""

    disk_name: str = ""
    disk_uri: str = msgspec.field(default="", name="diskURI")


class AzureFileVolumeSource(ApiStruct, frozen=True):
    """An Azure file share, in a pod or a persistent volume."""


class CinderVolumeSource(ApiStruct, frozen=True):
    """An OpenStack volume, in a pod or a persistent volume."""

    volume_id: str = msgspec.field(default="", name="volumeID")


class VsphereVirtualDiskVolumeSource(ApiStruct, frozen=True):
    """A vSphere disk, in a pod or a persistent volume."""


class PortworxVolumeSource(ApiStruct, frozen=True):
    """A Portworx volume, in a pod or a persistent volume."""

    volume_id: str = msgspec.field(default="", name="volumeID")


class CSIVolumeSource(ApiStruct, frozen=True):
    """An inline CSI volume of a pod."""

    driver: str = ""


class ImageVolumeSource(ApiStruct, frozen=True):
    """A volume holding the content of an image."""

    reference: str = ""


class Volume(ApiStruct, frozen=True):
    """A volume of a pod; all fields are None for sources that scheduling does not read."""

    name: str = ""
    persistent_volume_claim: PersistentVolumeClaimVolumeSource | None = None
    ephemeral: EphemeralVolumeSource | None = None
    gce_persistent_disk: GCEPersistentDiskVolumeSource | None = None
    aws_elastic_block_store: AWSElasticBlockStoreVolumeSource | None = None
    rbd: RBDVolumeSource | None = None
    iscsi: ISCSIVolumeSource | None = None
    azure_disk: AzureDiskVolumeSource | None = None
    azure_file: AzureFileVolumeSource | None = None
    cinder: CinderVolumeSource | None = None
    vsphere_volume: VsphereVirtualDiskVolumeSource | None = None
    portworx_volume: PortworxVolumeSource | None = None
    csi: CSIVolumeSource | None = None
    image: ImageVolumeSource | None = None


class CSIPersistentVolumeSource(ApiStruct, frozen=True):
    """A volume of a CSI driver."""

    driver: str = ""
    volume_handle: str = ""


class LocalVolumeSource(ApiStruct, frozen=True):
    """A disk or directory of one node."""

    path: str = ""


class VolumeNodeAffinity(ApiStruct, frozen=True):
    """The nodes that can reach a volume."""

    required: NodeSelector | None = None


class PersistentVolumeSpec(ApiStruct, frozen=True):
    """PersistentVolumeSpec."""

    capacity: Quantities = msgspec.field(default_factory=dict)
    access_modes: tuple[str, ...] = ()
    claim_ref: ObjectReference | None = None
    node_affinity: VolumeNodeAffinity | None = None
    storage_class_name: str = ""
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None
    csi: CSIPersistentVolumeSource | None = None
    local: LocalVolumeSource | None = None
    gce_persistent_disk: GCEPersistentDiskVolumeSource | None = None
    aws_elastic_block_store: AWSElasticBlockStoreVolumeSource | None = None
    rbd: RBDVolumeSource | None = None
    iscsi: ISCSIVolumeSource | None = None
    azure_disk: AzureDiskVolumeSource | None = None
    azure_file: AzureFileVolumeSource | None = None
    cinder: CinderVolumeSource | None = None
    vsphere_volume: VsphereVirtualDiskVolumeSource | None = None
    portworx_volume: PortworxVolumeSource | None = None


class PersistentVolumeStatus(ApiStruct, frozen=True):
    """Phase of a persistent volume."""

    phase: str = ""


class PersistentVolume(ApiStruct, frozen=True):
    """A persistent volume."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()


class VolumeResourceRequirements(ApiStruct, frozen=True):
    """The resources that a claim requests."""

    requests: Quantities = msgspec.field(default_factory=dict)


class PersistentVolumeClaimSpec(ApiStruct, frozen=True):
    """PersistentVolumeClaimSpec; ``storage_class_name`` None and ``""`` differ."""

    access_modes: tuple[str, ...] = ()
    resources: VolumeResourceRequirements = VolumeResourceRequirements()
    selector: LabelSelector | None = None
    storage_class_name: str | None = None
    volume_name: str = ""
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None


class PersistentVolumeClaimStatus(ApiStruct, frozen=True):
    """The phase of a claim, and its current capacity and class."""

    phase: str = ""
    capacity: Quantities = msgspec.field(default_factory=dict)


class PersistentVolumeClaim(ApiStruct, frozen=True):
    """A persistent volume claim."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()


class TopologySelectorLabelRequirement(ApiStruct, frozen=True):
    """A label and its allowed values."""

    key: str = ""
    values: tuple[str, ...] = ()


class TopologySelectorTerm(ApiStruct, frozen=True):
    """Label requirements that must all hold."""

    match_label_expressions: tuple[TopologySelectorLabelRequirement, ...] = ()


class StorageClass(ApiStruct, frozen=True):
    """A storage class."""

    metadata: ObjectMeta = ObjectMeta()
    provisioner: str = ""
    volume_binding_mode: str | None = None
    allowed_topologies: tuple[TopologySelectorTerm, ...] = ()


class VolumeNodeResources(ApiStruct, frozen=True):
    """The volume limit of a driver on a node; no count means no limit."""

    count: Int64 | None = None


class CSINodeDriver(ApiStruct, frozen=True):
    """A CSI driver on a node."""

    name: str = ""
    topology_keys: tuple[str, ...] = ()
    allocatable: VolumeNodeResources | None = None


class CSINodeSpec(ApiStruct, frozen=True):
    """The CSI drivers on a node."""

    drivers: tuple[CSINodeDriver, ...] = ()


class CSINode(ApiStruct, frozen=True):
    """The CSI drivers of the node of the same name."""

    metadata: ObjectMeta = ObjectMeta()
    spec: CSINodeSpec = CSINodeSpec()


class CSIDriverSpec(ApiStruct, frozen=True):
    """CSIDriverSpec."""

    storage_capacity: bool | None = None
    prevent_pod_scheduling_if_missing: bool | None = None


class CSIDriver(ApiStruct, frozen=True):
    """A CSI driver."""

    metadata: ObjectMeta = ObjectMeta()
    spec: CSIDriverSpec = CSIDriverSpec()


class CSIStorageCapacity(ApiStruct, frozen=True):
    """The capacity that a storage class can provision in a part of the cluster."""

    metadata: ObjectMeta = ObjectMeta()
    storage_class_name: str = ""
    node_topology: LabelSelector | None = None
    capacity: str | int | float | None = None
    maximum_volume_size: str | int | float | None = None


class VolumeAttachmentSource(ApiStruct, frozen=True):
    """The source of an attachment."""

    persistent_volume_name: str | None = None


class VolumeAttachmentSpec(ApiStruct, frozen=True):
    """VolumeAttachmentSpec."""

    attacher: str = ""
    node_name: str = ""
    source: VolumeAttachmentSource = VolumeAttachmentSource()


class VolumeAttachment(ApiStruct, frozen=True):
    """A volume attached to a node."""

    metadata: ObjectMeta = ObjectMeta()
    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()


StorageObject: TypeAlias = (
    PersistentVolume
    | PersistentVolumeClaim
    | StorageClass
    | CSINode
    | CSIDriver
    | CSIStorageCapacity
    | VolumeAttachment
)
