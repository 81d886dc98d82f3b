"""PreScore and Score of InterPodAffinity: weights of preferred terms, summed per domain."""

from __future__ import annotations

import msgspec
import numpy as np

from stowage.framework.scores import MAX_NODE_SCORE, MAX_POINTS, POINT
from stowage.framework.shared_scores import (
    DomainScores,
    FewScores,
    SharedScores,
    close_scores,
)
from stowage.framework.verdict import Int64Array
from stowage.plugins.inter_pod_affinity.args import InterPodAffinityArgs
from stowage.plugins.inter_pod_affinity.domain_sums import DomainSums
from stowage.plugins.inter_pod_affinity.terms import matched_pods, weighted_matches
from stowage.state.pods.affinity_terms import AffinityTerm, TermKind
from stowage.state.pods.pod_class import PodClass
from stowage.state.pods.pod_counts import FewDomains
from stowage.state.pods.pod_index import PodIndex
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import NodeView, Snapshot

#: The pods that match a term are counted, and the counts kept, for so many terms of one pod.
_MANY_TERMS = 64


class ScoreState(msgspec.Struct, frozen=True):
    """The state that PreScore leaves for Score.

    Attributes:
        weights: Topology key -> ``int64[domains + 1]``, the sum of the weights of the pod's terms
            that match pods of the domain, and of their terms that match the pod; the last entry,
            no domain, is 0.
        few: The same of the keys of which few of many domains have any weight; keys of `weights`
            are not among them.
    """

    weights: dict[str, Int64Array]
    few: dict[str, FewDomains]


def sum_preferred_terms(
    args: InterPodAffinityArgs, pod: PodInfo, snapshot: Snapshot
) -> ScoreState | None:
    """The weights per domain (``preScoreState`` of v1.36); None if no term applies to any domain.

    Weights that cancel out still count: the nodes are then scored 0.
    """
    preferences = pod.pod_class.preferred_affinity_terms or (
        pod.pod_class.preferred_anti_affinity_terms
    )
    if args.ignore_preferred_terms_of_existing_pods and not preferences:
        return None
    sums = _weighted_counts(args, pod, snapshot)
    few = sums.few()
    weights = sums.totals()
    return ScoreState(weights, few) if weights or few else None


def affinity_score(state: ScoreState, nodes: NodeView) -> Int64Array:
    """Raw scores, ``int64[nodes]``: the weights of each node's domains over all topology keys."""
    score: Int64Array | None = None
    for key, weights in state.weights.items():
        part = nodes.by_label(key, weights)
        score = part if score is None else score + part
    for key, (codes, amounts) in state.few.items():
        table = np.zeros(nodes.snapshot.label_column(key).num_values + 1, dtype=np.int64)
        table[codes] = amounts
        part = nodes.by_label(key, table)
        score = part if score is None else score + part
    return np.zeros(len(nodes), dtype=np.int64) if score is None else score


def shared_affinity_scores(state: ScoreState, nodes: NodeView) -> SharedScores | Int64Array:
    """`affinity_score` by the distinct scores: those of the domains if there is one key."""
    if len(state.weights) + len(state.few) == 1:
        for key, weights in state.weights.items():
            if nodes.has_few_values(key):
                return DomainScores(weights, nodes.codes_present(key), nodes.label_codes(key))
        for key, (codes, amounts) in state.few.items():
            if nodes.snapshot.label_column(key).is_by_row:
                positions, are_here = nodes.positions_of(codes)
                if np.count_nonzero(are_here) < len(nodes):
                    return FewScores(positions[are_here], amounts[are_here], 0)
    return close_scores(affinity_score(state, nodes))


def normalized_between_extremes(scores: Int64Array) -> Int64Array:
    """Scale scores to 0 for the lowest and 100 for the highest; all 0 if they are equal.

    ``100 * ((score - lowest) / (highest - lowest))``, truncated, in float64 and in the order of
    operations of ``NormalizeScore`` (v1.36), so that truncation agrees.

    Args:
        scores: ``int64[nodes]``, of the feasible nodes.

    Returns:
        ``int64[nodes]`` in 0..100.

    Examples:
        >>> normalized_between_extremes(np.array([-3, 0, 4])).tolist()
        [0, 42, 100]
        >>> normalized_between_extremes(np.array([7, 7])).tolist()
        [0, 0]
    """
    if not len(scores):
        return scores
    lowest = int(scores[scores.argmin()])
    span = int(scores[scores.argmax()]) - lowest
    if span == 0:
        return np.zeros_like(scores)
    above = scores - lowest
    if span >= len(scores):
        return _share_of(span, above)
    # Few distinct scores: each is computed once.
    return _share_of(span, np.arange(span + 1)).take(above)


def normalized_from_zero(scores: Int64Array) -> Int64Array:
    """Scale scores to points of 0..10 between the extremes, 0 among them, and multiply by 10.

    ``10 * ((score - lowest) / (highest - lowest))``, truncated, where lowest is at most 0 and
    highest at least 0; all 0 if both are 0 (``CalculateInterPodAffinityPriority`` of 1.12). So
    nodes that are all drawn to equally get 100, not 0. Times 10, weighted sums order nodes as in
    1.12.

    Args:
        scores: ``int64[nodes]``, of the feasible nodes.

    Returns:
        ``int64[nodes]``, multiples of 10 in 0..100.

    Examples:
        >>> normalized_from_zero(np.array([7, 7])).tolist()
        [100, 100]
        >>> normalized_from_zero(np.array([-3, 0, 4])).tolist()
        [0, 40, 100]
        >>> normalized_from_zero(np.array([5, 8])).tolist()
        [60, 100]
    """
    lowest = int(scores.min(initial=0))
    span = int(scores.max(initial=0)) - lowest
    if span == 0:
        return np.zeros_like(scores)
    return _share_of(span, scores - lowest, MAX_POINTS) * POINT


def _share_of(span: int, above: Int64Array, best: int = MAX_NODE_SCORE) -> Int64Array:
    shares: Int64Array = (best * (above / span)).astype(np.int64)
    return shares


def _weighted_counts(args: InterPodAffinityArgs, pod: PodInfo, snapshot: Snapshot) -> DomainSums:
    """The weights of the pod's preferred terms and of the terms of placed pods."""
    sums = DomainSums(snapshot)
    own = _preferences(pod.pod_class)
    if len(own) > _MANY_TERMS and isinstance(snapshot.pods, PodIndex):
        for key, amounts in weighted_matches(own, snapshot, snapshot.pods):
            sums.add_weighted(key, amounts)
    else:
        for weight, term in own:
            sums.add(term.topology_key, weight, matched_pods(term, snapshot))
    matching = snapshot.pods.existing_terms_matching
    for kind, sign in ((TermKind.PREFERRED_AFFINITY, 1), (TermKind.PREFERRED_ANTI_AFFINITY, -1)):
        for carried in matching(kind, pod):
            sums.add_carried(carried, sign * carried.term.weight)
    hard = args.hard_pod_affinity_weight
    if hard > 0:
        for carried in matching(TermKind.REQUIRED_AFFINITY, pod):
            sums.add_carried(carried, hard)
    return sums


def _preferences(terms: PodClass) -> list[tuple[int, AffinityTerm]]:
    """The preferred terms of a pod, with their weights, negative for anti-affinity."""
    return [
        *((term.weight, term) for term in terms.preferred_affinity_terms),
        *((-term.weight, term) for term in terms.preferred_anti_affinity_terms),
    ]
