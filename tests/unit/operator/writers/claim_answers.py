"""A claim, and what the API server answers when it is written."""

from __future__ import annotations

from typing import Any

import msgspec

from stowage.api.instructions import ClaimToBind, PodReference
from stowage.api.objects.device import AllocationResult, ResourceClaim
from stowage.api.values.claim_writes import with_finalizer, with_reservation
from tests.support.device_builders import allocated, make_claim, with_version

POD = PodReference("default", "p", "uid-p")
CLAIM = make_claim("c", version="3")
ALLOCATION = allocated(CLAIM, "n", "gpu-0").status.allocation or AllocationResult()
WANTED = ClaimToBind(CLAIM, ALLOCATION)
PATH = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/c"


def json_of(claim: ResourceClaim, version: str) -> Any:
    """The claim in this version as the API server answers it."""
    return msgspec.json.decode(msgspec.json.encode(with_version(claim, version)))


PROTECTED = json_of(with_finalizer(CLAIM), "4")
RESERVED_CLAIM = with_reservation(with_finalizer(CLAIM), WANTED, POD, "2026-01-01T00:00:00Z")
RESERVED = json_of(RESERVED_CLAIM, "5")
