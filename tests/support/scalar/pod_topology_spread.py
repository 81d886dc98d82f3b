"""PodTopologySpread of kube-scheduler v1.36, one node and one pod at a time."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from stowage.api.objects.meta import LabelSelector, LabelSelectorRequirement, controller_of
from stowage.api.objects.node import Node
from stowage.api.objects.pod import Pod, TopologySpreadConstraint
from tests.support.scalar.cluster import PlainCluster
from tests.support.scalar.labels import (
    is_empty,
    matches_required_node_affinity,
    selects,
    tolerates_scheduling_taints,
)

NOT_MATCHED = "node(s) didn't match pod topology spread constraints"
MISSING_LABEL = "node(s) didn't match pod topology spread constraints (missing required label)"
HOSTNAME = "kubernetes.io/hostname"
SYSTEM_DEFAULTS = (
    TopologySpreadConstraint(
        max_skew=3, topology_key=HOSTNAME, when_unsatisfiable="ScheduleAnyway"
    ),
    TopologySpreadConstraint(
        max_skew=5,
        topology_key="topology.kubernetes.io/zone",
        when_unsatisfiable="ScheduleAnyway",
    ),
)


@dataclass(frozen=True)
class Defaults:
    """The plugin's arguments: the constraints of pods that have none."""

    constraints: tuple[TopologySpreadConstraint, ...] = SYSTEM_DEFAULTS
    system: bool = True


def constraints_of(
    cluster: PlainCluster, defaults: Defaults, pod: Pod, action: str
) -> list[TopologySpreadConstraint]:
    """The pod's constraints with that action, with complete selectors."""
    own = pod.spec.topology_spread_constraints
    if own:
        return [_with_match_label_keys(one, pod) for one in own if one.when_unsatisfiable == action]
    wanted = [one for one in defaults.constraints if one.when_unsatisfiable == action]
    selector = default_selector(cluster, pod)
    if is_empty(selector):
        return []
    return [_with_selector(one, selector) for one in wanted]


def _with_selector(
    constraint: TopologySpreadConstraint, selector: LabelSelector | None
) -> TopologySpreadConstraint:
    return TopologySpreadConstraint(
        max_skew=constraint.max_skew,
        topology_key=constraint.topology_key,
        when_unsatisfiable=constraint.when_unsatisfiable,
        label_selector=selector,
        min_domains=constraint.min_domains,
        node_affinity_policy=constraint.node_affinity_policy,
        node_taints_policy=constraint.node_taints_policy,
    )


def _with_match_label_keys(
    constraint: TopologySpreadConstraint, pod: Pod
) -> TopologySpreadConstraint:
    labels = pod.metadata.labels
    extra = tuple(
        LabelSelectorRequirement(key=key, operator="In", values=(labels[key],))
        for key in constraint.match_label_keys
        if key in labels
    )
    if constraint.label_selector is None or not extra:
        return _with_selector(constraint, constraint.label_selector)
    own = constraint.label_selector
    merged = LabelSelector(
        match_labels=own.match_labels, match_expressions=own.match_expressions + extra
    )
    return _with_selector(constraint, merged)


def default_selector(cluster: PlainCluster, pod: Pod) -> LabelSelector:
    """The combined selector of the pod's services and controller."""
    labels: dict[str, str] = {}
    namespace = pod.metadata.namespace
    for (kind, where, _), selector in cluster.workloads.items():
        if kind == "Service" and where == namespace and selects(selector, pod.metadata.labels):
            labels |= selector.match_labels if selector else {}
    owner = controller_of(pod.metadata)
    if owner is None:
        return LabelSelector(match_labels=labels)
    selector = cluster.workloads.get((owner.kind, namespace, owner.name))
    if selector is None:
        return LabelSelector(match_labels=labels)
    known = (owner.api_version, owner.kind)
    if known == ("v1", "ReplicationController"):
        return LabelSelector(match_labels=labels | selector.match_labels)
    if known not in (("apps/v1", "ReplicaSet"), ("apps/v1", "StatefulSet")):
        return LabelSelector(match_labels=labels)
    service_labels = tuple(
        LabelSelectorRequirement(key=key, operator="In", values=(value,))
        for key, value in labels.items()
    )
    return LabelSelector(
        match_labels=selector.match_labels,
        match_expressions=selector.match_expressions + service_labels,
    )


def _has_all_keys(node: Node, constraints: Sequence[TopologySpreadConstraint]) -> bool:
    return all(one.topology_key in node.metadata.labels for one in constraints)


def _counts_for(constraint: TopologySpreadConstraint, pod: Pod, node: Node) -> bool:
    affinity_policy = constraint.node_affinity_policy or "Honor"
    if affinity_policy == "Honor" and not matches_required_node_affinity(pod.spec, node):
        return False
    taints_policy = constraint.node_taints_policy or "Ignore"
    return taints_policy != "Honor" or tolerates_scheduling_taints(pod.spec.tolerations, node)


