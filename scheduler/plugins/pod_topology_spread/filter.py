"""PodTopologySpread, PreFilter and Filter: no domain may run ahead of the emptiest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scheduler.framework.verdict import ACCEPT_ALL, BoolArray, FilterVerdict, Int64Array, Rejection
from scheduler.plugins.pod_topology_spread.constraints import Constraints, SpreadConstraint
from scheduler.plugins.pod_topology_spread.counts import matching_pods
from scheduler.plugins.pod_topology_spread.eligibility import EligibleDomains, EligibleNodes
from scheduler.state.pod_info import PodInfo
from scheduler.state.snapshot import NodeView

CONSTRAINTS = "node(s) didn't match pod topology spread constraints"
MISSING_LABEL = CONSTRAINTS + " (missing required label)"
_NO_DOMAIN = 2**31 - 1


@dataclass(frozen=True, slots=True)
class FilterState:
    """The hard constraints of the pod, found by PreFilter."""

    constraints: Constraints


def spread_verdict(
    constraints: Constraints, eligible: EligibleNodes, pod: PodInfo, nodes: NodeView
) -> FilterVerdict:
    """Judge all nodes by the hard constraints, in their order: the first that fails counts.

    A node without the topology key cannot be mended by removing pods. Otherwise
    ``matching pods in its domain + the pod itself - the lowest count`` must not exceed maxSkew.
    """
    snapshot = nodes.snapshot
    all_domains = eligible.of(pod, constraints, snapshot, all_keys=True)
    unlabelled: BoolArray = np.zeros(len(nodes), dtype=np.bool_)
    skewed: BoolArray = np.zeros(len(nodes), dtype=np.bool_)
    for constraint, domains in zip(constraints, all_domains, strict=True):
        codes = nodes.label_codes(constraint.topology_key)
        counts = domains.count(matching_pods(constraint, pod, snapshot))
        decided = unlabelled | skewed
        unlabelled |= (codes < 0) & ~decided
        full = _full_domains(constraint, domains, counts)
        if full.any():
            skewed |= full.take(codes, mode="wrap") & ~decided
    return _verdict(unlabelled, skewed)


def _full_domains(
    constraint: SpreadConstraint, domains: EligibleDomains, counts: Int64Array
) -> BoolArray:
    """``bool[domains + 1]``: where one more pod is too many; the last entry, no domain, is False.

    With fewer eligible domains than minDomains the lowest count is taken to be 0.
    """
    present = domains.present
    if len(present) < constraint.min_domains:
        lowest = 0
    elif not len(present):
        lowest = _NO_DOMAIN
    else:
        lowest = int((counts if len(present) == len(counts) else counts[present]).min())
    full = np.zeros(len(counts) + 1, dtype=np.bool_)
    np.greater(counts, constraint.max_skew - constraint.matches_self + lowest, out=full[:-1])
    return full


def _verdict(unlabelled: BoolArray, skewed: BoolArray) -> FilterVerdict:
    rejections: list[Rejection] = []
    if unlabelled.any():
        rejections.append(Rejection(MISSING_LABEL, unlabelled, unresolvable=True))
    if skewed.any():
        rejections.append(Rejection(CONSTRAINTS, skewed))
    return FilterVerdict(tuple(rejections)) if rejections else ACCEPT_ALL
