"""A pod index with some pods counted off and others counted in."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from stowage.api.values.selectors import Selector
from stowage.state.namespaces import Namespaces
from stowage.state.pods.affinity_terms import AffinityTerm, TermKind
from stowage.state.pods.carried_terms import CarriedTerm
from stowage.state.pods.carrier_counts import CarrierCounts
from stowage.state.pods.pod_counts import PodCounts
from stowage.state.pods.pod_index import PodIndex
from stowage.state.pods.pod_info import PodInfo


class WhatIfPodIndex:
    """The pod index with some pods removed from a row and others added to it."""

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

    def carried_terms(self, which: TermKind) -> Collection[CarriedTerm]:
        """All distinct terms that some pod on a node carries; counts may have become zero."""
        return self._adjusted(self._base.carried_terms(which), self._touched(which))

    def carried_terms_matching(self, which: TermKind, pod: PodInfo) -> Sequence[CarriedTerm]:
        """The carried terms that mean `pod`; counts may have become zero."""
        labels = self._namespaces.labels(pod.namespace)
        touched = {
            term: changes
            for term, changes in self._touched(which).items()
            if term.matches(pod.namespace, pod.labels, labels)
        }
        return self._adjusted(self._base.carried_terms_matching(which, pod), touched)

    def no_carriers(self) -> CarrierCounts:
        """Counts of no pods at all."""
        return self._base.no_carriers()

    def _touched(self, which: TermKind) -> dict[AffinityTerm, list[tuple[int, int]]]:
        touched: dict[AffinityTerm, list[tuple[int, int]]] = {}
        for pod, delta in self._changes:
            for term in pod.pod_class.terms[which]:
                touched.setdefault(term, []).append((self._row, delta))
        return touched

    def _adjusted(
        self,
        carried_terms: Collection[CarriedTerm],
        touched: dict[AffinityTerm, list[tuple[int, int]]],
    ) -> list[CarriedTerm]:
        adjusted = []
        for carried in carried_terms:
            changes = touched.pop(carried.term, None)
            if changes is not None:
                counts = carried.counts.with_changes(changes)
                adjusted.append(CarriedTerm(carried.term, counts))
            else:
                adjusted.append(carried)
        for term, changes in touched.items():
            counts = self.no_carriers().with_changes(changes)
            adjusted.append(CarriedTerm(term, counts))
        return adjusted
