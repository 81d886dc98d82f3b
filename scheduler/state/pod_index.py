"""How many pods match a selector, per node and per domain, at a cost that stays flat.

Pods with equal namespace and labels are one kind. A selector somebody asked about is judged once
per kind; from then on a pod that comes or goes changes the counts its kind is known to belong to,
and nothing else: neither other pods nor nodes are looked at.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from scheduler.api.selectors import Selector
from scheduler.state.affinity_terms import TermKind
from scheduler.state.carried_terms import CarriedTerm, CarriedTerms
from scheduler.state.label_columns import LabelColumns
from scheduler.state.namespaces import Namespaces
from scheduler.state.pod_class import PodClass, PodIdentity
from scheduler.state.pod_counts import DomainTracking, PodCounts
from scheduler.state.pod_info import PodInfo
from scheduler.state.selector_buckets import SelectorBuckets

__all__ = ["CarriedTerm", "PodCounts", "PodIndex", "Question", "TermKind"]


class Question(NamedTuple):
    """What counts are asked for by.

    Attributes:
        selector: Which pods, by their labels.
        namespaces: Of which namespaces; None means all.
        skip_terminating: Whether pods with a deletion timestamp are left out.
    """

    selector: Selector
    namespaces: frozenset[str] | None
    skip_terminating: bool

    @property
    def homes(self) -> Collection[str | None]:
        """The namespaces it is kept under; None stands for all."""
        return (None,) if self.namespaces is None else self.namespaces


class _PodKind:
    """Pods that no selector can tell apart."""

    __slots__ = ("counts", "identity", "labels", "num_pods", "per_row", "terminating")

    def __init__(self, pod_class: PodClass, terminating: bool) -> None:
        self.identity = pod_class.identity
        self.labels = pod_class.labels
        self.terminating = terminating
        self.num_pods = 0
        self.per_row: dict[int, int] = {}
        self.counts: list[PodCounts] = []

    def is_meant_by(self, question: Question) -> bool:
        """Whether these pods are to be counted; their namespace is known to be right."""
        if question.skip_terminating and self.terminating:
            return False
        return question.selector.matches(self.labels)


class PodIndex:
    """Counts of pods by selector, and the terms that pods carry; written by the cache only.

    Args:
        labels: The label columns whose codes are the domains.
        namespaces: Whose labels decide what a term's namespace selector means.
        num_rows: How many node rows there are.
        max_selectors: How many selectors are kept up to date; the one asked about least
            recently is dropped, to be counted anew should it be asked about again.
    """

    def __init__(
        self,
        labels: LabelColumns,
        namespaces: Namespaces,
        num_rows: int,
        max_selectors: int = 512,
    ) -> None:
        self._labels = labels
        self._namespaces = namespaces
        self._num_rows = num_rows
        self._max_selectors = max_selectors
        self._tracking = DomainTracking(labels)
        self._kinds: dict[tuple[PodIdentity, bool], _PodKind] = {}
        self._kinds_in: dict[str, dict[_PodKind, None]] = {}
        self._asked: OrderedDict[Question, PodCounts] = OrderedDict()
        self._asked_about: SelectorBuckets[Question] = SelectorBuckets()
        self._carried = {kind: CarriedTerms(self._new_counts) for kind in TermKind}
        self._carried_by: dict[PodClass, tuple[int, tuple[CarriedTerm, ...]]] = {}

    def count_matching(
        self, selector: Selector, namespaces: frozenset[str] | None, *, skip_terminating: bool
    ) -> PodCounts:
        """Count the pods of `namespaces` (None: all) that `selector` matches.

        Ask anew in each cycle; only the first time costs more than a look-up.
        """
        question = Question(selector, namespaces, skip_terminating)
        counts = self._asked.get(question)
        if counts is None:
            return self._start_counting(question)
        self._asked.move_to_end(question)
        return counts

    def carried_terms(self, which: TermKind) -> Collection[CarriedTerm]:
        """All distinct terms that some pod on a node carries."""
        return self._carried[which].terms.values()

    def carried_terms_matching(self, which: TermKind, pod: PodInfo) -> Sequence[CarriedTerm]:
        """The carried terms that mean `pod`, by its labels, namespace and namespace labels."""
        labels = self._namespaces.labels(pod.namespace)
        return self._carried[which].matching(pod.pod_class, labels)

    def asked(self) -> Iterable[tuple[Question, PodCounts]]:
        """What is being counted, least recently asked about first."""
        return self._asked.items()

    def zero_counts(self) -> PodCounts:
        """Counts of no pods at all, which nobody keeps up to date."""
        return PodCounts(self._labels, np.zeros(self._num_rows, dtype=np.int64))

    def add(self, pod: PodInfo, row: int) -> None:
        """Count a pod that came to a row."""
        pod_class = pod.pod_class
        kind = self._kinds.get((pod_class.identity, pod.terminating))
        if kind is None:
            kind = self._new_kind(pod_class, pod.terminating)
        kind.num_pods += 1
        kind.per_row[row] = kind.per_row.get(row, 0) + 1
        for counts in kind.counts:
            counts.add(row, 1)
        if pod_class.has_affinity_terms:
            self._add_terms(pod_class, row)

    def remove(self, pod: PodInfo, row: int) -> None:
        """Count off a pod that left a row; it must be as it was when added."""
        pod_class = pod.pod_class
        kind = self._kinds[pod_class.identity, pod.terminating]
        kind.num_pods -= 1
        left = kind.per_row[row] - 1
        if left:
            kind.per_row[row] = left
        else:
            del kind.per_row[row]
        for counts in kind.counts:
            counts.add(row, -1)
        if not kind.num_pods:
            self._drop_kind(kind)
        if pod_class.has_affinity_terms:
            self._remove_terms(pod_class, row)

    def grow(self, num_rows: int) -> None:
        """Make room for more rows."""
        self._num_rows = num_rows
        for counts in self._asked.values():
            counts.grow(num_rows)
        for carried_terms in self._carried.values():
            for carried in carried_terms.terms.values():
                carried.counts.grow(num_rows)

    def _start_counting(self, question: Question) -> PodCounts:
        if len(self._asked) >= self._max_selectors:
            self._stop_counting(*self._asked.popitem(last=False))
        counts = self._new_counts()
        for kind in self._kinds_of(question):
            if kind.is_meant_by(question):
                kind.counts.append(counts)
                for row, num_pods in kind.per_row.items():
                    counts.add(row, num_pods)
        self._asked[question] = counts
        self._asked_about.add(question, question.selector, question.homes)
        return counts

    def _stop_counting(self, question: Question, counts: PodCounts) -> None:
        for kind in self._kinds_of(question):
            if kind.is_meant_by(question):
                kind.counts.remove(counts)
        self._asked_about.discard(question, question.selector, question.homes)
        counts.dropped()

    def _kinds_of(self, question: Question) -> Iterator[_PodKind]:
        namespaces = question.namespaces
        if namespaces is None or len(namespaces) > len(self._kinds_in):
            for namespace, kinds in self._kinds_in.items():
                if namespaces is None or namespace in namespaces:
                    yield from kinds
        else:
            for namespace in namespaces:
                yield from self._kinds_in.get(namespace, ())

    def _new_kind(self, pod_class: PodClass, terminating: bool) -> _PodKind:
        kind = _PodKind(pod_class, terminating)
        self._kinds[kind.identity, terminating] = kind
        namespace = pod_class.namespace
        self._kinds_in.setdefault(namespace, {})[kind] = None
        for question in self._asked_about.candidates(namespace, kind.labels):
            if kind.is_meant_by(question):
                kind.counts.append(self._asked[question])
        return kind

    def _drop_kind(self, kind: _PodKind) -> None:
        del self._kinds[kind.identity, kind.terminating]
        namespace = kind.identity[0]
        of_namespace = self._kinds_in[namespace]
        del of_namespace[kind]
        if not of_namespace:
            del self._kinds_in[namespace]

    def _add_terms(self, pod_class: PodClass, row: int) -> None:
        num_pods, carried_terms = self._carried_by.get(pod_class, (0, ()))
        if not num_pods:
            carried_terms = tuple(
                self._carried[kind].intern(term)
                for kind, terms in pod_class.terms.items()
                for term in terms
            )
        self._carried_by[pod_class] = (num_pods + 1, carried_terms)
        for carried in carried_terms:
            carried.counts.add(row, 1)

    def _remove_terms(self, pod_class: PodClass, row: int) -> None:
        num_pods, carried_terms = self._carried_by[pod_class]
        for carried in carried_terms:
            carried.counts.add(row, -1)
        if num_pods > 1:
            self._carried_by[pod_class] = (num_pods - 1, carried_terms)
            return
        del self._carried_by[pod_class]
        for kind, terms in pod_class.terms.items():
            of_kind = self._carried[kind]
            for term in terms:
                known = of_kind.terms.get(term)
                if known is not None and not known.counts.total:
                    of_kind.drop(known)

    def _new_counts(self) -> PodCounts:
        zeros = np.zeros(self._num_rows, dtype=np.int64)
        return PodCounts(self._labels, zeros, self._tracking)
