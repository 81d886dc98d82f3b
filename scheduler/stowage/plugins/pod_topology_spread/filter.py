"""PreFilter and Filter of PodTopologySpread: limits the skew between domains."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np

from stowage.framework.verdict import ACCEPT_ALL, BoolArray, FilterVerdict, Int64Array, Rejection
from stowage.plugins.pod_topology_spread.constraints import Constraints, SpreadConstraint
from stowage.plugins.pod_topology_spread.counts import change_of, matching_pods
from stowage.plugins.pod_topology_spread.eligibility import EligibleDomains, EligibleNodes
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import NodeView, Snapshot
from stowage.state.what_if.row_changes import RowChanges

CONSTRAINTS = "node(s) didn't match pod topology spread constraints"
MISSING_LABEL = CONSTRAINTS + " (missing required label)"
_NO_DOMAIN = 2**31 - 1


class FilterState(msgspec.Struct):
    """The state that PreFilter leaves for Filter.

    Attributes:
        constraints: The hard constraints of the pod, in their order.
        counted: Counts per constraint in one snapshot, shared by its row-local views.
    """

    constraints: Constraints
    counted: tuple[Snapshot, list[Counted]] | None = None


class Counted(msgspec.Struct, frozen=True):
    """The matching pods in the cluster without any change.

    Attributes:
        domains: The eligible domains.
        counts: ``int64[domains + 1]``, matching pods; the last entry, no domain, is 0.
        lowest: The lowest count of all eligible domains.
        lowest_elsewhere: ``int64[domains + 1]``: the lowest count of all other domains.
    """

    domains: EligibleDomains
    counts: Int64Array
    lowest: int
    lowest_elsewhere: Int64Array


def spread_verdict(
    state: FilterState, eligible: EligibleNodes, pod: PodInfo, nodes: NodeView
) -> FilterVerdict:
    """The verdict about nodes by the hard constraints; the first that a node fails counts.

    A node without the topology key is unresolvable. On other nodes, ``matching pods in the domain +
    the pod itself - the lowest count`` must not exceed maxSkew (``Filter`` of v1.36).
    """
    if nodes.changes is not None:
        return _verdict_alone(state, eligible, pod, nodes, nodes.changes)
    snapshot = nodes.snapshot
    all_domains = eligible.of(pod, state.constraints, snapshot, all_keys=True)
    unlabelled: BoolArray | None = None
    skewed: BoolArray | None = None
    for constraint, domains in zip(state.constraints, all_domains, strict=True):
        codes = nodes.label_codes(constraint.topology_key)
        counts = domains.count(matching_pods(constraint, pod, snapshot))
        missing = codes < 0
        full = _full_domains(constraint, domains, counts)
        if not (full.any() or missing.any()):
            continue
        if unlabelled is None or skewed is None:
            unlabelled, skewed = missing, full.take(codes, mode="wrap")
            continue
        decided = unlabelled | skewed
        if decided.all():
            break
        unlabelled |= missing & ~decided
        skewed |= full.take(codes, mode="wrap") & ~decided
    if unlabelled is None or skewed is None:
        return ACCEPT_ALL
    return _verdict(unlabelled, skewed)


def _verdict_alone(
    state: FilterState,
    eligible: EligibleNodes,
    pod: PodInfo,
    nodes: NodeView,
    changes: RowChanges,
) -> FilterVerdict:
    """`spread_verdict` for a row-local view."""
    if state.counted is None or state.counted[0] is not nodes.snapshot:
        state.counted = nodes.snapshot, list(_count(state.constraints, eligible, pod, nodes))
    unlabelled: BoolArray = np.zeros(len(nodes), dtype=np.bool_)
    skewed: BoolArray = np.zeros(len(nodes), dtype=np.bool_)
    for constraint, counted in zip(state.constraints, state.counted[1], strict=True):
        codes = nodes.label_codes(constraint.topology_key)
        decided = unlabelled | skewed
        unlabelled |= (codes < 0) & ~decided
        change = change_of(constraint, pod, changes)
        skewed |= _too_full_alone(constraint, counted, change, nodes) & ~decided
    return _verdict(unlabelled, skewed)


def _count(
    constraints: Constraints, eligible: EligibleNodes, pod: PodInfo, nodes: NodeView
) -> Iterator[Counted]:
    snapshot = nodes.snapshot
    all_domains = eligible.of(pod, constraints, snapshot, all_keys=True)
    for constraint, domains in zip(constraints, all_domains, strict=True):
        counts = domains.count(matching_pods(constraint, pod, snapshot))
        present = domains.present
        lowest = int(counts[present].min()) if len(present) else _NO_DOMAIN
        elsewhere = _lowest_elsewhere(counts, domains)
        yield Counted(domains, np.append(counts, 0), lowest, elsewhere)


def _full_domains(
    constraint: SpreadConstraint, domains: EligibleDomains, counts: Int64Array
) -> BoolArray:
    """``bool[domains + 1]``: where one more pod exceeds maxSkew; the last entry is False.

    With fewer eligible domains than minDomains, the lowest count is 0.
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


def _too_full_alone(
    constraint: SpreadConstraint, counted: Counted, change: Int64Array, nodes: NodeView
) -> BoolArray:
    """``bool[nodes]``: where one more pod exceeds maxSkew, each node with its own changes only.

    As in ``updateWithPod`` of v1.36, an added or removed pod counts even if it is terminating,
    although the counts of the cluster leave out terminating pods.
    """
    domains = counted.domains
    codes = nodes.label_codes(constraint.topology_key)
    is_eligible = domains.contain(nodes)
    own = counted.counts.take(codes, mode="wrap")
    own += np.where(is_eligible, change, 0)
    if len(domains.present) < constraint.min_domains:
        lowest: Int64Array = np.zeros(len(nodes), dtype=np.int64)
    else:
        lowest = np.minimum(counted.lowest_elsewhere.take(codes, mode="wrap"), own)
        lowest = np.where(is_eligible, lowest, counted.lowest)
    too_full: BoolArray = own + constraint.matches_self - lowest > constraint.max_skew
    return too_full & (codes >= 0)


def _lowest_elsewhere(counts: Int64Array, domains: EligibleDomains) -> Int64Array:
    """``int64[domains + 1]``: the lowest count of all other domains."""
    lowest = np.full(len(counts) + 1, _NO_DOMAIN, dtype=np.int64)
    present = domains.present
    if len(present):
        lowest_at = int(counts[present].argmin())
        lowest[:] = counts[present[lowest_at]]
        others = np.delete(counts[present], lowest_at)
        lowest[present[lowest_at]] = others.min() if len(others) else _NO_DOMAIN
    return lowest


def _verdict(unlabelled: BoolArray, skewed: BoolArray) -> FilterVerdict:
    rejections: list[Rejection] = []
    if unlabelled.any():
        rejections.append(Rejection(MISSING_LABEL, unlabelled, unresolvable=True))
    if skewed.any():
        rejections.append(Rejection(CONSTRAINTS, skewed))
    return FilterVerdict(tuple(rejections)) if rejections else ACCEPT_ALL
