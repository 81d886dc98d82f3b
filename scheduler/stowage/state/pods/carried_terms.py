"""The (anti)affinity terms of the pods that are on nodes, each distinct one once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from cachetools import LRUCache

from stowage.api.values.selectors import NOTHING
from stowage.state.pods.affinity_terms import AffinityTerm
from stowage.state.pods.carrier_counts import CarrierCounts
from stowage.state.pods.pod_class import PodClass, PodIdentity
from stowage.state.pods.selector_buckets import MAX_HOMES, SelectorBuckets

_MAX_ASKERS = 1024


class CarriedTerm:
    """A term, and how many pods with it are on each node and in each domain.

    Attributes:
        term: The term; its weight is part of it.
        counts: The pods that carry it (twice if it is twice in a pod's list).
    """

    __slots__ = ("counts", "term")

    def __init__(self, term: AffinityTerm, counts: CarrierCounts) -> None:
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
    carried_terms: tuple[CarriedTerm, ...]


class CarriedTerms:
    """All terms of one kind; written by the pod index only.

    A pod is judged once per distinct (namespace, labels), and again after distinct terms came or
    went, by the terms that may mean it.

    Args:
        new_counts: Makes zero counts for a new term.
    """

    __slots__ = ("_buckets", "_generation", "_matching", "_new_counts", "terms")

    def __init__(self, new_counts: Callable[[], CarrierCounts]) -> None:
        self.terms: dict[AffinityTerm, CarriedTerm] = {}
        self._new_counts = new_counts
        self._generation = 0
        self._buckets: SelectorBuckets[CarriedTerm] = SelectorBuckets()
        self._matching: LRUCache[PodIdentity, _Matching] = LRUCache(_MAX_ASKERS)

    def intern(self, term: AffinityTerm) -> CarriedTerm:
        """The record of a term, new if no pod carries it yet."""
        carried = self.terms.get(term)
        if carried is None:
            carried = self.terms[term] = CarriedTerm(term, self._new_counts())
            self._buckets.add(carried, term.selector, _homes(term))
            self._generation += 1
        return carried

    def drop(self, carried: CarriedTerm) -> None:
        """Forget a term that no pod carries any more."""
        term = carried.term
        del self.terms[term]
        self._buckets.discard(carried, term.selector, _homes(term))
        self._generation += 1
        carried.counts.dropped()

    def matching(
        self, pod_class: PodClass, namespace_labels: Mapping[str, str]
    ) -> tuple[CarriedTerm, ...]:
        """The terms that mean pods of `pod_class`, whose namespace has these labels."""
        if not self.terms:
            return ()
        known = self._matching.get(pod_class.identity)
        if (
            known is not None
            and known.generation == self._generation
            and known.namespace_labels is namespace_labels
        ):
            return known.carried_terms
        namespace, labels = pod_class.namespace, pod_class.labels
        found = tuple(
            carried
            for carried in self._buckets.candidates(namespace, labels)
            if carried.term.matches(namespace, labels, namespace_labels)
        )
        self._matching[pod_class.identity] = _Matching(self._generation, namespace_labels, found)
        return found


def _homes(term: AffinityTerm) -> Collection[str | None]:
    """The namespaces a term may mean pods of; None stands for any, or for many."""
    if term.namespace_selector != NOTHING or len(term.namespaces) > MAX_HOMES:
        return (None,)
    return term.namespaces
