"""Filter of InterPodAffinity for row-local views, where each node alone has changed pods.

The counts of a node's domain are those of the cluster, corrected by the pods added to or removed
from that node (``AddPod`` and ``RemovePod`` of v1.36).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import partial

import msgspec
import numpy as np

from stowage.framework.verdict import BoolArray, FilterVerdict, Int64Array
from stowage.plugins.inter_pod_affinity.domain_sums import DomainSums
from stowage.plugins.inter_pod_affinity.filter import first_that_applies
from stowage.plugins.inter_pod_affinity.terms import matched_pods, matches_itself, pods_matching_all
from stowage.state.pods.affinity_terms import AffinityTerm, TermKind
from stowage.state.pods.pod_class import PodClass
from stowage.state.pods.pod_counts import PodCounts
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import NodeView, Snapshot
from stowage.state.what_if.row_changes import RowChanges

_KEEP_AWAY = TermKind.REQUIRED_ANTI_AFFINITY


class Repellers(msgspec.Struct, frozen=True):
    """The placed pods whose required anti-affinity matches a pod.

    A dry run judges many row-local views of one cluster: they are counted once for all of them.

    Attributes:
        snapshot: The cluster.
        pod_class: The class of the pod.
        totals: Topology key -> ``int64[domains + 1]``.
    """

    snapshot: Snapshot
    pod_class: PodClass
    totals: Mapping[str, Int64Array]

    @classmethod
    def count(cls, pod: PodInfo, snapshot: Snapshot) -> Repellers:
        """Count them in a cluster."""
        sums = DomainSums(snapshot)
        for carried in snapshot.pods.existing_terms_matching(_KEEP_AWAY, pod):
            sums.add_carried(carried, 1)
        return cls(snapshot, pod.pod_class, sums.totals())

    def hold_for(self, pod: PodInfo, snapshot: Snapshot) -> bool:
        """Whether they are those of this pod in this cluster, which has not changed since."""
        return (
            self.snapshot is snapshot
            and self.pod_class is pod.pod_class
            and not snapshot.is_what_if
            and snapshot.is_current
        )


def required_terms_verdict_alone(
    pod: PodInfo, nodes: NodeView, changes: RowChanges, repellers: Repellers
) -> FilterVerdict:
    """`required_terms_verdict` for a row-local view."""
    return first_that_applies(
        _unlike(pod, nodes, changes),
        _far(pod, nodes, changes),
        _kept_away(pod, nodes, changes, repellers.totals),
    )


def _unlike(pod: PodInfo, nodes: NodeView, changes: RowChanges) -> BoolArray | None:
    """Nodes whose domains lack a pod that matches, or that lack a topology label."""
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
    """Nodes in a domain with a pod that matches an anti-affinity term of the pod."""
    terms, snapshot = pod.pod_class.required_anti_affinity_terms, nodes.snapshot
    if not terms:
        return None
    sums, by_key = DomainSums(snapshot), _by_key(terms)
    for term in terms:
        sums.add(term.topology_key, 1, matched_pods(term, snapshot))

    def num_matched(key: str, pod_class: PodClass) -> int:
        return sum(
            matches_itself((term,), pod_class.namespace, pod_class.labels, snapshot.namespaces)
            for term in by_key[key]
        )

    return _hit(sums.totals(), by_key, nodes, changes, (("far", terms), num_matched))


def _kept_away(
    pod: PodInfo, nodes: NodeView, changes: RowChanges, totals: Mapping[str, Int64Array]
) -> BoolArray:
    """Nodes in a domain with a pod that has an anti-affinity term matching the pod."""
    labels = nodes.snapshot.namespaces.labels(pod.namespace)
    known: dict[PodClass, Counter[str]] = {}

    def num_carried(key: str, pod_class: PodClass) -> int:
        if pod_class not in known:
            known[pod_class] = Counter(
                term.topology_key
                for term in pod_class.required_anti_affinity_terms
                if term.matches(pod.namespace, pod.labels, labels)
            )
        return known[pod_class][key]

    added = {term.topology_key for term in changes.terms_added(_KEEP_AWAY)}
    query = ("kept away", pod.pod_class.namespaced_labels, tuple(labels.items()))
    return _hit(totals, added | totals.keys(), nodes, changes, (query, num_carried))


def _hit(
    totals: Mapping[str, Int64Array],
    keys: Iterable[str],
    nodes: NodeView,
    changes: RowChanges,
    about: tuple[Hashable, Callable[[str, PodClass], int]],
) -> BoolArray:
    """``bool[nodes]``: where a term matches any pod in the node's domain.

    Counts are never negative, so a term of a topology key matches a pod if the sum over the terms
    is not zero: the changes are queried per key, not per term.

    Args:
        totals: Topology key -> ``int64[domains + 1]``, over all terms of the key.
        keys: All topology keys.
        nodes: The nodes.
        changes: The pods added to and removed from each node.
        about: A cache key for the terms, and a function that returns how many terms of a topology
            key match a pod of a class.
    """
    name, count = about
    hit: BoolArray = np.zeros(len(nodes), dtype=np.bool_)
    for key in keys:
        codes = nodes.label_codes(key)
        has_key = codes >= 0
        if not has_key.any():
            continue
        change = changes.sum((name, key), partial(_of_class, count, key))
        total = totals.get(key)
        here = change if total is None else total.take(codes, mode="wrap") + change
        hit |= has_key & (here > 0)
    return hit


def _of_class(
    count: Callable[[str, PodClass], int], key: str, pod_class: PodClass, _terminating: bool
) -> int:
    return count(key, pod_class)


def _by_key(terms: Iterable[AffinityTerm]) -> dict[str, list[AffinityTerm]]:
    by_key: dict[str, list[AffinityTerm]] = {}
    for term in terms:
        by_key.setdefault(term.topology_key, []).append(term)
    return by_key


def _change_of_all(pod: PodInfo, nodes: NodeView, changes: RowChanges) -> Int64Array:
    """``int64[nodes]``: the change in pods that match all of the pod's affinity terms."""
    terms, namespaces = pod.pod_class.required_affinity_terms, nodes.snapshot.namespaces

    def is_meant(pod_class: PodClass, terminating: bool) -> int:
        del terminating
        return matches_itself(terms, pod_class.namespace, pod_class.labels, namespaces)

    return changes.sum(("matching all", terms), is_meant)


def _in_domain(counts: PodCounts, key: str, nodes: NodeView, change: Int64Array) -> Int64Array:
    """``int64[nodes]``: the count in each node's domain with its own change.

    A node without the label has its own change only.
    """
    per_domain = np.append(counts.per_domain(key), 0)
    total: Int64Array = per_domain.take(nodes.label_codes(key), mode="wrap") + change
    return total
