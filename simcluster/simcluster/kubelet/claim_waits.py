"""Pods that wait for their claims to be bound."""

from simcluster.controllers.indexes import claims_of
from simcluster.kinds.resources import PERSISTENT_VOLUME_CLAIMS
from simcluster.store.store import Change, Store, Stored

PodName = tuple[str, str]


class ClaimWaits:
    """Admitted pods by the claim that they wait for.

    Args:
        store: the claims.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: dict[PodName, dict[PodName, None]] = {}

    def must_wait(self, pod: Stored) -> bool:
        """Whether a pod must wait; :meth:`take` returns it later."""
        for name in claims_of(pod.obj):
            claim = self._store.get(PERSISTENT_VOLUME_CLAIMS.stored_in, pod.namespace, name)
            if claim is None or not _is_bound(claim):
                waiting = self._waiting.setdefault((pod.namespace, name), {})
                waiting[pod.namespace, pod.name] = None
                return True
        return False

    def take(self, change: Change) -> list[PodName]:
        """Remove and return the pods that waited for a claim that is bound now."""
        key = (change.current.namespace, change.current.name)
        if change.type == "DELETED" or key not in self._waiting or not _is_bound(change.current):
            return []
        return list(self._waiting.pop(key))

    def forget(self, pod: Stored) -> None:
        """Remove a deleted pod."""
        for name in claims_of(pod.obj):
            self._waiting.get((pod.namespace, name), {}).pop((pod.namespace, pod.name), None)


def _is_bound(claim: Stored) -> bool:
    return bool((claim.obj.get("status") or {}).get("phase") == "Bound")
