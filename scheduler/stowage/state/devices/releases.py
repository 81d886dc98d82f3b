"""Reservations given back by Unreserve and PostFilter, until the watch shows it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cachetools import LRUCache

from stowage.api.objects.device import ResourceClaim
from stowage.api.values.claim_writes import without_consumer

_MAX_RELEASES = 4096


class Releases:
    """The reservations that were given back, with the version that the claim had then.

    A pod may be tried again before the watch shows that its claim is not reserved for it any more,
    or not even allocated. PreBind then has to reserve the claim again, although it looks reserved;
    the API server refuses that if the claim has changed.
    """

    def __init__(self) -> None:
        self._versions: LRUCache[tuple[str, str], str] = LRUCache(_MAX_RELEASES)

    def note(self, pod_uid: str, claims: Iterable[ResourceClaim]) -> None:
        """Remember that the reservations of these claims for a pod are given back."""
        for claim in claims:
            metadata = claim.metadata
            self._versions[pod_uid, metadata.uid] = metadata.resource_version

    def applied(self, pod_uid: str, claims: Iterable[ResourceClaim]) -> Sequence[ResourceClaim]:
        """The claims without reservations for the pod that were given back."""
        return [
            without_consumer(claim, pod_uid)
            if self._versions.get((pod_uid, claim.metadata.uid)) == claim.metadata.resource_version
            else claim
            for claim in claims
        ]
