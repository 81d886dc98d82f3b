"""Claims that members of a pod group share: the first one that is tried reserves the devices.

Outside of the attempt of a group, a claim in flight makes other pods wait until it is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from stowage.api.objects.device import ResourceClaim
from stowage.framework import CompanionClaims
from stowage.state.devices.devices import ClaimAllocation, Devices


def with_companions(
    claims: Iterable[ResourceClaim], companions: CompanionClaims
) -> tuple[Sequence[ResourceClaim], tuple[ClaimAllocation, ...]]:
    """The claims as if what companions reserved were written, and what they reserved of them."""
    seen: list[ResourceClaim] = []
    shared: list[ClaimAllocation] = []
    for claim in claims:
        reserved = companions.allocations.get(claim.metadata.uid)
        if reserved is not None and claim.status.allocation is None:
            shared.append(reserved)
            status = replace(claim.status, allocation=reserved.allocation)
            seen.append(replace(claim, status=status))
        else:
            seen.append(claim)
    return seen, tuple(shared)


def are_in_flight(shared: Iterable[ClaimAllocation], devices: Devices) -> bool:
    """Whether the companions still hold what they have reserved."""
    return all(
        (known := devices.in_flight.get(each.claim_uid)) is not None
        and known.allocation == each.allocation
        for each in shared
    )
