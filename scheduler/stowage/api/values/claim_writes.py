"""What is written to a resource claim to allocate it and to reserve it for a pod.

``bindClaim``, ``deleteClaim`` and ``Unreserve`` of the plugin DynamicResources of v1.36, as values:
each function takes a claim as it was last read and returns it as it is to be written. Only
metadata.finalizers and the status ever change.
"""

from __future__ import annotations

from msgspec.structs import replace

from stowage.api.instructions import ClaimReference, ClaimToBind, ExtendedClaimToBind, PodReference
from stowage.api.objects.device import (
    AllocationResult,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimStatus,
)
from stowage.api.objects.meta import ObjectMeta, OwnerReference
from stowage.api.objects.pod import PodExtendedResourceClaimStatus

FINALIZER = "resource.kubernetes.io/delete-protection"
EXTENDED_RESOURCE_CLAIM = "resource.kubernetes.io/extended-resource-claim"


class ClaimUnusable(ValueError):  # noqa: N818 - it names the finding
    """A claim has changed so that it cannot be reserved for the pod any more."""


def check_usable(claim: ResourceClaim, wanted: ClaimToBind) -> None:
    """Check that a claim can still be allocated and reserved as planned.

    The planned allocation may be written already: by another member of the pod group. An allocated
    claim must have the devices that the pod's node was chosen for: the node may not reach others.

    Raises:
        ClaimUnusable: It was deleted, allocated or deallocated by another client.
    """
    name = f"claim {claim.metadata.namespaced_name}"
    is_new = wanted.allocation is not None
    is_deleted = is_new and claim.metadata.deletion_timestamp is not None
    if is_deleted or claim.metadata.uid != wanted.claim.metadata.uid:
        raise ClaimUnusable(f"{name} got deleted in the meantime")
    current = claim.status.allocation
    if current is None and not is_new:
        raise ClaimUnusable(f"{name} got deallocated elsewhere in the meantime")
    planned = wanted.allocation or wanted.known
    if current and planned and _devices_in(current) != _devices_in(planned):
        raise ClaimUnusable(f"{name} got allocated elsewhere in the meantime")


def _devices_in(allocation: AllocationResult) -> list[tuple[str | None, ...]]:
    results = allocation.devices.results
    return [(it.request, it.driver, it.pool, it.device, it.share_id) for it in results]


def reference_to(claim: ResourceClaim) -> ClaimReference:
    """The claim in this version, as instructions name it."""
    meta = claim.metadata
    return ClaimReference(meta.namespace, meta.name, meta.uid, meta.resource_version)


def is_reserved_for(claim: ResourceClaim, pod_uid: str) -> bool:
    """Whether a pod is among the consumers of a claim."""
    return any(each.uid == pod_uid for each in claim.status.reserved_for)


def has_finalizer(claim: ResourceClaim) -> bool:
    """Whether the claim is protected from deletion while it is allocated."""
    return FINALIZER in claim.metadata.finalizers


def with_finalizer(claim: ResourceClaim) -> ResourceClaim:
    """The claim with the finalizer."""
    finalizers = (*claim.metadata.finalizers, FINALIZER)
    return replace(claim, metadata=replace(claim.metadata, finalizers=finalizers))


def without_finalizer(claim: ResourceClaim) -> ResourceClaim:
    """The claim without the finalizer."""
    finalizers = tuple(each for each in claim.metadata.finalizers if each != FINALIZER)
    return replace(claim, metadata=replace(claim.metadata, finalizers=finalizers))


def with_reservation(
    claim: ResourceClaim, wanted: ClaimToBind, pod: PodReference, now: str | None
) -> ResourceClaim:
    """The claim with its allocation, its time, and the pod as consumer.

    Args:
        claim: The claim.
        wanted: The allocation, if the claim has none.
        pod: The pod.
        now: The time as RFC 3339 text. It is set for a claim that was allocated without it, too.
            None sets none.
    """
    allocation = claim.status.allocation or wanted.allocation
    if now and allocation is not None and allocation.allocation_timestamp is None:
        allocation = replace(allocation, allocation_timestamp=now)
    consumer = ResourceClaimConsumerReference(resource="pods", name=pod.name, uid=pod.uid)
    reserved_for = (*claim.status.reserved_for, consumer)
    status = replace(claim.status, allocation=allocation, reserved_for=reserved_for)
    return replace(claim, status=status)


def without_consumer(claim: ResourceClaim, pod_uid: str) -> ResourceClaim:
    """The claim without a pod as consumer."""
    left = tuple(each for each in claim.status.reserved_for if each.uid != pod_uid)
    return replace(claim, status=replace(claim.status, reserved_for=left))


def deallocated(claim: ResourceClaim) -> ResourceClaim:
    """The claim without allocation, consumers and device statuses."""
    return replace(claim, status=ResourceClaimStatus())


def extended_claim(pod: PodReference, wanted: ExtendedClaimToBind) -> ResourceClaim:
    """The claim to create for the extended resources of a pod; its name is generated."""
    owner = OwnerReference("Pod", pod.name, pod.uid, "v1", controller=True)
    metadata = ObjectMeta(
        namespace=pod.namespace,
        annotations={EXTENDED_RESOURCE_CLAIM: "true"},
        owner_references=(owner,),
    )
    return ResourceClaim(metadata, wanted.spec)


def extended_claim_prefix(pod: PodReference) -> str:
    """``metadata.generateName`` of the claim for the extended resources of a pod."""
    return f"{pod.name}-extended-resources-"


def extended_claim_status(
    claim: ResourceClaim, wanted: ExtendedClaimToBind
) -> PodExtendedResourceClaimStatus:
    """The pod's ``status.extendedResourceClaimStatus``."""
    return PodExtendedResourceClaimStatus(wanted.mappings, claim.metadata.name)
