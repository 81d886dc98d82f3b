"""Reservations given back by Unreserve and PostFilter."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cachetools import LRUCache

from stowage.api.objects.device import ResourceClaim
from stowage.api.values.claim_writes import without_consumer

_MAX_RELEASES = 4096


class Releases:
    """The reservations that were given back.

    A pod may be tried again before the watch shows that its claim is not reserved for it any more,
    or not even allocated. Other pods may have written the claim meanwhile, with the reservation
    that was still there. So PreBind of the pod reserves such a claim again, although it may look
    reserved. The write changes nothing if the reservation is still there, and the API server
    refuses it if the claim has changed.
    """

    def __init__(self) -> None:
        self._given_back: LRUCache[tuple[str, str], None] = LRUCache(_MAX_RELEASES)

    def note(self, pod_uid: str, claims: Iterable[ResourceClaim]) -> None:
        """Remember that the reservations of these claims for a pod are given back."""
        for claim in claims:
            self._given_back[pod_uid, claim.metadata.uid] = None

    def applied(self, pod_uid: str, claims: Iterable[ResourceClaim]) -> Sequence[ResourceClaim]:
        """The claims without reservations for the pod that were given back."""
        return [
            without_consumer(claim, pod_uid)
            if (pod_uid, claim.metadata.uid) in self._given_back
            else claim
            for claim in claims
        ]
