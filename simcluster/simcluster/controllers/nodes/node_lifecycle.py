"""Node lifecycle: taints that follow a node's state, and nodes whose kubelet is silent."""

from simcluster.controllers.nodes.node_taints import condition_status, with_own_taints
from simcluster.controllers.ownership import set_condition
from simcluster.controllers.reconciler import Key, Reconciler, key_of
from simcluster.controllers.shared import Shared
from simcluster.kinds.resources import NODES, PODS
from simcluster.kubelet.node_state import is_silent
from simcluster.store.registry import editable
from simcluster.store.store import Change, Stored
from simcluster.values import Json

DEFAULT_GRACE_S = 50.0
_HEARTBEATS = ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
_SOURCE = "node-controller"


class NodeLifecycleController(Reconciler):
    """Keeps a node's taints equal to its readiness, pressure and cordon.

    The simulated kubelets write no heartbeats. When a kubelet is stopped (see ``node_state``), the
    controller waits for ``grace_s``, sets the node's conditions to Unknown, as
    kube-controller-manager does without heartbeats, and marks its pods as not ready.
    """

    def __init__(self, shared: Shared, grace_s: float = DEFAULT_GRACE_S) -> None:
        super().__init__(shared)
        self._grace_s = grace_s

    def follow(self) -> None:
        """Follow nodes, and the pods on them."""
        self._pods = self.shared.pods_by_node
        self._silent: dict[str, float] = {}
        self.subscribe(NODES, self._on_node)
        self.enqueue_all(NODES)

    def _on_node(self, change: Change) -> None:
        key = key_of(change)
        if change.type == "DELETED":
            self._silent.pop(key.name, None)
            self.forget_timer(key)
        self.enqueue(key)

    def reconcile(self, key: Key) -> None:
        """Check that the node's kubelet is not silent, and correct the node's taints."""
        stored = self.find(NODES, "", key.name)
        if stored is None:
            return
        stored = self._check_silence(key, stored)
        taints = with_own_taints(stored.obj, self.registry.clock.now())
        if taints == (stored.obj["spec"].get("taints") or []):
            return
        obj = editable(stored)
        obj["spec"] |= {"taints": taints}
        if not taints:
            del obj["spec"]["taints"]
        self.registry.replace(NODES, stored, obj)

    def _check_silence(self, key: Key, stored: Stored) -> Stored:
        if not is_silent(stored.obj):
            self._silent.pop(key.name, None)
            self.forget_timer(key)
            return stored
        now = self.registry.clock.time_s()
        left_s = self._silent.setdefault(key.name, now) + self._grace_s - now
        if left_s > 0:
            self.enqueue_after(key, left_s)
            return stored
        if condition_status(stored.obj, "Ready") == "Unknown":
            return stored
        return self._give_up(stored)

    def _give_up(self, stored: Stored) -> Stored:
        """Set the conditions of a silent node to Unknown."""
        now = self.registry.clock.now()

        def unknown(node: Json) -> Json:
            conditions = node["status"].get("conditions") or []
            for kind in _HEARTBEATS:
                old: Json = next((found for found in conditions if found.get("type") == kind), {})
                conditions = set_condition(
                    conditions,
                    {
                        **old,
                        "type": kind,
                        "status": "Unknown",
                        "reason": "NodeStatusUnknown",
                        "message": "Kubelet stopped posting node status.",
                        "lastTransitionTime": now,
                    },
                )
            return {**node["status"], "conditions": conditions}

        changed = self.registry.change_status(NODES, "", stored.name, unknown)
        message = f"Node {stored.name} status is now: NodeNotReady"
        self.shared.recorder.normal(_SOURCE, NODES, stored, "NodeNotReady", message)
        for pod in self._pods.of(stored.name):
            self._mark_not_ready(pod)
        return changed or stored

    def _mark_not_ready(self, pod: Stored) -> None:
        now = self.registry.clock.now()
        before = pod.obj["status"].get("conditions") or []
        ready = next((found for found in before if found.get("type") == "Ready"), None)
        if ready is None or ready["status"] != "True":
            return
        condition = {**ready, "status": "False", "lastTransitionTime": now}
        self.registry.change_status(
            PODS,
            pod.namespace,
            pod.name,
            lambda obj: {**obj["status"], "conditions": set_condition(before, condition)},
        )
