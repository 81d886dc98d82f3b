"""Releases pod groups that are being deleted once no unfinished pod refers to them."""

from simcluster.controllers.indexes import KeyedIndex
from simcluster.controllers.ownership import is_finished
from simcluster.controllers.reconciler import Key, Reconciler, key_of
from simcluster.kinds.admission.pod_groups import PROTECTION_FINALIZER
from simcluster.kinds.resources import POD_GROUPS, PODS
from simcluster.store.store import Change, Stored


def _group_of(pod: Stored) -> list[Key]:
    """The pod group of an unfinished pod."""
    # Cheaper than to decode every pod.
    if b'"schedulingGroup"' not in pod.content or is_finished(pod):
        return []
    name = (pod.spec.get("schedulingGroup") or {}).get("podGroupName")
    return [Key(pod.namespace, name)] if name else []


class PodGroupProtectionController(Reconciler):
    """Drops the finalizer that admission gives every pod group."""

    def follow(self) -> None:
        """Follow pod groups and pods."""
        self._pods = KeyedIndex(_group_of)
        for pod in self.store.collection(PODS.stored_in):
            self._pods.add(pod)
        self.subscribe(PODS, self._on_pod)
        self.subscribe(POD_GROUPS, self._on_group)
        self.enqueue_all(POD_GROUPS)

    def _on_pod(self, change: Change) -> None:
        self._pods.see(change)
        for key in _group_of(change.previous or change.current):
            if not self._pods.of(key):
                self.enqueue(key)

    def _on_group(self, change: Change) -> None:
        if change.type != "DELETED" and change.current.is_terminating:
            self.enqueue(key_of(change))

    def reconcile(self, key: Key) -> None:
        """Drop the finalizer of a group that is being deleted and has no unfinished pod."""
        group = self.find(POD_GROUPS, *key)
        if group is None or not group.is_terminating or self._pods.of(key):
            return
        if PROTECTION_FINALIZER in group.finalizers:
            left = [name for name in group.finalizers if name != PROTECTION_FINALIZER]
            self.write_list(POD_GROUPS, group, "finalizers", left)
