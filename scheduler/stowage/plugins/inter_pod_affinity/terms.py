"""Counts of the placed pods that match terms of the incoming pod."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

import numpy as np

from stowage.api.values.selectors import EVERYTHING, NOTHING, Selector
from stowage.framework.verdict import BoolArray, Int64Array
from stowage.state.namespaces import Namespaces
from stowage.state.pods.label_groups import WeightedQuery
from stowage.state.pods.pod_index import PodCounts, PodIndex
from stowage.state.pods.pod_info import AffinityTerm
from stowage.state.snapshot import Snapshot


def matched_pods(term: AffinityTerm, snapshot: Snapshot) -> PodCounts:
    """Counts of the placed pods that match `term`, a term of the incoming pod."""
    namespaces = meant_namespaces(term, snapshot.namespaces)
    return snapshot.pods.count_matching(term.selector, namespaces, skip_terminating=False)


def weighted_matches(
    weighted: Iterable[tuple[int, AffinityTerm]], snapshot: Snapshot, pods: PodIndex
) -> Iterator[tuple[str, Int64Array]]:
    """For terms that are too many to count the pods of each: the sums per topology key.

    Returns:
        Topology key and ``int64[domains]``, weights times matched pods; empty if there are none.
    """
    by_key: dict[str, list[WeightedQuery]] = {}
    for weight, term in weighted:
        namespaces = meant_namespaces(term, snapshot.namespaces)
        by_key.setdefault(term.topology_key, []).append((term.selector, namespaces, weight))
    for key, queries in by_key.items():
        yield key, pods.weigh_matching(key, queries)


def pods_matching_all(terms: Sequence[AffinityTerm], snapshot: Snapshot) -> PodCounts:
    """Counts of the placed pods that match all `terms`.

    Required affinity needs a single pod that matches all terms, not one pod per term.
    """
    if len(terms) == 1:
        return matched_pods(terms[0], snapshot)
    selector = _conjunction(tuple(term.selector for term in terms))
    namespaces: frozenset[str] | None = None
    for term in terms:
        meant = meant_namespaces(term, snapshot.namespaces)
        if meant is not None:
            namespaces = meant if namespaces is None else namespaces & meant
    return snapshot.pods.count_matching(selector, namespaces, skip_terminating=False)


def meant_namespaces(term: AffinityTerm, namespaces: Namespaces) -> frozenset[str] | None:
    """The namespaces that a term of the incoming pod selects; None for all, existing or not.

    As in ``mergeAffinityTermNamespacesIfNotEmpty`` (v1.36), a namespace selector is resolved to the
    namespaces that exist, except that an empty one selects any namespace.
    """
    if term.namespace_selector.matches_everything:
        return None
    if term.namespace_selector.matches_nothing:
        return term.namespaces
    # Without namespaces of its own, the term shares the set with other terms.
    matching = namespaces.matching(term.namespace_selector)
    return term.namespaces | matching if term.namespaces else matching


def matches_itself(
    terms: Sequence[AffinityTerm], namespace: str, labels: dict[str, str], namespaces: Namespaces
) -> bool:
    """Whether a pod of `namespace` with `labels` matches all `terms` of the incoming pod."""
    for term in terms:
        meant = meant_namespaces(term, namespaces)
        if meant is not None and namespace not in meant:
            return False
        if not term.selector.matches(labels):
            return False
    return True


def present_domains(per_domain: Int64Array) -> BoolArray:
    """``bool[domains + 1]``: domains with a positive count; the last entry, no domain, is False.

    Examples:
        >>> present_domains(np.array([0, 2])).tolist()
        [False, True, False]
    """
    present = np.zeros(len(per_domain) + 1, dtype=np.bool_)
    np.greater(per_domain, 0, out=present[:-1])
    return present


@lru_cache(maxsize=4096)
def _conjunction(selectors: tuple[Selector, ...]) -> Selector:
    """One selector for all."""
    if any(selector.matches_nothing for selector in selectors):
        return NOTHING
    # In one call: each call sorts all requirements.
    return EVERYTHING.with_requirements(
        requirement for selector in selectors for requirement in selector.requirements
    )
