"""InterPodAffinity of kube-scheduler v1.36, one node and one pod at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stowage.api.objects.node import Node
from stowage.api.objects.pod import Pod, PodAffinityTerm, WeightedPodAffinityTerm
from tests.support.scalar.cluster import PlainCluster
from tests.support.scalar.labels import is_empty, selects

AFFINITY = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
EXISTING_ANTI_AFFINITY = "node(s) didn't satisfy existing pods anti-affinity rules"

#: Counts by (topology key, value); an entry stays, even at zero.
Pairs = Counter[tuple[str, str]]


@dataclass(frozen=True)
class Weights:
    """The plugin's arguments."""

    hard_pod_affinity_weight: int = 1
    ignore_preferred_terms_of_existing_pods: bool = False


def required(pod: Pod, anti: bool) -> tuple[PodAffinityTerm, ...]:
    """The pod's own required (anti-)affinity terms."""
    if pod.spec.affinity is None:
        return ()
    rules = pod.spec.affinity.pod_anti_affinity if anti else pod.spec.affinity.pod_affinity
    return rules.required_during_scheduling_ignored_during_execution if rules else ()


def preferred(pod: Pod, anti: bool) -> tuple[WeightedPodAffinityTerm, ...]:
    """The pod's own preferred (anti-)affinity terms."""
    if pod.spec.affinity is None:
        return ()
    rules = pod.spec.affinity.pod_anti_affinity if anti else pod.spec.affinity.pod_affinity
    return rules.preferred_during_scheduling_ignored_during_execution if rules else ()


def _named_namespaces(owner: Pod, term: PodAffinityTerm) -> set[str]:
    if not term.namespaces and term.namespace_selector is None:
        return {owner.metadata.namespace}
    return set(term.namespaces)


def incoming_term_matches(
    cluster: PlainCluster, owner: Pod, term: PodAffinityTerm, other: Pod
) -> bool:
    """Whether a term of the pod to schedule matches another pod.

    The namespace selector is first unrolled over the namespaces that exist, unless it is empty:
    then it covers every namespace, known or not.
    """
    if not selects(term.label_selector, other.metadata.labels):
        return False
    if is_empty(term.namespace_selector):
        return True
    unrolled = {
        name
        for name, labels in cluster.namespaces.items()
        if selects(term.namespace_selector, labels)
    }
    return other.metadata.namespace in _named_namespaces(owner, term) | unrolled


def existing_term_matches(
    cluster: PlainCluster, owner: Pod, term: PodAffinityTerm, incoming: Pod
) -> bool:
    """Whether a term of a placed pod matches the pod to schedule.

    The namespace selector is matched with the labels of the incoming pod's namespace; a
    namespace that does not exist counts as one without labels.
    """
    namespace = incoming.metadata.namespace
    if namespace not in _named_namespaces(owner, term) and not selects(
        term.namespace_selector, cluster.namespaces.get(namespace, {})
    ):
        return False
    return selects(term.label_selector, incoming.metadata.labels)


def _matches_all(
    cluster: PlainCluster, owner: Pod, terms: Sequence[PodAffinityTerm], other: Pod
) -> bool:
    return bool(terms) and all(incoming_term_matches(cluster, owner, term, other) for term in terms)


@dataclass(frozen=True)
class FilterState:
    """The counts of PreFilter."""

    affinity: Pairs
    anti_affinity: Pairs
    existing_anti_affinity: Pairs


def pre_filter(cluster: PlainCluster, pod: Pod) -> FilterState | None:
    """Counts per topology pair, or None for Skip."""
    state = FilterState(Pairs(), Pairs(), Pairs())
    for other, node in cluster.placed():
        count_change(cluster, state, pod, (other, node, 1))
    own = required(pod, anti=False) or required(pod, anti=True)
    return state if state.existing_anti_affinity or own else None


