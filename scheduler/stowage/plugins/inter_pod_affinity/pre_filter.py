"""PreFilter of InterPodAffinity: finds the domains of pods that match required terms."""

from __future__ import annotations

import msgspec
import numpy as np

from stowage.framework.verdict import BoolArray
from stowage.plugins.inter_pod_affinity.domain_sums import DomainSums
from stowage.plugins.inter_pod_affinity.terms import (
    matched_pods,
    matches_itself,
    pods_matching_all,
    present_domains,
    weighted_matches,
)
from stowage.state.pods.affinity_terms import TermKind
from stowage.state.pods.pod_counts import FewDomains
from stowage.state.pods.pod_index import PodIndex
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import Snapshot

#: The pods that match a term are counted, and the counts kept, for so many terms of one pod.
_MANY_TERMS = 64

DomainsByKey = dict[str, BoolArray]
"""Topology key -> ``bool[domains + 1]``; the last entry stands for nodes without the label."""


class FilterState(msgspec.Struct, frozen=True):
    """The state that PreFilter leaves for Filter.

    Attributes:
        snapshot: Where this was counted; only the same one may be judged by it.
        near: Domains with a pod that matches all required affinity terms, for each of their
            topology keys.
        far: Domains with a pod that matches a required anti-affinity term of that key; keys
            without any such domain are left out.
        kept_away: Domains with a pod whose required anti-affinity matches the incoming pod.
        first_of_its_kind: Whether no placed pod matches the affinity terms but the pod itself does;
            it then fits every node with the topology keys.
    """

    snapshot: Snapshot
    near: DomainsByKey
    far: DomainsByKey
    kept_away: DomainsByKey
    first_of_its_kind: bool


def count_required_terms(pod: PodInfo, snapshot: Snapshot) -> FilterState:
    """The state for Filter: a mask over domains per topology key (``preFilterState`` of v1.36)."""
    near = _near(pod, snapshot)
    terms = pod.pod_class.required_affinity_terms
    return FilterState(
        snapshot=snapshot,
        near=near,
        far=_far(pod, snapshot),
        kept_away=_kept_away(pod, snapshot),
        first_of_its_kind=bool(terms)
        and not any(domains.any() for domains in near.values())
        and matches_itself(terms, pod.namespace, pod.labels, snapshot.namespaces),
    )


def needed_terms(pod: PodInfo, snapshot: Snapshot) -> FilterState | None:
    """`count_required_terms`, or None if no required term of the pod or a placed pod applies."""
    terms = pod.pod_class
    if not (terms.required_affinity_terms or terms.required_anti_affinity_terms):
        kept_away = _kept_away(pod, snapshot)
        return FilterState(snapshot, {}, {}, kept_away, False) if kept_away else None
    return count_required_terms(pod, snapshot)


def _near(pod: PodInfo, snapshot: Snapshot) -> DomainsByKey:
    terms = pod.pod_class.required_affinity_terms
    if not terms:
        return {}
    counts = pods_matching_all(terms, snapshot)
    keys = dict.fromkeys(term.topology_key for term in terms)
    return {key: present_domains(counts.per_domain(key)) for key in keys}


def _far(pod: PodInfo, snapshot: Snapshot) -> DomainsByKey:
    domains: DomainsByKey = {}
    terms = pod.pod_class.required_anti_affinity_terms
    if len(terms) > _MANY_TERMS and isinstance(snapshot.pods, PodIndex):
        each_once = ((1, term) for term in terms)
        for key, amounts in weighted_matches(each_once, snapshot, snapshot.pods):
            _merge(domains, key, present_domains(amounts))
        return domains
    for term in terms:
        key, counts = term.topology_key, matched_pods(term, snapshot)
        few = counts.few_domains(key)
        if few is not None:
            _merge(domains, key, _present_of_few(key, few, snapshot))
        else:
            _merge(domains, key, present_domains(counts.per_domain(key)))
    return domains


def _kept_away(pod: PodInfo, snapshot: Snapshot) -> DomainsByKey:
    existing_terms = snapshot.pods.existing_terms_matching(TermKind.REQUIRED_ANTI_AFFINITY, pod)
    if not existing_terms:
        return {}
    sums = DomainSums(snapshot)
    for carried in existing_terms:
        sums.add_carried(carried, 1)
    # In a what-if the counts may be zero, or of pods on nodes without such a domain.
    domains = {key: _present_of_few(key, few, snapshot) for key, few in sums.few().items()}
    domains |= {key: total > 0 for key, total in sums.totals().items()}
    return {key: present for key, present in domains.items() if present.any()}


def _present_of_few(key: str, few: FewDomains, snapshot: Snapshot) -> BoolArray:
    """`present_domains` of few of many domains."""
    codes, pods = few
    present = np.zeros(snapshot.label_column(key).num_values + 1, dtype=np.bool_)
    present[codes] = pods > 0
    return present


def _merge(domains: DomainsByKey, key: str, present: BoolArray) -> None:
    if not present.any():
        return
    known = domains.get(key)
    domains[key] = present if known is None else known | present
