"""PreScore and Score of PodTopologySpread."""

from __future__ import annotations

import math

import msgspec
import numpy as np
from numpy.typing import NDArray

from stowage.framework.scores import MAX_NODE_SCORE
from stowage.framework.shared_scores import DomainScores, SharedScores, close_scores
from stowage.framework.verdict import BoolArray, Int64Array
from stowage.plugins.pod_topology_spread.args import HOSTNAME_KEY
from stowage.plugins.pod_topology_spread.constraints import Constraints, SpreadConstraint
from stowage.plugins.pod_topology_spread.counts import matching_pods
from stowage.plugins.pod_topology_spread.eligibility import EligibleDomains, EligibleNodes
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import NodeView

Float64Array = NDArray[np.float64]


class ScoreState(msgspec.Struct, frozen=True):
    """The state that PreScore leaves for Score.

    Attributes:
        constraints: The soft constraints of the pod.
        all_keys: Whether nodes that lack a topology key are ignored.
        ignored: ``bool[nodes]`` over the feasible nodes; None if no node is ignored.
    """

    constraints: Constraints
    all_keys: bool
    ignored: BoolArray | None


def prepare_score(constraints: Constraints, all_keys: bool, nodes: NodeView) -> ScoreState:
    """Find the feasible nodes to ignore because they lack a topology key."""
    ignored: BoolArray | None = None
    if all_keys:
        for constraint in constraints:
            if nodes.snapshot.all_have_label(constraint.topology_key):
                continue
            missing = nodes.label_codes(constraint.topology_key) < 0
            ignored = missing if ignored is None else ignored | missing
        if ignored is not None and not ignored.any():
            ignored = None
    return ScoreState(constraints, all_keys, ignored)


def spread_score(
    state: ScoreState, eligible: EligibleNodes, pod: PodInfo, nodes: NodeView
) -> Int64Array:
    """Raw scores of nodes, ``int64[nodes]``: lower is better; 0 for ignored nodes.

    Per constraint ``matching pods in the domain * log(domains + 2) + maxSkew - 1``, summed in
    float64 and rounded half away from zero (``scoreForCount`` of v1.36). For the hostname key the
    node's own pods count, whether or not the node is eligible.
    """
    all_domains = eligible.of(pod, state.constraints, nodes.snapshot, all_keys=state.all_keys)
    total: Float64Array = np.zeros(len(nodes))
    for constraint, domains in zip(state.constraints, all_domains, strict=True):
        if constraint.topology_key == HOSTNAME_KEY:
            total += _hostname_part(constraint, state, pod, nodes)
        elif domains.length:
            total += _domain_part(constraint, domains, state, pod, nodes)
    if state.ignored is not None:
        total[state.ignored] = 0.0
    return _rounded(total)


def shared_spread_scores(
    state: ScoreState, eligible: EligibleNodes, pod: PodInfo, nodes: NodeView
) -> SharedScores | Int64Array:
    """`spread_score` by the distinct scores: those of the domains if there is one constraint."""
    if state.ignored is not None:
        return spread_score(state, eligible, pod, nodes)
    key = state.constraints[0].topology_key
    if len(state.constraints) > 1 or key == HOSTNAME_KEY or not nodes.has_few_values(key):
        return close_scores(spread_score(state, eligible, pod, nodes))
    domains = eligible.of(pod, state.constraints, nodes.snapshot, all_keys=state.all_keys)[0]
    present = nodes.codes_present(key)
    by_domain = _by_domain(state.constraints[0], domains, present, pod, nodes)
    return DomainScores(_rounded(by_domain), present, nodes.label_codes(key))


def topology_normalizing_weight(num_domains: int) -> float:
    """``log(domains + 2)``: balances topologies of few domains against those of many.

    Examples:
        >>> round(topology_normalizing_weight(3), 4)
        1.6094
    """
    return math.log(num_domains + 2)