def _matching_pods(
    cluster: PlainCluster, constraint: TopologySpreadConstraint, pod: Pod, node: Node
) -> int:
    if is_empty(constraint.label_selector):
        return 0
    return sum(
        other.metadata.deletion_timestamp is None
        and other.metadata.namespace == pod.metadata.namespace
        and selects(constraint.label_selector, other.metadata.labels)
        for other in cluster.pods_on(node)
    )


def pre_filter(
    cluster: PlainCluster, defaults: Defaults, pod: Pod
) -> list[tuple[TopologySpreadConstraint, Counter[str]]] | None:
    """Each hard constraint with its matching pods per domain, or None for Skip."""
    constraints = constraints_of(cluster, defaults, pod, "DoNotSchedule")
    counts: list[Counter[str]] = [Counter() for _ in constraints]
    for node in cluster.nodes.values():
        if not _has_all_keys(node, constraints):
            continue
        for constraint, count in zip(constraints, counts, strict=True):
            if _counts_for(constraint, pod, node):
                domain = node.metadata.labels[constraint.topology_key]
                count[domain] += _matching_pods(cluster, constraint, pod, node)
    return list(zip(constraints, counts, strict=True)) or None


def count_change(
    state: list[tuple[TopologySpreadConstraint, Counter[str]]],
    pod: Pod,
    change: tuple[Pod, Node, int],
) -> None:
    """AddPod and RemovePod: another pod is added to a node (1) or removed from it (-1)."""
    other, node, sign = change
    if other.metadata.namespace != pod.metadata.namespace:
        return
    if not _has_all_keys(node, [constraint for constraint, _ in state]):
        return
    for constraint, counts in state:
        matches = selects(constraint.label_selector, other.metadata.labels)
        if matches and _counts_for(constraint, pod, node):
            counts[node.metadata.labels[constraint.topology_key]] += sign


def filter_node(
    state: list[tuple[TopologySpreadConstraint, Counter[str]]], pod: Pod, node: Node
) -> tuple[str, bool] | None:
    """The reason and whether it is unresolvable, or None if the node passes."""
    for constraint, counts in state:
        domain = node.metadata.labels.get(constraint.topology_key)
        if domain is None:
            return MISSING_LABEL, True
        too_few = len(counts) < (1 if constraint.min_domains is None else constraint.min_domains)
        lowest = 0 if too_few else min(counts.values())
        itself = selects(constraint.label_selector, pod.metadata.labels)
        if counts[domain] + itself - lowest > constraint.max_skew:
            return NOT_MATCHED, False
    return None


def scores(
    cluster: PlainCluster, defaults: Defaults, pod: Pod, feasible: Sequence[Node]
) -> tuple[list[int], list[int]] | None:
    """Raw and normalised scores of the feasible nodes, or None for Skip."""
    constraints = constraints_of(cluster, defaults, pod, "ScheduleAnyway")
    if not constraints:
        return None
    all_keys = bool(pod.spec.topology_spread_constraints) or not defaults.system
    ignored = [all_keys and not _has_all_keys(node, constraints) for node in feasible]
    kept = [node for node, skip in zip(feasible, ignored, strict=True) if not skip]
    exact = [0.0] * len(feasible)
    for constraint in constraints:
        counts, weight = _domain_counts(cluster, constraints, constraint, pod, (kept, all_keys))
        for index, node in enumerate(feasible):
            domain = node.metadata.labels.get(constraint.topology_key)
            if ignored[index] or domain is None:
                continue
            if constraint.topology_key == HOSTNAME:
                count = _matching_pods(cluster, constraint, pod, node)
            else:
                count = counts[domain]
            exact[index] += count * weight + (constraint.max_skew - 1)
    raw = [_round(value) for value in exact]
    return raw, _normalized(raw, ignored)


def _domain_counts(
    cluster: PlainCluster,
    constraints: Sequence[TopologySpreadConstraint],
    constraint: TopologySpreadConstraint,
    pod: Pod,
    scope: tuple[list[Node], bool],
) -> tuple[Counter[str], float]:
    kept, all_keys = scope
    key = constraint.topology_key
    counts: Counter[str] = Counter()
    for node in cluster.nodes.values():
        if all_keys and not _has_all_keys(node, constraints):
            continue
        if _counts_for(constraint, pod, node):
            counts[node.metadata.labels.get(key, "")] += _matching_pods(
                cluster, constraint, pod, node
            )
    domains = {node.metadata.labels.get(key, "") for node in kept}
    size = len(kept) if key == HOSTNAME else len(domains)
    return counts, math.log(size + 2)


def _round(value: float) -> int:
    whole = math.floor(value)
    return whole + (value - whole >= 0.5)


def _normalized(raw: Sequence[int], ignored: Sequence[bool]) -> list[int]:
    rated = [value for value, skip in zip(raw, ignored, strict=True) if not skip]
    if not rated:
        return [0] * len(raw)
    lowest, highest = min(rated), max(rated)
    if highest == 0:
        return [0 if skip else 100 for skip in ignored]
    return [
        0 if skip else 100 * (highest + lowest - value) // highest
        for value, skip in zip(raw, ignored, strict=True)
    ]
