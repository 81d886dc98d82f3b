"""Eviction of pods that do not tolerate a NoExecute taint, or tolerate it for a limited time."""

from simcluster.controllers.ownership import disruption_target, is_finished
from simcluster.controllers.reconciler import Key, Reconciler
from simcluster.kinds.resources import NODES, PODS
from simcluster.store.store import Change, Stored
from simcluster.values import Json
from stowage.api import Taint, Toleration
from stowage.api.decoding.decode import convert_object
from stowage.api.values.tolerations import tolerates

_SOURCE = "taint-eviction-controller"


class TaintEvictionController(Reconciler):
    """Deletes pods from nodes with NoExecute taints, as their tolerations allow."""

    def follow(self) -> None:
        """Follow the NoExecute taints of nodes, and pods that come to such nodes."""
        self._taints: dict[str, tuple[Taint, ...]] = {}
        self._since: dict[Key, float] = {}
        self._pods = self.shared.pods_by_node
        for node in self.store.collection(NODES.stored_in):
            self._note_taints(node)
        self._pods.on_change(self._on_pod)
        self.subscribe(NODES, self._on_node)
        for node_name in self._taints:
            self._enqueue_pods(node_name)

    def _note_taints(self, node: Stored) -> bool:
        """Record a node's NoExecute taints; returns whether they changed."""
        found = tuple(
            convert_object(Taint, taint)
            for taint in (node.obj.get("spec") or {}).get("taints") or ()
            if taint.get("effect") == "NoExecute"
        )
        if found == self._taints.get(node.name, ()):
            return False
        if found:
            self._taints[node.name] = found
        else:
            self._taints.pop(node.name, None)
        return True

    def _on_node(self, change: Change) -> None:
        if change.type == "DELETED":
            self._taints.pop(change.current.name, None)
        elif self._note_taints(change.current):
            self._enqueue_pods(change.current.name)

    def _enqueue_pods(self, node_name: str) -> None:
        for pod in self._pods.of(node_name):
            self.enqueue(Key(pod.namespace, pod.name))

    def _on_pod(self, change: Change) -> None:
        key = Key(change.current.namespace, change.current.name)
        if change.type == "DELETED":
            self._forget(key)
        elif change.current.spec["nodeName"] in self._taints and key not in self._since:
            self.enqueue(key)

    def _forget(self, key: Key) -> None:
        self._since.pop(key, None)
        self.forget_timer(key)

    def reconcile(self, key: Key) -> None:
        """Delete a pod whose toleration time is over, or reconcile again when it will be."""
        pod = self.find(PODS, *key)
        taints = self._taints.get(pod.spec.get("nodeName", "")) if pod is not None else None
        if pod is None or not taints or pod.is_terminating:
            self._forget(key)
            return
        tolerated_s = toleration_s(taints, pod.spec.get("tolerations") or [])
        if tolerated_s is None or is_finished(pod):
            self._forget(key)
            return
        now = self.registry.clock.time_s()
        left_s = self._since.setdefault(key, now) + tolerated_s - now
        if left_s > 0:
            self.enqueue_after(key, left_s)
            return
        self._forget(key)
        self._evict(pod)

    def _evict(self, pod: Stored) -> None:
        message = f"Marking for deletion Pod {pod.namespace}/{pod.name}"
        self.shared.recorder.normal(_SOURCE, PODS, pod, "TaintManagerEviction", message)
        why, now = "Taint manager: deleting due to NoExecute taint", self.registry.clock.now()
        self.registry.change_status(
            PODS,
            pod.namespace,
            pod.name,
            lambda obj: disruption_target(obj, "DeletionByTaintManager", why, now),
        )
        self.delete(PODS, pod)


def toleration_s(taints: tuple[Taint, ...], tolerations: list[Json]) -> float | None:
    """Seconds that a pod may stay on a node with these NoExecute taints; ``None`` for ever.

    One taint that is not tolerated means 0; otherwise the least ``tolerationSeconds`` counts.
    """
    typed = [convert_object(Toleration, found) for found in tolerations]
    limits: list[float] = []
    for taint in taints:
        matching = [found for found in typed if tolerates(found, taint)]
        if not matching:
            return 0.0
        limits += [
            max(0.0, found.toleration_seconds)
            for found in matching
            if found.toleration_seconds is not None
        ]
    return min(limits, default=None)
