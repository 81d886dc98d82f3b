"""Claims that were created for extended resources and that the watch has not shown yet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from stowage.api.instructions import DeleteClaim, PodReference
from stowage.api.objects.device import ResourceClaim
from stowage.api.values.claim_writes import reference_to

#: A failed deletion is tried again after this many seconds.
DELETE_AGAIN_AFTER_S = 30.0


class CreatedClaim(msgspec.Struct):
    """A created claim, whose devices are in flight.

    Attributes:
        claim: The claim as the API server returned it, allocated.
        pod: The pod that it was created for.
        delete_at: When to delete it again; None if no deletion has failed.
    """

    claim: ResourceClaim
    pod: PodReference
    delete_at: float | None = None


class CreatedClaims:
    """The created claims by ``namespace/name``, until the watch shows them or they are deleted.

    A claim that is created and deleted within one gap of the watch is never shown, so a deletion
    that has failed is tried again and again.
    """

    def __init__(self) -> None:
        self._claims: dict[str, CreatedClaim] = {}

    @property
    def by_key(self) -> Mapping[str, CreatedClaim]:
        """The claims by ``namespace/name``, to read."""
        return self._claims

    @property
    def uids(self) -> set[str]:
        """The UIDs of the claims."""
        return {each.claim.metadata.uid for each in self._claims.values()}

    def add(self, claim: ResourceClaim, pod: PodReference) -> None:
        """The API server has created and allocated a claim."""
        self._claims[claim.metadata.namespaced_name] = CreatedClaim(claim, pod)

    def remove(self, key: str) -> None:
        """The watch has shown the claim, or it is deleted."""
        del self._claims[key]

    def take_overdue(self, now: float) -> Iterator[DeleteClaim]:
        """The deletions to try again now."""
        for each in self._claims.values():
            if each.delete_at is not None and each.delete_at <= now:
                each.delete_at = None
                yield DeleteClaim(each.pod, reference_to(each.claim))

    def next_deadline(self) -> float | None:
        """When the first deletion is to be tried again; None if none is."""
        if not self._claims:
            return None
        times = [each.delete_at for each in self._claims.values() if each.delete_at is not None]
        return min(times, default=None)
