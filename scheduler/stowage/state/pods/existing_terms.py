"""The distinct (anti)affinity terms of existing pods, which are the pods on nodes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from cachetools import LRUCache

from stowage.api.values.selectors import NOTHING
from stowage.state.pods.affinity_terms import AffinityTerm
from stowage.state.pods.pod_class import NamespacedLabels, PodClass
from stowage.state.pods.selector_buckets import MAX_BUCKET_NAMESPACES, SelectorBuckets
from stowage.state.pods.term_counts import TermCounts

_MAX_CACHED = 1024


class ExistingTerm:
    """A term of existing pods, and how many pods have it on each node and in each domain.

    Attributes:
        term: The term; its weight is part of it.
        counts: The pods that have it; a pod that lists it twice counts twice.
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
    """The terms that match pods of one namespace and labels, and when that was computed."""

    generation: int
    namespace_labels: Mapping[str, str]
    existing_terms: tuple[ExistingTerm, ...]


class ExistingTerms:
    """All terms of one kind; written by the pod index only.

    Matching terms are cached per namespace and labels until the set of distinct terms changes.

    Args:
        new_counts: Creates zero counts for a new term.
    """

    __slots__ = ("_buckets", "_generation", "_matching", "_new_counts", "terms")

    def __init__(self, new_counts: Callable[[], TermCounts]) -> None:
        self.terms: dict[AffinityTerm, ExistingTerm] = {}
        self._new_counts = new_counts
        self._generation = 0
        self._buckets: SelectorBuckets[ExistingTerm] = SelectorBuckets()
        self._matching: LRUCache[NamespacedLabels, _Matching] = LRUCache(_MAX_CACHED)

    def intern(self, term: AffinityTerm) -> ExistingTerm:
        """The entry of a term; a new one if no pod has the term yet."""
        existing = self.terms.get(term)
        if existing is None:
            existing = self.terms[term] = ExistingTerm(term, self._new_counts())
            self._buckets.add(existing, term.selector, _bucket_namespaces(term))
            self._generation += 1
        return existing

    def drop(self, existing: ExistingTerm) -> None:
        """Remove a term that no pod has any more."""
        term = existing.term
        del self.terms[term]
        self._buckets.discard(existing, term.selector, _bucket_namespaces(term))
        self._generation += 1
        existing.counts.dropped()

    def matching(
        self, pod_class: PodClass, namespace_labels: Mapping[str, str]
    ) -> tuple[ExistingTerm, ...]:
        """The terms that match pods of `pod_class`, whose namespace has these labels."""
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
            existing
            for existing in self._buckets.candidates(namespace, labels)
            if existing.term.matches(namespace, labels, namespace_labels)
        )
        self._matching[pod_class.namespaced_labels] = _Matching(
            self._generation, namespace_labels, found
        )
        return found


def _bucket_namespaces(term: AffinityTerm) -> Collection[str | None]:
    """The namespaces under which a term is listed; None stands for all, or for many."""
    if term.namespace_selector != NOTHING or len(term.namespaces) > MAX_BUCKET_NAMESPACES:
        return (None,)
    return term.namespaces
