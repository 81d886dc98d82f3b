"""Garbage collection of pods whose node does not exist."""

from simcluster.controllers.ownership import disruption_target, is_finished
from simcluster.controllers.reconciler import Key, Reconciler
from simcluster.kinds.resources import NODES, PODS
from simcluster.store.deletion import DeleteOptions
from simcluster.store.store import Change, Stored

UNKNOWN_NODE_GRACE_S = 40.0


class PodGarbageCollector(Reconciler):
    """Removes the pods of nodes that are deleted or never appear.

    The pods of a deleted node are removed at once. A pod that is bound to a node that does not
    exist is removed after ``UNKNOWN_NODE_GRACE_S``; one that was loaded that way stays. Keys name
    nodes.
    """

    def follow(self) -> None:
        """Follow nodes, and pods that are bound."""
        self._pods = self.shared.pods_by_node
        self._pods.on_change(self._on_pod)
        self.subscribe(NODES, self._on_node)

    def _on_node(self, change: Change) -> None:
        key = Key("", change.current.name)
        if change.type == "DELETED":
            self.enqueue(key)
        elif change.type == "ADDED":
            self.forget_timer(key)

    def _on_pod(self, change: Change) -> None:
        before, node_name = change.previous, change.current.obj["spec"]["nodeName"]
        was_bound = before is not None and before.obj["spec"].get("nodeName")
        if was_bound or self.find(NODES, "", node_name) is not None:
            return
        self.enqueue_after(Key("", node_name), UNKNOWN_NODE_GRACE_S)

    def reconcile(self, key: Key) -> None:
        """Remove the pods of a node that does not exist."""
        if self.find(NODES, "", key.name) is not None:
            return
        for pod in self._pods.of(key.name):
            if not is_finished(pod):
                self._mark_failed(pod)
            if self.find(PODS, pod.namespace, pod.name) is not None:
                options = DeleteOptions(grace_period_s=0, uid=pod.obj["metadata"]["uid"])
                self.registry.delete(PODS, pod.namespace, pod.name, options)

    def _mark_failed(self, pod: Stored) -> None:
        why, now = "PodGC: node no longer exists", self.registry.clock.now()
        self.registry.change_status(
            PODS,
            pod.namespace,
            pod.name,
            lambda obj: disruption_target(obj, "DeletionByPodGC", why, now) | {"phase": "Failed"},
        )
