"""Taints that follow a node's state: not ready, or closed to new pods."""

from typing import Any

from scheduler.cluster.controllers.reconciler import Key, Reconciler, key_of
from scheduler.cluster.pod_rules import NOT_READY_TAINT
from scheduler.cluster.registry import editable
from scheduler.cluster.resources import NODES

Json = dict[str, Any]

UNSCHEDULABLE_TAINT = "node.kubernetes.io/unschedulable"
_OWN_TAINTS = frozenset((NOT_READY_TAINT, UNSCHEDULABLE_TAINT))


class NodeLifecycleController(Reconciler):
    """Keeps the NoSchedule taints of nodes in step with their readiness and cordon."""

    def follow(self) -> None:
        """Follow nodes."""
        self.subscribe(NODES, lambda change: self.enqueue(key_of(change)))
        self.enqueue_all(NODES)

    def reconcile(self, key: Key) -> None:
        """Add or drop the two taints."""
        stored = self.store.get(NODES.stored_in, "", key.name)
        if stored is None:
            return
        taints = stored.obj["spec"].get("taints") or []
        wanted = _wanted(stored.obj)
        if {taint["key"] for taint in taints if _is_own(taint)} == wanted:
            return
        obj = editable(stored)
        kept = [taint for taint in taints if not _is_own(taint)]
        kept += [{"key": name, "effect": "NoSchedule"} for name in sorted(wanted)]
        obj["spec"]["taints"] = kept
        if not kept:
            del obj["spec"]["taints"]
        self.registry.replace(NODES, stored, obj)


def _is_own(taint: Json) -> bool:
    return taint["key"] in _OWN_TAINTS and taint.get("effect") == "NoSchedule"


def _wanted(node: Json) -> set[str]:
    wanted = set()
    conditions = node["status"].get("conditions") or ()
    ready = next((found for found in conditions if found.get("type") == "Ready"), None)
    if ready is None or ready.get("status") != "True":
        wanted.add(NOT_READY_TAINT)
    if node["spec"].get("unschedulable"):
        wanted.add(UNSCHEDULABLE_TAINT)
    return wanted
