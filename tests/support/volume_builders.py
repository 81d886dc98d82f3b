"""Builders of claims, volumes and the objects of CSI drivers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stowage.api.objects.meta import LabelSelector, ObjectMeta, ObjectReference, OwnerReference
from stowage.api.objects.node import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from stowage.api.objects.volume import (
    CSIDriver,
    CSIDriverSpec,
    CSINode,
    CSINodeDriver,
    CSINodeSpec,
    CSIPersistentVolumeSource,
    CSIStorageCapacity,
    EphemeralVolumeSource,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimStatus,
    PersistentVolumeClaimVolumeSource,
    PersistentVolumeSpec,
    PersistentVolumeStatus,
    StorageClass,
    TopologySelectorLabelRequirement,
    TopologySelectorTerm,
    Volume,
    VolumeAttachment,
    VolumeAttachmentSource,
    VolumeAttachmentSpec,
    VolumeNodeAffinity,
    VolumeNodeResources,
    VolumeResourceRequirements,
)
from stowage.api.values.csi_migration import MIGRATED_PLUGINS
from stowage.api.values.volume_claims import BIND_COMPLETED, SELECTED_NODE

DRIVER = "csi.example.com"
WAITS = "WaitForFirstConsumer"


def claim_volume(name: str) -> Volume:
    """A pod volume that uses a claim."""
    source = PersistentVolumeClaimVolumeSource(name)
    return Volume(f"v-{name}", persistent_volume_claim=source)


def ephemeral_volume(name: str) -> Volume:
    """A generic ephemeral volume of a pod."""
    return Volume(name, ephemeral=EphemeralVolumeSource())


def make_claim(
    name: str,
    class_name: str | None = "waits",
    *,
    volume: str = "",
    namespace: str = "default",
    size: str = "1Gi",
    modes: Sequence[str] = ("ReadWriteOnce",),
    selected_node: str = "",
    owner_uid: str = "",
    phase: str = "",
    terminating: bool = False,
    uid: str = "",
    version: str = "",
    is_bound: bool | None = None,
    **spec: Any,
) -> PersistentVolumeClaim:
    """A claim; if it names a volume, it is fully bound by default."""
    annotations = {SELECTED_NODE: selected_node} if selected_node else {}
    if bool(volume) if is_bound is None else is_bound:
        annotations[BIND_COMPLETED] = "yes"
    owner = OwnerReference("Pod", "owner", owner_uid, "v1", controller=True)
    meta = ObjectMeta(
        name=name,
        namespace=namespace,
        uid=uid or f"uid-{name}",
        resource_version=version,
        annotations=annotations,
        deletion_timestamp="2026-01-01T00:00:00Z" if terminating else None,
        owner_references=(owner,) if owner_uid else (),
    )
    wanted = PersistentVolumeClaimSpec(
        access_modes=tuple(modes),
        resources=VolumeResourceRequirements({"storage": size}),
        storage_class_name=class_name,
        volume_name=volume,
        **spec,
    )
    return PersistentVolumeClaim(meta, wanted, PersistentVolumeClaimStatus(phase))


def make_volume(
    name: str,
    class_name: str = "waits",
    *,
    size: str = "1Gi",
    given_to: str = "",
    given_uid: str = "",
    modes: Sequence[str] = ("ReadWriteOnce",),
    where: tuple[str, Sequence[str]] | None = None,
    driver: str = DRIVER,
    labels: Mapping[str, str] | None = None,
    phase: str = "Available",
    terminating: bool = False,
    version: str = "",
    **spec: Any,
) -> PersistentVolume:
    """A CSI volume; `where` is the required node label with its values."""
    reference = ObjectReference(
        "PersistentVolumeClaim", "default", given_to, given_uid or f"uid-{given_to}"
    )
    source = CSIPersistentVolumeSource(driver, f"handle-{name}") if driver else None
    meta = ObjectMeta(
        name=name,
        uid=f"uid-{name}",
        resource_version=version,
        labels=dict(labels or {}),
        deletion_timestamp="2026-01-01T00:00:00Z" if terminating else None,
    )
    offered = PersistentVolumeSpec(
        capacity={"storage": size},
        access_modes=tuple(modes),
        claim_ref=reference if given_to else None,
        node_affinity=None if where is None else affinity_to(*where),
        storage_class_name=class_name,
        csi=source,
        **spec,
    )
    return PersistentVolume(meta, offered, PersistentVolumeStatus(phase))


def affinity_to(key: str, values: Sequence[str]) -> VolumeNodeAffinity:
    """Node affinity to nodes whose label has one of these values."""
    expression = NodeSelectorRequirement(key, "In", tuple(values))
    term = NodeSelectorTerm(match_expressions=(expression,))
    return VolumeNodeAffinity(NodeSelector((term,)))


def make_class(
    name: str = "waits",
    *,
    mode: str | None = WAITS,
    provisioner: str = DRIVER,
    topology: tuple[str, Sequence[str]] | None = None,
) -> StorageClass:
    """A WaitForFirstConsumer class that the example driver provisions."""
    terms: tuple[TopologySelectorTerm, ...] = ()
    if topology is not None:
        requirement = TopologySelectorLabelRequirement(topology[0], tuple(topology[1]))
        terms = (TopologySelectorTerm((requirement,)),)
    return StorageClass(ObjectMeta(name=name), provisioner, mode, terms)


def make_csi_node(
    name: str, *, migrated: Sequence[str] = (), version: str = "", **limits: int | None
) -> CSINode:
    """A CSINode; keywords are limits by driver name, ``csi_example_com=3``."""
    drivers = tuple(
        CSINodeDriver(driver.replace("_", "."), allocatable=VolumeNodeResources(count))
        for driver, count in limits.items()
    )
    annotations = {MIGRATED_PLUGINS: ",".join(migrated)} if migrated else {}
    meta = ObjectMeta(name=name, annotations=annotations, resource_version=version)
    return CSINode(meta, CSINodeSpec(drivers))


def make_driver(
    name: str = DRIVER, *, capacity: bool | None = True, needed: bool | None = None
) -> CSIDriver:
    """A CSIDriver that reports its storage capacity, and may have to be on the node."""
    return CSIDriver(ObjectMeta(name=name), CSIDriverSpec(capacity, needed))


def make_capacity(
    name: str,
    capacity: str | None,
    topology: LabelSelector | None,
    *,
    class_name: str = "waits",
    largest: str | None = None,
) -> CSIStorageCapacity:
    """The remaining capacity of a class on some of the nodes."""
    meta = ObjectMeta(name=name, namespace="kube-system")
    return CSIStorageCapacity(meta, class_name, topology, capacity, largest)


def make_attachment(
    name: str, node_name: str, volume: str | None, *, attacher: str = DRIVER
) -> VolumeAttachment:
    """A VolumeAttachment to a node."""
    source = VolumeAttachmentSource(volume)
    return VolumeAttachment(
        ObjectMeta(name=name), VolumeAttachmentSpec(attacher, node_name, source)
    )
