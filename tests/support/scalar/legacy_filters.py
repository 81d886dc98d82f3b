"""Predicates of kube-scheduler 1.12 for one node, in plain Python.

Each function returns the reasons of a rejection; a node without reasons passes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

from stowage.api.objects.meta import LabelSelector
from stowage.api.objects.node import Node
from stowage.api.objects.pod import Pod
from tests.support.scalar.cluster import PlainCluster
from tests.support.scalar.labels import selects

_SUFFIXES = {"m": Decimal("0.001"), "Mi": Decimal(2**20), "Gi": Decimal(2**30)}


def check_node_memory_pressure(pod: Pod, node: Node) -> set[str]:
    """Best-effort pods do not go to nodes under memory pressure."""
    if is_best_effort(pod) and ("MemoryPressure", "True") in _conditions(node):
        return {"node(s) had memory pressure"}
    return set()


def check_node_disk_pressure(pod: Pod, node: Node) -> set[str]:
    """No pod goes to a node under disk pressure."""
    pressed = ("DiskPressure", "True") in _conditions(node)
    return {"node(s) had disk pressure"} if pressed else set()


def check_node_pid_pressure(pod: Pod, node: Node) -> set[str]:
    """No pod goes to a node that is short of process IDs."""
    pressed = ("PIDPressure", "True") in _conditions(node)
    return {"node(s) had pid pressure"} if pressed else set()


def check_node_condition(pod: Pod, node: Node) -> set[str]:
    """A node must be ready, with disk space and network, and not cordoned."""
    reasons = {"node(s) were unschedulable"} if node.spec.unschedulable else set()
    for kind, status in _conditions(node):
        if kind == "Ready" and status != "True":
            reasons.add("node(s) were not ready")
        elif kind == "OutOfDisk" and status != "False":
            reasons.add("node(s) were out of disk space")
        elif kind == "NetworkUnavailable" and status != "False":
            reasons.add("node(s) had unavailable network")
    return reasons


def node_label(
    labels: Mapping[str, str], present: Sequence[str], absent: Sequence[str]
) -> set[str]:
    """A node must have some labels and lack others."""
    if all(key in labels for key in present) and not any(key in labels for key in absent):
        return set()
    return {"node(s) didn't have the requested labels"}


def service_affinity(
    cluster: PlainCluster, pod: Pod, order: Sequence[str], keys: Sequence[str]
) -> dict[str, set[str]]:
    """The reasons of each node: its labels must be those that the pod's service has chosen.

    `order` has the names of the nodes; the first one with a pod like this one decides.
    """
    chosen = pod.spec.node_selector or {}
    wanted = {key: chosen[key] for key in keys if key in chosen}
    first = next(
        (name for name in order if any(_is_like(pod, it) for it in _on(cluster, name))), None
    )
    if first is not None and services_of(cluster, pod):
        labels = cluster.nodes[first].metadata.labels
        for key in keys:
            if key not in wanted and key in labels:
                wanted[key] = labels[key]
    return {
        name: set()
        if wanted.items() <= cluster.nodes[name].metadata.labels.items()
        else {"node(s) didn't match service affinity"}
        for name in order
    }


def services_of(cluster: PlainCluster, pod: Pod) -> list[LabelSelector]:
    """The selectors of the services that select a pod, by name."""
    return [
        selector
        for (kind, namespace, _), selector in sorted(
            cluster.workloads.items(), key=lambda it: it[0]
        )
        if kind == "Service"
        and namespace == pod.metadata.namespace
        and selector is not None
        and selector.match_labels
        and selects(selector, pod.metadata.labels)
    ]


def _on(cluster: PlainCluster, name: str) -> list[Pod]:
    return cluster.pods_on(cluster.nodes[name])


def _is_like(pod: Pod, other: Pod) -> bool:
    same = other.metadata.namespace == pod.metadata.namespace
    return same and pod.metadata.labels.items() <= other.metadata.labels.items()


def is_best_effort(pod: Pod) -> bool:
    """Whether neither a container nor the pod names an amount of cpu or memory."""
    holders = [container.resources for container in pod.spec.containers]
    holders += [pod.spec.resources] if pod.spec.resources else []
    for holder in holders:
        for amounts in (holder.requests, holder.limits):
            if any(amount(amounts[name]) for name in ("cpu", "memory") if name in amounts):
                return False
    return True


def _conditions(node: Node) -> list[tuple[str, str]]:
    return [(each.type, each.status) for each in node.status.conditions]


def amount(text: str | int | float) -> Decimal:
    """A quantity with one of the suffixes that the tests use."""
    number = str(text).rstrip("mMGi")
    return Decimal(number) * _SUFFIXES.get(str(text)[len(number) :], Decimal(1))


CONDITION_FILTERS = {
    "CheckNodeMemoryPressure": check_node_memory_pressure,
    "CheckNodeDiskPressure": check_node_disk_pressure,
    "CheckNodePIDPressure": check_node_pid_pressure,
    "CheckNodeCondition": check_node_condition,
}
