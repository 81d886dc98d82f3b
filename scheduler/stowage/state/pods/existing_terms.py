"""The (anti)affinity terms of the pods that are on nodes, each distinct one once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from cachetools import LRUCache

from stowage.api.values.selectors import NOTHING
from stowage.state.pods.affinity_terms import AffinityTerm
from stowage.state.pods.pod_class import NamespacedLabels, PodClass
from stowage.state.pods.selector_buckets import MAX_HOMES, SelectorBuckets
from stowage.state.pods.term_counts import TermCounts

_MAX_ASKERS = 1024


class ExistingTerm:
    """A term, and how many pods with it are on each node and in each domain.

    Attributes:
        term: The term; its weight is part of it.
        counts: The pods that carry it (twice if it is twice in a pod's list).
    """

    __slots__ = ("counts", "term")

    def __init__(self, term: AffinityTerm, counts: TermCounts) -> None:
        self.term = term
        self.counts = counts

    @property
    def weight(self) -> int:
        """1..100 for preferred terms, 0 for required ones."""
        return self.term.weight


class _Matching(NamedTuple):
    """The terms that mean one sort of pod, and what that was judged by."""

    generation: int
    namespace_labels: Mapping[str, str]
    existing_terms: tuple[ExistingTerm, ...]


class ExistingTerms:
    """All terms of one kind; written by the pod index only.

    A pod is judged once per distinct (namespace, labels), and again after distinct terms came or
    went, by the terms that may mean it.

    Args:
        new_counts: Makes zero counts for a new term.
    """

    __slots__ = ("_buckets", "_generation", "_matching", "_new_counts", "terms")

    def __init__(self, new_counts: Callable[[], TermCounts]) -> None:
        self.terms: dict[AffinityTerm, ExistingTerm] = {}
        self._new_counts = new_counts
        self._generation = 0
        self._buckets: SelectorBuckets[ExistingTerm] = SelectorBuckets()
        self._matching: LRUCache[NamespacedLabels, _Matching] = LRUCache(_MAX_ASKERS)

    def intern(self, term: AffinityTerm) -> ExistingTerm:
        """The record of a term, new if no pod carries it yet."""
        carried = self.terms.get(term)
        if carried is None:
            carried = self.terms[term] = ExistingTerm(term, self._new_counts())
            self._buckets.add(carried, term.selector, _homes(term))
            self._generation += 1
        return carried

    def drop(self, carried: ExistingTerm) -> None:
        """Forget a term that no pod carries any more."""
        term = carried.term
        del self.terms[term]
        self._buckets.discard(carried, term.selector, _homes(term))
        self._generation += 1
        carried.counts.dropped()

    def matching(
        self, pod_class: PodClass, namespace_labels: Mapping[str, str]
    ) -> tuple[ExistingTerm, ...]:
        """The terms that mean pods of `pod_class`, whose namespace has these labels."""
        if not self.terms:
            return ()
        known = self._matching.get(pod_class.namespaced_labels)
        if (
            known is not None
            and known.generation == self._generation
            and known.namespace_labels is namespace_labels
        ):
            return known.existing_terms
        namespace, labels = pod_class.namespace, pod_class.labels
        found = tuple(
            carried
            for carried in self._buckets.candidates(namespace, labels)
            if carried.term.matches(namespace, labels, namespace_labels)
        )
        self._matching[pod_class.namespaced_labels] = _Matching(
            self._generation, namespace_labels, found
        )
        return found


def _homes(term: AffinityTerm) -> Collection[str | None]:
    """The namespaces a term may mean pods of; None stands for any, or for many."""
    if term.namespace_selector != NOTHING or len(term.namespaces) > MAX_HOMES:
        return (None,)
    return term.namespaces
