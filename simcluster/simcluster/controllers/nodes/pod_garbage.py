"""Pods whose node is gone: nobody would ever run or stop them."""

from typing import Any

from simcluster.controllers.ownership import is_finished, set_condition
from simcluster.controllers.reconciler import Key, Reconciler
from simcluster.kinds.resources import NODES, PODS
from simcluster.store.deletion import DeleteOptions
from simcluster.store.store import Change

Json = dict[str, Any]

UNKNOWN_NODE_GRACE_S = 40.0


class PodGarbageCollector(Reconciler):
    """Removes pods from nodes that were deleted, and from nodes that never come.

    A deleted node takes its pods along at once. A pod bound to a node that does not exist goes
    after ``UNKNOWN_NODE_GRACE_S``; one that was loaded that way stays. Keys name nodes.
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
        if was_bound or self.store.get(NODES.stored_in, "", node_name) is not None:
            return
        self.enqueue_after(Key("", node_name), UNKNOWN_NODE_GRACE_S)

    def reconcile(self, key: Key) -> None:
        """Remove the pods of a node that does not exist."""
        if self.store.get(NODES.stored_in, "", key.name) is not None:
            return
        for pod in self._pods.on(key.name):
            if not is_finished(pod):
                self._mark_failed(pod.namespace, pod.name)
            if self.store.get(PODS.stored_in, pod.namespace, pod.name) is not None:
                options = DeleteOptions(grace_period_s=0, uid=pod.obj["metadata"]["uid"])
                self.registry.delete(PODS, pod.namespace, pod.name, options)

    def _mark_failed(self, namespace: str, name: str) -> None:
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "DeletionByPodGC",
            "message": "PodGC: node no longer exists",
            "lastProbeTime": None,
            "lastTransitionTime": self.registry.clock.now(),
        }
        self.registry.change_status(
            PODS,
            namespace,
            name,
            lambda obj: {
                **obj["status"],
                "phase": "Failed",
                "conditions": set_condition(obj["status"].get("conditions") or [], condition),
            },
        )
