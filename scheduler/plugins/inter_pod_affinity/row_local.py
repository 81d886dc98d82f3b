"""InterPodAffinity, Filter of row-local views: each node with its own pods changed, alone.

The counts of a node's domain are those of the cluster, corrected by what came to or left that
very node (``AddPod`` and ``RemovePod`` of v1.36).
"""

from __future__ import annotations

import numpy as np

from scheduler.framework.verdict import BoolArray, FilterVerdict, Int64Array
from scheduler.plugins.inter_pod_affinity.filter import first_that_applies
from scheduler.plugins.inter_pod_affinity.terms import (
    matched_pods,
    matches_itself,
    meant_namespaces,
    pods_matching_all,
)
from scheduler.state.affinity_terms import TermKind
from scheduler.state.pod_class import PodClass
from scheduler.state.pod_counts import PodCounts
from scheduler.state.pod_info import PodInfo
from scheduler.state.row_what_if import RowChanges
from scheduler.state.snapshot import NodeView

_KEEP_AWAY = TermKind.REQUIRED_ANTI_AFFINITY


def required_terms_verdict_alone(
    pod: PodInfo, nodes: NodeView, changes: RowChanges
) -> FilterVerdict:
    """As `required_terms_verdict`."""
    return first_that_applies(
        _unlike(pod, nodes, changes), _far(pod, nodes, changes), _kept_away(pod, nodes, changes)
    )


def _unlike(pod: PodInfo, nodes: NodeView, changes: RowChanges) -> BoolArray | None:
    """Nodes without a pod to be near to, or without one of the topology labels."""
    terms = pod.pod_class.required_affinity_terms
    if not terms:
        return None
    counts = pods_matching_all(terms, nodes.snapshot)
    change = _change_of_all(pod, nodes, changes)
    labelled: BoolArray = np.ones(len(nodes), dtype=np.bool_)
    near: BoolArray = np.ones(len(nodes), dtype=np.bool_)
    anywhere: BoolArray = np.zeros(len(nodes), dtype=np.bool_)
    for key in dict.fromkeys(term.topology_key for term in terms):
        has_key = nodes.label_codes(key) >= 0
        labelled &= has_key
        near &= _in_domain(counts, key, nodes, change) > 0
        anywhere |= int(counts.per_domain(key).sum()) + np.where(has_key, change, 0) > 0
    if matches_itself(terms, pod.namespace, pod.labels, nodes.snapshot.namespaces):
        near |= ~anywhere
    return np.logical_not(labelled & near)


def _far(pod: PodInfo, nodes: NodeView, changes: RowChanges) -> BoolArray | None:
    """Nodes in a domain with a pod that the pod keeps away from."""
    terms = pod.pod_class.required_anti_affinity_terms
    if not terms:
        return None
    hit: BoolArray = np.zeros(len(nodes), dtype=np.bool_)
    for term in terms:
        namespaces = meant_namespaces(term, nodes.snapshot.namespaces)
        change = changes.count_matching(term.selector, namespaces, skip_terminating=False)
        hit |= _in_domain(matched_pods(term, nodes.snapshot), term.topology_key, nodes, change) > 0
    return hit


def _kept_away(pod: PodInfo, nodes: NodeView, changes: RowChanges) -> BoolArray | None:
    """Nodes in a domain with a pod that keeps the pod away."""
    snapshot = nodes.snapshot
    carried_terms = snapshot.pods.carried_terms_matching(_KEEP_AWAY, pod)
    hit: BoolArray = np.zeros(len(nodes), dtype=np.bool_)
    for carried in carried_terms:
        change = changes.count_carrying(_KEEP_AWAY, carried.term)
        hit |= _in_domain(carried.counts, carried.term.topology_key, nodes, change) > 0
    known = {carried.term for carried in carried_terms}
    labels = snapshot.namespaces.labels(pod.namespace)
    for term in changes.terms_added(_KEEP_AWAY) - known:
        if term.matches(pod.namespace, pod.labels, labels):
            has_key = nodes.label_codes(term.topology_key) >= 0
            hit |= has_key & (changes.count_carrying(_KEEP_AWAY, term) > 0)
    return hit if hit.any() else None


def _change_of_all(pod: PodInfo, nodes: NodeView, changes: RowChanges) -> Int64Array:
    """How many more pods match all of the pod's affinity terms."""
    terms, namespaces = pod.pod_class.required_affinity_terms, nodes.snapshot.namespaces

    def is_meant(pod_class: PodClass, terminating: bool) -> int:
        del terminating
        return matches_itself(terms, pod_class.namespace, pod_class.labels, namespaces)

    return changes.sum(("matching all", terms), is_meant)


def _in_domain(counts: PodCounts, key: str, nodes: NodeView, change: Int64Array) -> Int64Array:
    """``int64[nodes]``: the count of each node's domain after its own change; 0 without one."""
    codes = nodes.label_codes(key)
    per_domain = np.append(counts.per_domain(key), 0)
    return np.where(codes >= 0, per_domain.take(codes, mode="wrap") + change, 0)