def normalized_reversed(scores: Int64Array, ignored: BoolArray | None) -> Int64Array:
    """Reverse raw scores and scale them to 0..100.

    ``100 * (highest + lowest - score) // highest``, with the extremes over the nodes that are not
    ignored; 100 for all of them if the highest is 0, and 0 for ignored nodes (``NormalizeScore`` of
    v1.36).

    Args:
        scores: ``int64[nodes]``, from `spread_score`.
        ignored: ``bool[nodes]``, or None if no node is ignored.

    Returns:
        ``int64[nodes]`` in 0..100.

    Examples:
        >>> normalized_reversed(np.array([0, 1, 4]), None).tolist()
        [100, 75, 0]
        >>> normalized_reversed(np.array([0, 0, 0]), np.array([False, True, False])).tolist()
        [100, 0, 100]
    """
    rated = scores if ignored is None else scores[~ignored]
    if not len(rated):
        return np.zeros_like(scores)
    highest = int(rated.max())
    if highest == 0:
        normalized = np.full_like(scores, MAX_NODE_SCORE)
    else:
        normalized = MAX_NODE_SCORE * (highest + int(rated.min()) - scores) // highest
    if ignored is not None:
        normalized[ignored] = 0
    return normalized


def _hostname_part(
    constraint: SpreadConstraint, state: ScoreState, pod: PodInfo, nodes: NodeView
) -> Float64Array:
    num_ignored = 0 if state.ignored is None else int(np.count_nonzero(state.ignored))
    weight = topology_normalizing_weight(len(nodes) - num_ignored)
    counts = nodes.take(matching_pods(constraint, pod, nodes.snapshot).per_node)
    part: Float64Array = counts.astype(np.float64)
    part *= weight
    part += constraint.max_skew - 1
    unlabelled = nodes.label_codes(HOSTNAME_KEY) < 0
    if unlabelled.any():
        part[unlabelled] = 0.0
    return part


def _domain_part(
    constraint: SpreadConstraint,
    domains: EligibleDomains,
    state: ScoreState,
    pod: PodInfo,
    nodes: NodeView,
) -> Float64Array:
    present = _present(constraint, state, nodes)
    by_domain = _by_domain(constraint, domains, present, pod, nodes)
    return by_domain.take(nodes.label_codes(constraint.topology_key), mode="wrap")


def _by_domain(
    constraint: SpreadConstraint,
    domains: EligibleDomains,
    present: NDArray[np.intp],
    pod: PodInfo,
    nodes: NodeView,
) -> Float64Array:
    """``float64[domains + 1]``; the last entry, no domain, is 0."""
    shared = nodes.snapshot.label_column(constraint.topology_key).values.get("")
    num_domains = len(present)
    if shared >= 0 and num_domains and present[-1] == domains.length and shared in present:
        num_domains -= 1  # Nodes without the label are in the domain "".
    weight = topology_normalizing_weight(num_domains)
    counts = domains.count(matching_pods(constraint, pod, nodes.snapshot))
    by_domain = np.zeros(domains.length + 1, dtype=np.float64)
    by_domain[:-1] = counts * weight + (constraint.max_skew - 1)
    return by_domain


def _present(constraint: SpreadConstraint, state: ScoreState, nodes: NodeView) -> NDArray[np.intp]:
    """The codes of the domains of the nodes that are not ignored; see `NodeView.codes_present`."""
    if state.ignored is None:
        return nodes.codes_present(constraint.topology_key)
    return np.unique(nodes.label_codes(constraint.topology_key)[~state.ignored])


def _rounded(values: Float64Array) -> Int64Array:
    """Non-negative values rounded to the nearest integer, halves away from zero.

    Examples:
        >>> _rounded(np.array([0.5, 1.4, 2.5])).tolist()
        [1, 1, 3]
    """
    whole = np.floor(values)
    return (whole + (values - whole >= 0.5)).astype(np.int64)
