"""The pod index with other pods on one row."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from stowage.api.values.selectors import Selector
from stowage.state.namespaces import Namespaces
from stowage.state.pods.affinity_terms import AffinityTerm, TermKind
from stowage.state.pods.existing_terms import ExistingTerm
from stowage.state.pods.pod_counts import PodCounts
from stowage.state.pods.pod_index import PodIndex
from stowage.state.pods.pod_info import PodInfo
from stowage.state.pods.term_counts import TermCounts


class WhatIfPodIndex:
    """The pod index with some pods removed from a row and others added to it; read-only."""

    __slots__ = ("_base", "_changes", "_namespaces", "_row")

    def __init__(
        self,
        base: PodIndex | WhatIfPodIndex,
        namespaces: Namespaces,
        removed: Sequence[PodInfo],
        added: Sequence[PodInfo],
        row: int,
    ) -> None:
        self._base = base
        self._namespaces = namespaces
        self._row = row
        self._changes = [*((pod, -1) for pod in removed), *((pod, 1) for pod in added)]

    def count_matching(
        self, selector: Selector, namespaces: frozenset[str] | None, *, skip_terminating: bool
    ) -> PodCounts:
        """Count the pods of `namespaces` (None: all) that `selector` matches."""
        counts = self._base.count_matching(selector, namespaces, skip_terminating=skip_terminating)
        touched = [
            (self._row, delta)
            for pod, delta in self._changes
            if (namespaces is None or pod.namespace in namespaces)
            and not (skip_terminating and pod.terminating)
            and selector.matches(pod.labels)
        ]
        return counts.with_changes(touched) if touched else counts

    def existing_terms(self, which: TermKind) -> Collection[ExistingTerm]:
        """All distinct terms of placed pods; counts may be zero."""
        return self._adjusted(self._base.existing_terms(which), self._touched(which))

    def existing_terms_matching(self, which: TermKind, pod: PodInfo) -> Sequence[ExistingTerm]:
        """The terms of placed pods that match `pod`; counts may be zero."""
        labels = self._namespaces.labels(pod.namespace)
        touched = {
            term: changes
            for term, changes in self._touched(which).items()
            if term.matches(pod.namespace, pod.labels, labels)
        }
        return self._adjusted(self._base.existing_terms_matching(which, pod), touched)

    def zero_term_counts(self) -> TermCounts:
        """Counts without pods."""
        return self._base.zero_term_counts()

    def _touched(self, which: TermKind) -> dict[AffinityTerm, list[tuple[int, int]]]:
        touched: dict[AffinityTerm, list[tuple[int, int]]] = {}
        for pod, delta in self._changes:
            for term in pod.pod_class.terms[which]:
                touched.setdefault(term, []).append((self._row, delta))
        return touched

    def _adjusted(
        self,
        existing_terms: Collection[ExistingTerm],
        touched: dict[AffinityTerm, list[tuple[int, int]]],
    ) -> list[ExistingTerm]:
        adjusted = []
        for existing in existing_terms:
            changes = touched.pop(existing.term, None)
            if changes is not None:
                counts = existing.counts.with_changes(changes)
                adjusted.append(ExistingTerm(existing.term, counts))
            else:
                adjusted.append(existing)
        for term, changes in touched.items():
            counts = self.zero_term_counts().with_changes(changes)
            adjusted.append(ExistingTerm(term, counts))
        return adjusted
