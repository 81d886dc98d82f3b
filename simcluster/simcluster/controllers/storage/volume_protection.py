"""Protection finalizers of claims in use and of bound volumes."""

from simcluster.controllers.reconciler import Key, Reconciler, key_of
from simcluster.kinds.admission.volumes import CLAIM_FINALIZER, VOLUME_FINALIZER
from simcluster.kinds.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, Resource
from simcluster.store.store import Change, Stored


class VolumeProtectionController(Reconciler):
    """Adds missing protection finalizers, and drops them once the object is not used.

    A claim is in use while an unfinished pod that has a node names it, a volume while it is bound.
    Keys without a namespace are volumes.
    """

    def follow(self) -> None:
        """Follow claims, volumes, and the pods that use claims."""
        self._pods = self.shared.pods_by_claim
        self._pods.on_change(self._on_use)
        self.subscribe(PERSISTENT_VOLUME_CLAIMS, self._on_change)
        self.subscribe(PERSISTENT_VOLUMES, self._on_change)
        self.enqueue_all(PERSISTENT_VOLUME_CLAIMS)
        self.enqueue_all(PERSISTENT_VOLUMES)

    def _on_change(self, change: Change) -> None:
        is_going = change.current.is_terminating
        if change.type == "ADDED" or (change.type == "MODIFIED" and is_going):
            self.enqueue(key_of(change))

    def _on_use(self, namespace: str, name: str) -> None:
        claim = self.find(PERSISTENT_VOLUME_CLAIMS, namespace, name)
        if claim is not None and claim.is_terminating:
            self.enqueue(Key(namespace, name))

    def reconcile(self, key: Key) -> None:
        """Add or drop the finalizer of one claim or volume."""
        if key.namespace:
            claim = self.find(PERSISTENT_VOLUME_CLAIMS, *key)
            if claim is not None:
                is_used = any(pod.spec.get("nodeName") for pod in self._pods.of(key))
                self._protect(PERSISTENT_VOLUME_CLAIMS, claim, CLAIM_FINALIZER, is_used)
            return
        volume = self.find(PERSISTENT_VOLUMES, "", key.name)
        if volume is not None:
            is_bound = volume.status.get("phase") == "Bound"
            self._protect(PERSISTENT_VOLUMES, volume, VOLUME_FINALIZER, is_bound)

    def _protect(self, resource: Resource, stored: Stored, finalizer: str, is_used: bool) -> None:
        metadata = stored.metadata
        finalizers = list(metadata.get("finalizers") or ())
        if metadata.get("deletionTimestamp"):
            if is_used or finalizer not in finalizers:
                return
            finalizers.remove(finalizer)
        elif finalizer not in finalizers:
            finalizers.append(finalizer)
        else:
            return
        self.write_list(resource, stored, "finalizers", finalizers)