def count_change(
    cluster: PlainCluster, state: FilterState, pod: Pod, change: tuple[Pod, Node, int]
) -> None:
    """Count another pod that is on a node, is added to it (1) or removed from it (-1)."""
    other, node, sign = change
    labels = node.metadata.labels
    if _matches_all(cluster, pod, required(pod, anti=False), other):
        for term in required(pod, anti=False):
            _hit(state.affinity, labels, term.topology_key, sign)
    for term in required(pod, anti=True):
        if incoming_term_matches(cluster, pod, term, other):
            _hit(state.anti_affinity, labels, term.topology_key, sign)
    for term in required(other, anti=True):
        if existing_term_matches(cluster, other, term, pod):
            _hit(state.existing_anti_affinity, labels, term.topology_key, sign)
    for pair in [pair for pair, count in state.affinity.items() if not count]:
        del state.affinity[pair]


def _hit(pairs: Pairs, labels: dict[str, str], key: str, weight: int) -> None:
    if key in labels:
        pairs[key, labels[key]] += weight


def filter_node(
    cluster: PlainCluster, state: FilterState, pod: Pod, node: Node
) -> tuple[str, bool] | None:
    """The reason and whether it is unresolvable, or None if the node passes."""
    labels = node.metadata.labels
    if not _affinity_satisfied(cluster, state, pod, labels):
        return AFFINITY, True
    own = required(pod, anti=True)
    if any(
        state.anti_affinity[term.topology_key, labels[term.topology_key]] > 0
        for term in own
        if term.topology_key in labels
    ):
        return ANTI_AFFINITY, False
    if any(state.existing_anti_affinity[pair] > 0 for pair in labels.items()):
        return EXISTING_ANTI_AFFINITY, False
    return None


def _affinity_satisfied(
    cluster: PlainCluster, state: FilterState, pod: Pod, labels: dict[str, str]
) -> bool:
    terms = required(pod, anti=False)
    if any(term.topology_key not in labels for term in terms):
        return False
    if all(state.affinity[term.topology_key, labels[term.topology_key]] > 0 for term in terms):
        return True
    return not state.affinity and _matches_all(cluster, pod, terms, pod)


def _score_hits(
    cluster: PlainCluster, weights: Weights, pod: Pod, other: Pod
) -> Iterator[tuple[str, int]]:
    for sign, anti in ((1, False), (-1, True)):
        for own in preferred(pod, anti):
            if incoming_term_matches(cluster, pod, own.pod_affinity_term, other):
                yield own.pod_affinity_term.topology_key, sign * own.weight
        for theirs in preferred(other, anti):
            if existing_term_matches(cluster, other, theirs.pod_affinity_term, pod):
                yield theirs.pod_affinity_term.topology_key, sign * theirs.weight
    if weights.hard_pod_affinity_weight > 0:
        for term in required(other, anti=False):
            if existing_term_matches(cluster, other, term, pod):
                yield term.topology_key, weights.hard_pod_affinity_weight


def pre_score(cluster: PlainCluster, weights: Weights, pod: Pod) -> Pairs | None:
    """Weight per topology pair, or None for Skip."""
    has_preferences = bool(preferred(pod, anti=False) or preferred(pod, anti=True))
    if weights.ignore_preferred_terms_of_existing_pods and not has_preferences:
        return None
    pairs = Pairs()
    for other, node in cluster.placed():
        for key, weight in _score_hits(cluster, weights, pod, other):
            _hit(pairs, node.metadata.labels, key, weight)
    return pairs or None


def score(pairs: Pairs, node: Node) -> int:
    """The sum of the weights of the node's topology pairs."""
    return sum(pairs[pair] for pair in node.metadata.labels.items() if pair in pairs)


def normalized(scores: Sequence[int]) -> list[int]:
    """Scores scaled to 0..100 between the lowest and the highest; all 0 if these are equal."""
    lowest, highest = min(scores), max(scores)
    if lowest == highest:
        return [0] * len(scores)
    return [int(100.0 * ((value - lowest) / (highest - lowest))) for value in scores]
