"""Instructions that write resource claims."""

from __future__ import annotations

import msgspec

from stowage.api.instructions.references import ClaimReference, PodReference
from stowage.api.objects.device import AllocationResult, ResourceClaim, ResourceClaimSpec
from stowage.api.objects.pod import ContainerExtendedResourceRequest


class ClaimToBind(msgspec.Struct, frozen=True):
    """A resource claim to reserve for a pod.

    Attributes:
        claim: The claim as the engine knows it.
        allocation: The allocation to write first; None if the claim is allocated already.
        known: The allocation that the claim had when the pod's node was chosen.
    """

    claim: ResourceClaim
    allocation: AllocationResult | None = None
    known: AllocationResult | None = None


class ExtendedClaimToBind(msgspec.Struct, frozen=True):
    """The claim to create, allocate and reserve for the extended resources of a pod.

    Attributes:
        spec: The spec of the claim.
        allocation: The allocation.
        mappings: The request by which each container gets each resource, for the pod's status.
    """

    spec: ResourceClaimSpec
    allocation: AllocationResult
    mappings: tuple[ContainerExtendedResourceRequest, ...]


class BindClaims(msgspec.Struct, frozen=True, tag=True):
    """Allocate claims and reserve them for a pod, then report ``ClaimsWritten``.

    For each claim in order, then for the one to create: add the finalizer if the claim gets an
    allocation and has none, then write allocation and reservation to the status in one request.
    `stowage.api.values.claim_writes` says what to write, and when a claim that was read again after
    a conflict cannot be used any more. If a write fails, those before it stay. The report is made
    even if ``StopPreBind`` stops the writes. `number` is repeated in the report. `sets_time` says
    whether allocations get the time.
    """

    pod: PodReference
    node_name: str
    claims: tuple[ClaimToBind, ...] = ()
    extended: ExtendedClaimToBind | None = None
    number: int = 0
    sets_time: bool = True


class ReleaseClaims(msgspec.Struct, frozen=True, tag=True):
    """Remove a pod from the consumers of claims that were reserved for it; nothing is reported."""

    pod: PodReference
    claims: tuple[ClaimReference, ...]


class DeallocateClaim(msgspec.Struct, frozen=True, tag=True):
    """Clear allocation, consumers and device statuses of a claim that only the pod may use.

    Unless the claim was updated since; nothing is reported.
    """

    pod: PodReference
    claim: ClaimReference


class DeleteClaim(msgspec.Struct, frozen=True, tag=True):
    """Delete the claim for extended resources of a pod, its finalizer first.

    Then report ``ClaimDeletionFinished``.
    """

    pod: PodReference
    claim: ClaimReference
