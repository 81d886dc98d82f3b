"""Garbage collection of pods whose node does not exist or is out of service."""

from simcluster.controllers.ownership import disruption_target, is_finished
from simcluster.controllers.reconciler import Key, Reconciler
from simcluster.kinds.resources import NODES, PODS
from simcluster.store.deletion import DeleteOptions
from simcluster.store.store import Change, Stored
from simcluster.values import Json

UNKNOWN_NODE_GRACE_S = 40.0
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"


class PodGarbageCollector(Reconciler):
    """Removes the pods of nodes that are deleted, never appear, or are out of service.

    The pods of a deleted node are removed at once. A pod that is bound to a node that does not
    exist is removed after ``UNKNOWN_NODE_GRACE_S``; one that was loaded that way stays. A node that
    is not ready and has the taint ``OUT_OF_SERVICE`` loses its terminating pods. Keys name nodes.
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
            return
        if change.type == "ADDED":
            self.forget_timer(key)
        if _is_out_of_service(change.current):
            self.enqueue(key)

    def _on_pod(self, change: Change) -> None:
        before, node_name = change.previous, change.current.spec["nodeName"]
        was_bound = before is not None and before.spec.get("nodeName")
        ends = change.current.is_terminating and not (before is not None and before.is_terminating)
        if was_bound and not ends:
            return
        node = self.find(NODES, "", node_name)
        if node is None:
            if not was_bound:
                self.enqueue_after(Key("", node_name), UNKNOWN_NODE_GRACE_S)
        elif ends and _is_out_of_service(node):
            self.enqueue(Key("", node_name))

    def reconcile(self, key: Key) -> None:
        """Remove the pods of a missing node, or those that terminate if it is out of service."""
        node = self.find(NODES, "", key.name)
        if node is not None and not _is_out_of_service(node):
            return
        for pod in self._pods.of(key.name):
            if node is None:
                self._remove(pod, "PodGC: node no longer exists")
            elif pod.is_terminating:
                self._remove(pod)

    def _remove(self, pod: Stored, disruption: str = "") -> None:
        if not is_finished(pod):
            self._mark_failed(pod, disruption)
        if self.find(PODS, pod.namespace, pod.name) is not None:
            options = DeleteOptions(grace_period_s=0, uid=pod.uid)
            self.registry.delete(PODS, pod.namespace, pod.name, options)

    def _mark_failed(self, pod: Stored, disruption: str) -> None:
        now = self.registry.clock.now()

        def failed(obj: Json) -> Json:
            if not disruption:
                return {**obj["status"], "phase": "Failed"}
            why = disruption_target(obj, "DeletionByPodGC", disruption, now)
            return why | {"phase": "Failed"}

        self.registry.change_status(PODS, pod.namespace, pod.name, failed)


def _is_out_of_service(node: Stored) -> bool:
    """Whether an administrator says that a node that is not ready is down."""
    taints = (node.obj.get("spec") or {}).get("taints") or ()
    return any(taint["key"] == OUT_OF_SERVICE for taint in taints) and not any(
        condition["type"] == "Ready" and condition["status"] == "True"
        for condition in node.status.get("conditions") or ()
    )
