"""How many pods match a selector, per node and per domain, at a cost that stays flat.

Pods with equal namespace and labels are one kind. A selector somebody asked about is judged once
per kind; from then on a pod that comes or goes changes the counts its kind is known to belong to,
and nothing else: neither other pods nor nodes are looked at.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from stowage.api.values.selectors import Selector
from stowage.state.arrays import Int64Array
from stowage.state.namespaces import Namespaces
from stowage.state.nodes.label_columns import LabelColumns
from stowage.state.pods.affinity_terms import TermKind
from stowage.state.pods.existing_terms import ExistingTerm, ExistingTerms
from stowage.state.pods.label_groups import LabelGroup, LabelGroups
from stowage.state.pods.pod_class import PodClass
from stowage.state.pods.pod_counts import DomainTracking, PodCounts
from stowage.state.pods.pod_info import PodInfo
from stowage.state.pods.selector_buckets import MAX_HOMES, SelectorBuckets
from stowage.state.pods.term_counts import TermCounts

__all__ = ["ExistingTerm", "PodCounts", "PodIndex", "PodQuery", "TermKind"]


MAX_LINKS = 1_000_000
"""So often may a kind of pods be noted to belong to what is counted: some hundred MB. Where every
pod is of a kind of its own, that is few selectors that mean all of them."""
MAX_LINKS_AT_ONCE = 100_000
"""So often between two changes; what is asked beyond that is counted for now."""


class PodQuery(NamedTuple):
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
        """The namespaces it is kept under; None stands for all, or for many."""
        namespaces = self.namespaces
        return (None,) if namespaces is None or len(namespaces) > MAX_HOMES else namespaces

    def means(self, kind: LabelGroup) -> bool:
        """Whether pods of a kind are to be counted."""
        if self.namespaces is not None and kind.namespace not in self.namespaces:
            return False
        return kind.is_meant_by(self.selector, self.skip_terminating)


class PodIndex:
    """Counts of pods by selector, and the terms that pods carry; written by the cache only.

    Args:
        labels: The label columns whose codes are the domains.
        namespaces: Whose labels decide what a term's namespace selector means.
        num_rows: How many node rows there are.
        max_selectors: How many selectors are kept up to date; the one asked about least
            recently is dropped, to be counted anew should it be asked about again.
            They are fewer if they mean very many kinds of pods.

    Attributes:
        kinds: The kinds of pods there are.
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
        self.kinds = LabelGroups()
        self._asked: OrderedDict[PodQuery, PodCounts] = OrderedDict()
        self._asked_about: SelectorBuckets[PodQuery] = SelectorBuckets()
        self._links: dict[PodQuery, int] = {}
        self._num_links = 0
        self._num_asked_now = 0
        self._num_links_now = 0
        self._carried = {kind: ExistingTerms(self._new_counts) for kind in TermKind}
        self._carried_by: dict[PodClass, tuple[int, tuple[ExistingTerm, ...]]] = {}

    def count_matching(
        self, selector: Selector, namespaces: frozenset[str] | None, *, skip_terminating: bool
    ) -> PodCounts:
        """Count the pods of `namespaces` (None: all) that `selector` matches.

        Ask anew in each cycle; only the first time costs more than a look-up. Between two changes
        no more questions are taken up than are kept; what is asked beyond that is counted for
        now, or all would push each other out.
        """
        question = PodQuery(selector, namespaces, skip_terminating)
        counts = self._asked.get(question)
        if counts is not None:
            self._asked.move_to_end(question)
            return counts
        if self._num_asked_now < self._max_selectors and self._num_links_now < MAX_LINKS_AT_ONCE:
            self._num_asked_now += 1
            return self._start_counting(question)
        return PodCounts(self._labels, self._per_row(question))

    def existing_terms(self, which: TermKind) -> Collection[ExistingTerm]:
        """All distinct terms that some pod on a node carries."""
        return self._carried[which].terms.values()

    def existing_terms_matching(self, which: TermKind, pod: PodInfo) -> Sequence[ExistingTerm]:
        """The carried terms that mean `pod`, by its labels, namespace and namespace labels."""
        labels = self._namespaces.labels(pod.namespace)
        return self._carried[which].matching(pod.pod_class, labels)

    def asked(self) -> Iterable[tuple[PodQuery, PodCounts]]:
        """What is being counted, least recently asked about first."""
        return self._asked.items()

    def zero_term_counts(self) -> TermCounts:
        """Counts of no pods at all, which nobody keeps up to date."""
        return TermCounts(self._labels, self._rows_now, None)

    def add(self, pod: PodInfo, row: int) -> None:
        """Count a pod that came to a row."""
        pod_class = pod.pod_class
        kind = self.kinds.get(pod_class, pod.terminating)
        if kind is None:
            kind = self._new_kind(pod_class, pod.terminating)
        self._pods_change()
        kind.add(row)
        for counts in kind.counts:
            counts.add(row, 1)
        if pod_class.has_affinity_terms:
            self._add_terms(pod_class, row)

    def remove(self, pod: PodInfo, row: int) -> None:
        """Count off a pod that left a row; it must be as it was when added."""
        pod_class = pod.pod_class
        kind = self.kinds.get(pod_class, pod.terminating)
        if kind is None:
            raise KeyError(pod.uid)
        self._pods_change()
        kind.remove(row)
        for counts in kind.counts:
            counts.add(row, -1)
        if not kind.per_row:
            self.kinds.drop(kind)
        if pod_class.has_affinity_terms:
            self._remove_terms(pod_class, row)

    def grow(self, num_rows: int) -> None:
        """Extend the arrays to `num_rows`."""
        self._num_rows = num_rows
        for counts in self._asked.values():
            counts.grow(num_rows)
        for existing_terms in self._carried.values():
            for carried in existing_terms.terms.values():
                carried.counts.grow(num_rows)

    def _pods_change(self) -> None:
        self.kinds.moved()
        self._num_asked_now = 0
        self._num_links_now = 0

    def _start_counting(self, question: PodQuery) -> PodCounts:
        counts = PodCounts(self._labels, self._per_row(question), self._tracking)
        kinds = self.kinds.meant(*question)
        self._make_place_for(len(kinds))
        for kind in kinds:
            kind.counts[counts] = None
        self._links[question] = len(kinds)
        self._num_links += len(kinds)
        self._num_links_now += len(kinds)
        self._asked[question] = counts
        self._asked_about.add(question, question.selector, question.homes)
        return counts

    def _per_row(self, question: PodQuery) -> Int64Array:
        if self.kinds.are_many(question.namespaces):
            return self.kinds.per_row(*question, self._num_rows)
        per_row = np.zeros(self._num_rows, dtype=np.int64)
        for kind in self.kinds.meant(*question):
            rows, numbers = kind.placements()
            per_row[rows] += numbers
        return per_row

    def _make_place_for(self, num_links: int) -> None:
        while self._asked and (
            len(self._asked) >= self._max_selectors or self._num_links + num_links > MAX_LINKS
        ):
            self._stop_counting(*self._asked.popitem(last=False))

    def _stop_counting(self, question: PodQuery, counts: PodCounts) -> None:
        for kind in self.kinds.meant(*question):
            del kind.counts[counts]
        self._num_links -= self._links.pop(question)
        self._asked_about.discard(question, question.selector, question.homes)
        counts.dropped()

    def _new_kind(self, pod_class: PodClass, terminating: bool) -> LabelGroup:
        kind = self.kinds.add(pod_class, terminating)
        for question in self._asked_about.candidates(kind.namespace, kind.labels):
            if question.means(kind):
                kind.counts[self._asked[question]] = None
        return kind

    def _add_terms(self, pod_class: PodClass, row: int) -> None:
        num_pods, existing_terms = self._carried_by.get(pod_class, (0, ()))
        if not num_pods:
            existing_terms = tuple(
                self._carried[kind].intern(term)
                for kind, terms in pod_class.terms.items()
                for term in terms
            )
        self._carried_by[pod_class] = (num_pods + 1, existing_terms)
        for carried in existing_terms:
            carried.counts.add(row, 1)

    def _remove_terms(self, pod_class: PodClass, row: int) -> None:
        num_pods, existing_terms = self._carried_by[pod_class]
        for carried in existing_terms:
            carried.counts.add(row, -1)
        if num_pods > 1:
            self._carried_by[pod_class] = (num_pods - 1, existing_terms)
            return
        del self._carried_by[pod_class]
        for kind, terms in pod_class.terms.items():
            of_kind = self._carried[kind]
            for term in terms:
                known = of_kind.terms.get(term)
                if known is not None and not known.counts.total:
                    of_kind.drop(known)

    def _new_counts(self) -> TermCounts:
        return TermCounts(self._labels, self._rows_now, self._tracking)

    def _rows_now(self) -> int:
        return self._num_rows
