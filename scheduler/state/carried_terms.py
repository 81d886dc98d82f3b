"""The (anti)affinity terms of the pods that are on nodes, each distinct one once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from itertools import count

import numpy as np
from cachetools import LRUCache

from scheduler.api.selectors import NOTHING
from scheduler.state.affinity_terms import AffinityTerm
from scheduler.state.change_log import ChangeLog
from scheduler.state.pod_class import PodClass, PodIdentity
from scheduler.state.pod_counts import PodCounts

_MAX_ASKERS = 1024


class CarriedTerm:
    """A term, and how many pods with it are on each node and in each domain.

    Attributes:
        term: The term; its weight is part of it.
        counts: The pods that carry it (twice if it is twice in a pod's list).
    """

    __slots__ = ("code", "counts", "term")

    def __init__(self, code: int, term: AffinityTerm, counts: PodCounts) -> None:
        self.code = code
        self.term = term
        self.counts = counts

    @property
    def weight(self) -> int:
        """1..100 for preferred terms, 0 for required ones."""
        return self.term.weight


class _Bucket:
    """Terms that may concern pods of one namespace."""

    __slots__ = ("changes", "terms")

    def __init__(self) -> None:
        self.terms: dict[int, CarriedTerm] = {}
        self.changes = ChangeLog(1024)

    def put(self, carried: CarriedTerm) -> None:
        self.terms[carried.code] = carried
        self.changes.record(carried.code)

    def discard(self, carried: CarriedTerm) -> None:
        del self.terms[carried.code]
        self.changes.record(carried.code)


_EMPTY = _Bucket()


class _Matched:
    """The terms that mean one sort of pod, and how far this has followed the buckets."""

    __slots__ = ("buckets", "by_code", "generations", "namespace_labels", "result")

    def __init__(
        self, buckets: tuple[_Bucket, _Bucket], namespace_labels: Mapping[str, str]
    ) -> None:
        self.buckets = buckets
        self.namespace_labels = namespace_labels
        self.generations = (-1, -1)
        self.by_code: dict[int, CarriedTerm] = {}
        self.result: tuple[CarriedTerm, ...] = ()

    def is_about(self, buckets: tuple[_Bucket, _Bucket], labels: Mapping[str, str]) -> bool:
        """Whether this was judged by these very buckets and namespace labels."""
        return self.buckets[0] is buckets[0] and self.namespace_labels is labels

    def refresh(self, pod_class: PodClass) -> None:
        """Judge the terms that came or went since the last time."""
        first, second = self.buckets
        generations = (first.changes.generation, second.changes.generation)
        if generations == self.generations:
            return
        changed = [
            bucket.changes.since(seen)
            for bucket, seen in zip(self.buckets, self.generations, strict=True)
        ]
        if any(codes is None for codes in changed):
            self.by_code.clear()
            changed = [np.fromiter(bucket.terms, dtype=np.int64) for bucket in self.buckets]
        for bucket, codes in zip(self.buckets, changed, strict=True):
            if codes is not None:
                self._judge(pod_class, bucket, codes.tolist())
        self.generations = generations
        self.result = tuple(self.by_code.values())

    def _judge(self, pod_class: PodClass, bucket: _Bucket, codes: list[int]) -> None:
        for code in codes:
            carried = bucket.terms.get(code)
            if carried is not None and carried.term.matches(
                pod_class.namespace, pod_class.labels, self.namespace_labels
            ):
                self.by_code[code] = carried
            else:
                self.by_code.pop(code, None)


class CarriedTerms:
    """All terms of one kind; written by the pod index only.

    Terms that name their namespaces are kept by namespace, those that select namespaces by label
    together: a pod is judged by the terms that may concern its namespace, once per distinct
    (namespace, labels), and afterwards only by terms that are new.

    Args:
        new_counts: Makes zero counts for a new term.
    """

    __slots__ = ("_by_namespace", "_codes", "_matched", "_new_counts", "_selecting", "terms")

    def __init__(self, new_counts: Callable[[], PodCounts]) -> None:
        self.terms: dict[AffinityTerm, CarriedTerm] = {}
        self._new_counts = new_counts
        self._codes = count()
        self._by_namespace: dict[str, _Bucket] = {}
        self._selecting = _Bucket()
        self._matched: LRUCache[PodIdentity, _Matched] = LRUCache(_MAX_ASKERS)

    def intern(self, term: AffinityTerm) -> CarriedTerm:
        """The record of a term, new if no pod carries it yet."""
        carried = self.terms.get(term)
        if carried is None:
            carried = self.terms[term] = CarriedTerm(next(self._codes), term, self._new_counts())
            for namespace in _homes(term):
                self._bucket(namespace).put(carried)
        return carried

    def drop(self, carried: CarriedTerm) -> None:
        """Forget a term that no pod carries any more."""
        del self.terms[carried.term]
        for namespace in _homes(carried.term):
            bucket = self._bucket(namespace)
            bucket.discard(carried)
            if namespace is not None and not bucket.terms:
                del self._by_namespace[namespace]
        carried.counts.dropped()

    def matching(
        self, pod_class: PodClass, namespace_labels: Mapping[str, str]
    ) -> tuple[CarriedTerm, ...]:
        """The terms that mean pods of `pod_class`, whose namespace has these labels."""
        if not self.terms:
            return ()
        buckets = (self._by_namespace.get(pod_class.namespace, _EMPTY), self._selecting)
        matched = self._matched.get(pod_class.identity)
        if matched is None or not matched.is_about(buckets, namespace_labels):
            matched = _Matched(buckets, namespace_labels)
            self._matched[pod_class.identity] = matched
        matched.refresh(pod_class)
        return matched.result

    def _bucket(self, namespace: str | None) -> _Bucket:
        if namespace is None:
            return self._selecting
        bucket = self._by_namespace.get(namespace)
        if bucket is None:
            bucket = self._by_namespace[namespace] = _Bucket()
        return bucket


def _homes(term: AffinityTerm) -> Collection[str | None]:
    """The namespaces a term is kept under; None stands for the ones found by label."""
    return (None,) if term.namespace_selector != NOTHING else term.namespaces
