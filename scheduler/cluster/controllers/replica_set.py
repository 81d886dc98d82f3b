"""ReplicaSets: as many active pods as wanted."""

from typing import Any

from scheduler.cluster.controllers.ownership import (
    OwnedObjects,
    is_active,
    is_ready,
    pod_from_template,
)
from scheduler.cluster.controllers.reconciler import Key, Reconciler, key_of
from scheduler.cluster.deletion import DeleteOptions
from scheduler.cluster.resources import PODS, REPLICA_SETS
from scheduler.cluster.store import Stored

Json = dict[str, Any]

BURST = 500


class ReplicaSetController(Reconciler):
    """Creates and deletes the pods of ReplicaSets and counts them in their status."""

    def follow(self) -> None:
        """Follow ReplicaSets and the pods they own."""
        self._pods = OwnedObjects(self.store, PODS, self._on_pod)
        self.subscribe(PODS, self._pods.see)
        self.subscribe(REPLICA_SETS, lambda change: self.enqueue(key_of(change)))
        self.enqueue_all(REPLICA_SETS)

    def _on_pod(self, namespace: str, owner: Json) -> None:
        if owner["kind"] == REPLICA_SETS.kind:
            self.enqueue(Key(namespace, owner["name"]))

    def reconcile(self, key: Key) -> None:
        """Create what is missing, delete what is too much, then report."""
        stored = self.store.get(REPLICA_SETS.stored_in, *key)
        if stored is None:
            return
        if not stored.obj["metadata"].get("deletionTimestamp"):
            self._adjust(key, stored)
        self._report(stored)

    def _adjust(self, key: Key, stored: Stored) -> None:
        active = [pod for pod in self._pods.of(stored) if is_active(pod)]
        missing = stored.obj["spec"]["replicas"] - len(active)
        for _ in range(min(missing, BURST)):
            self.registry.create(PODS, stored.namespace, pod_from_template(REPLICA_SETS, stored))
        for pod in sorted(active, key=_deletion_rank)[: max(0, -missing)]:
            uid = pod.obj["metadata"]["uid"]
            self.registry.delete(PODS, pod.namespace, pod.name, DeleteOptions(uid=uid))
        if missing > BURST:
            self.enqueue(key)

    def _report(self, stored: Stored) -> None:
        active = [pod for pod in self._pods.of(stored) if is_active(pod)]
        ready = sum(map(is_ready, active))
        status: Json = {
            "replicas": len(active),
            "observedGeneration": stored.obj["metadata"].get("generation", 1),
        }
        if active:
            status["fullyLabeledReplicas"] = len(active)
        if ready:
            status |= {"readyReplicas": ready, "availableReplicas": ready}
        self.registry.change_status(
            REPLICA_SETS, stored.namespace, stored.name, lambda _obj: status
        )


def _deletion_rank(pod: Stored) -> tuple[bool, bool, bool, int]:
    """Which pod goes first: unassigned, then pending, then not ready, then the youngest."""
    return (
        bool(pod.obj["spec"].get("nodeName")),
        pod.obj["status"].get("phase") == "Running",
        is_ready(pod),
        -pod.revision,
    )
