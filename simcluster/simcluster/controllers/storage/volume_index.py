"""Indexes of volumes and claims for binding."""

from simcluster.controllers.storage.volume_fit import BIND_COMPLETED, annotation, class_of
from simcluster.kinds.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from simcluster.store.store import Change, Store, Stored
from simcluster.values import Json

ClaimKey = tuple[str, str]


class VolumeIndex:
    """Free volumes by class, reserved volumes by claim, and unbound claims by class.

    Args:
        store: whose volumes and claims are indexed.
    """

    def __init__(self, store: Store) -> None:
        self._free: dict[str, dict[str, Stored]] = {}
        self._reserved: dict[ClaimKey, dict[str, None]] = {}
        self._pending: dict[str, dict[ClaimKey, None]] = {}
        self._naming: dict[str, dict[ClaimKey, None]] = {}
        for volume in store.collection(PERSISTENT_VOLUMES.stored_in):
            self._add_volume(volume)
        for claim in store.collection(PERSISTENT_VOLUME_CLAIMS.stored_in):
            self._add_claim(claim)

    def see_volume(self, change: Change) -> None:
        """Take a volume's change into the index."""
        for gone in filter(None, (change.previous, change.current)):
            self._free.get(class_of(gone.obj), {}).pop(gone.name, None)
            self._reserved.get(_reserved_key(gone.obj), {}).pop(gone.name, None)
        if change.type != "DELETED":
            self._add_volume(change.current)

    def see_claim(self, change: Change) -> None:
        """Take a claim's change into the index."""
        for gone in filter(None, (change.previous, change.current)):
            named = gone.obj["spec"].get("volumeName") or ""
            self._naming.get(named, {}).pop((gone.namespace, gone.name), None)
            self._pending.get(class_of(gone.obj), {}).pop((gone.namespace, gone.name), None)
        if change.type != "DELETED":
            self._add_claim(change.current)

    def _add_volume(self, volume: Stored) -> None:
        if volume.obj["spec"].get("claimRef"):
            self._reserved.setdefault(_reserved_key(volume.obj), {})[volume.name] = None
        else:
            self._free.setdefault(class_of(volume.obj), {})[volume.name] = volume

    def _add_claim(self, claim: Stored) -> None:
        key, named = (claim.namespace, claim.name), claim.obj["spec"].get("volumeName")
        if not named:
            self._pending.setdefault(class_of(claim.obj), {})[key] = None
        elif not annotation(claim.obj, BIND_COMPLETED):
            self._naming.setdefault(named, {})[key] = None

    def free_volumes(self, class_name: str) -> list[Stored]:
        """Volumes of a class that no claim has."""
        return list(self._free.get(class_name, {}).values())

    def reserved_for(self, namespace: str, name: str) -> list[str]:
        """Names of the volumes whose ``claimRef`` names a claim."""
        return list(self._reserved.get((namespace, name), ()))

    def naming(self, volume_name: str) -> list[ClaimKey]:
        """Unbound claims that ask for a volume by its name."""
        return list(self._naming.get(volume_name, ()))

    def pending_claims(self, class_name: str) -> list[ClaimKey]:
        """Claims of a class that have no volume."""
        return list(self._pending.get(class_name, ()))


def _reserved_key(volume: Json) -> ClaimKey:
    reference = volume["spec"].get("claimRef") or {}
    return (reference.get("namespace", ""), reference.get("name", ""))
