"""Relations of claims and volumes (``component-helpers/storage`` v1.36)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from msgspec.structs import replace

from stowage.api.objects.meta import ObjectReference, controller_of
from stowage.api.objects.volume import PersistentVolume, PersistentVolumeClaim, Volume

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"
STORAGE = "storage"
_BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
_FILESYSTEM = "Filesystem"


class UsedClaim(NamedTuple):
    """A claim that a pod uses.

    Attributes:
        name: The name of the claim, in the namespace of the pod.
        is_ephemeral: Whether the claim is generated for this pod, which must own it.
    """

    name: str
    is_ephemeral: bool


def used_claims(volumes: Iterable[Volume], pod_name: str) -> Iterator[UsedClaim]:
    """The claims of a pod with these volumes, in order, duplicates included."""
    for volume in volumes:
        if volume.persistent_volume_claim is not None:
            yield UsedClaim(volume.persistent_volume_claim.claim_name, is_ephemeral=False)
        elif volume.ephemeral is not None:
            yield UsedClaim(f"{pod_name}-{volume.name}", is_ephemeral=True)


def is_generated_for(claim: PersistentVolumeClaim, pod_uid: str) -> bool:
    """Whether a pod owns the claim (``ephemeral.VolumeIsForPod``)."""
    owner = controller_of(claim.metadata)
    return owner is not None and owner.uid == pod_uid


def claim_class(claim: PersistentVolumeClaim) -> str:
    """The class of a claim; empty if none (``GetPersistentVolumeClaimClass``)."""
    beta = claim.metadata.annotations.get(_BETA_CLASS)
    return (claim.spec.storage_class_name or "") if beta is None else beta


def volume_class(volume: PersistentVolume) -> str:
    """The class of a volume; empty if none (``GetPersistentVolumeClass``)."""
    beta = volume.metadata.annotations.get(_BETA_CLASS)
    return volume.spec.storage_class_name if beta is None else beta


def volume_capacity(volume: PersistentVolume) -> str | int | float:
    """The capacity of a volume, a quantity of bytes."""
    return volume.spec.capacity.get(STORAGE, 0)


def is_fully_bound(claim: PersistentVolumeClaim) -> bool:
    """Whether a claim is fully bound."""
    return bool(claim.spec.volume_name) and BIND_COMPLETED in claim.metadata.annotations


def is_bound_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether a volume is bound or pre-bound to the claim (``IsVolumeBoundToClaim``)."""
    reference = volume.spec.claim_ref
    if reference is None:
        return False
    meta = claim.metadata
    same_name = (reference.namespace, reference.name) == (meta.namespace, meta.name)
    return same_name and reference.uid in ("", meta.uid)


def same_volume_mode(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether both are file systems, or both block devices."""
    has = _FILESYSTEM if volume.spec.volume_mode is None else volume.spec.volume_mode
    wants = _FILESYSTEM if claim.spec.volume_mode is None else claim.spec.volume_mode
    return has == wants


def same_attributes_class(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether both have the same VolumeAttributesClass, or none."""
    has = volume.spec.volume_attributes_class_name or ""
    return has == (claim.spec.volume_attributes_class_name or "")


def bound_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> PersistentVolume:
    """The volume bound to a claim; the same object if it is bound to it already.

    ``GetBindVolumeToClaim``: a volume that a user pre-bound is not marked as bound by a controller.
    """
    was_given = is_bound_to(volume, claim)
    meta, spec = volume.metadata, volume.spec
    annotations = meta.annotations
    if not was_given and BOUND_BY_CONTROLLER not in annotations:
        meta = replace(meta, annotations={**annotations, BOUND_BY_CONTROLLER: "yes"})
    if spec.claim_ref is None or not was_given or spec.claim_ref.uid != claim.metadata.uid:
        spec = replace(spec, claim_ref=reference_to(claim))
    if meta is volume.metadata and spec is volume.spec:
        return volume
    return replace(volume, metadata=meta, spec=spec)


def with_selected_node(claim: PersistentVolumeClaim, node_name: str) -> PersistentVolumeClaim:
    """The claim with a selected node; the same object if the node is selected already."""
    annotations = claim.metadata.annotations
    if annotations.get(SELECTED_NODE) == node_name:
        return claim
    meta = replace(claim.metadata, annotations={**annotations, SELECTED_NODE: node_name})
    return replace(claim, metadata=meta)


def reference_to(claim: PersistentVolumeClaim) -> ObjectReference:
    """The ``spec.claimRef`` of a claim."""
    meta = claim.metadata
    return ObjectReference(
        kind="PersistentVolumeClaim",
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        api_version="v1",
        resource_version=meta.resource_version,
    )
