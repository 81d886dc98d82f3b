"""Counts of pods by selector, per node and per topology domain, at a flat cost per event.

Pods with equal namespace and labels form a label group. A selector is matched with each group once.
After that, adding or removing a pod changes only the counts that include its group: neither other
pods nor nodes are visited.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from stowage.api.values.selectors import Selector
from stowage.state.arrays import Int64Array
from stowage.state.namespaces import Namespaces
from stowage.state.nodes.label_columns import LabelColumns
from stowage.state.pods.affinity_terms import AffinityTerm, TermKind
from stowage.state.pods.existing_terms import ExistingTerm, ExistingTerms
from stowage.state.pods.label_groups import LabelGroup, LabelGroups, WeightedQuery
from stowage.state.pods.pod_class import PodClass
from stowage.state.pods.pod_counts import NO_DOMAINS, DomainTracking, PodCounts
from stowage.state.pods.pod_info import PodInfo
from stowage.state.pods.selector_buckets import MAX_BUCKET_NAMESPACES, SelectorBuckets
from stowage.state.pods.term_counts import TermCounts

__all__ = ["ExistingTerm", "PodCounts", "PodIndex", "PodQuery", "TermKind"]


MAX_MEMBERSHIPS = 1_000_000
"""The memberships of label groups in counts take some hundred MB at most. If every pod is a group
of its own, few selectors that match all pods are kept."""
MAX_MEMBERSHIPS_AT_ONCE = 100_000
"""So many memberships are added between two changes; further queries are counted, but not kept."""


class PodQuery(NamedTuple):
    """Which pods to count.

    Attributes:
        selector: Matches the labels of the pods.
        namespaces: The namespaces of the pods; None means all.
        skip_terminating: Whether pods with a deletion timestamp are left out.
    """

    selector: Selector
    namespaces: frozenset[str] | None
    skip_terminating: bool

    @property
    def bucket_namespaces(self) -> Collection[str | None]:
        """The namespaces under which the query is listed; None stands for all, or for many."""
        names = self.namespaces
        return (None,) if names is None or len(names) > MAX_BUCKET_NAMESPACES else names

    def matches(self, group: LabelGroup) -> bool:
        """Whether the pods of a group are to be counted."""
        if self.namespaces is not None and group.namespace not in self.namespaces:
            return False
        return group.matches(self.selector, self.skip_terminating)


class PodIndex:
    """Counts of pods by selector, and the affinity terms of pods; written by the cache only.

    Args:
        labels: The label columns of nodes; their values are the topology domains.
        namespaces: Their labels decide which namespaces a term's namespace selector matches.
        num_rows: The number of node rows.
        max_selectors: How many queries are kept up to date. The least recently used is dropped,
            and counted again if it is requested again. Fewer are kept if they match very many
            label groups.

    Attributes:
        groups: The label groups of the pods.
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
        self.groups = LabelGroups()
        self._counts: OrderedDict[PodQuery, PodCounts] = OrderedDict()
        self._buckets: SelectorBuckets[PodQuery] = SelectorBuckets()
        self._memberships: dict[PodQuery, int] = {}
        self._num_memberships = 0
        self._num_new_queries = 0
        self._num_new_memberships = 0
        self._terms = {kind: ExistingTerms(self._new_term_counts) for kind in TermKind}
        self._terms_of: dict[PodClass, tuple[int, tuple[ExistingTerm, ...]]] = {}

    def count_matching(
        self, selector: Selector, namespaces: frozenset[str] | None, *, skip_terminating: bool
    ) -> PodCounts:
        """Count the pods of `namespaces` (None: all) that `selector` matches.

        Call it anew in each cycle: only the first call costs more than a look-up. Between two
        changes no more new queries are kept than fit, or they would displace each other; the
        counts of further ones are not kept.
        """
        query = PodQuery(selector, namespaces, skip_terminating)
        counts = self._counts.get(query)
        if counts is not None:
            self._counts.move_to_end(query)
            return counts
        if (
            self._num_new_queries < self._max_selectors
            and self._num_new_memberships < MAX_MEMBERSHIPS_AT_ONCE
        ):
            self._num_new_queries += 1
            return self._start_counting(query)
        return self._counted(self.groups.matching(*query), None)

    def weigh_matching(self, topology_key: str, queries: Iterable[WeightedQuery]) -> Int64Array:
        """Sum per domain, over the queries, the weight times the number of the matching pods.

        The counts of single queries are neither made nor kept, so this is the way to ask thousands
        of queries.

        Returns:
            ``int64[values]``, by the code of the label's value; empty if no query matches any pod
            on a node with the label.
        """
        column = self._labels.column(topology_key)
        if not column.num_values:
            return NO_DOMAINS
        sums, matched = self.groups.weigh(queries)
        slots, rows, numbers = self.groups.placed()
        codes = column.codes[rows]
        inside = (codes >= 0) & matched[slots] & (numbers > 0)
        if not inside.any():
            return NO_DOMAINS
        # Doubles are exact up to 2**53.
        amounts = sums[slots[inside]] * numbers[inside]
        total = np.bincount(codes[inside], weights=amounts, minlength=column.num_values)
        return total.astype(np.int64)

    def existing_terms(self, which: TermKind) -> Collection[ExistingTerm]:
        """All distinct terms of placed pods."""
        return self._terms[which].terms.values()

    def existing_terms_matching(self, which: TermKind, pod: PodInfo) -> Sequence[ExistingTerm]:
        """The terms of placed pods that match `pod` by labels, namespace and namespace labels."""
        existing = self._terms[which]
        if not existing.terms:
            return ()
        return existing.matching(pod.pod_class, self._namespaces.labels(pod.namespace))

    def existing_term(self, which: TermKind, term: AffinityTerm) -> ExistingTerm | None:
        """One term; None if no placed pod has it."""
        return self._terms[which].terms.get(term)

    def kept_counts(self) -> Mapping[PodQuery, PodCounts]:
        """The counts that are kept up to date, least recently used first."""
        return self._counts

    def zero_term_counts(self) -> TermCounts:
        """Counts without pods, which are not kept up to date."""
        return TermCounts(self._labels, self._get_num_rows, None)

    def add(self, pod: PodInfo, row: int) -> None:
        """Add a pod on a row."""
        pod_class = pod.pod_class
        group = self.groups.get(pod_class, pod.terminating)
        if group is None:
            group = self._new_group(pod_class, pod.terminating)
        self._count_new_queries_anew()
        group.add(row)
        for counts in group.counts:
            counts.add(row, 1)
        if pod_class.has_affinity_terms:
            self._add_terms(pod_class, row)

    def remove(self, pod: PodInfo, row: int) -> None:
        """Remove a pod from a row; it must be as it was when added."""
        pod_class = pod.pod_class
        group = self.groups.get(pod_class, pod.terminating)
        if group is None:
            raise KeyError(pod.uid)
        self._count_new_queries_anew()
        group.remove(row)
        for counts in group.counts:
            counts.add(row, -1)
        if not group.entries:
            self.groups.drop(group)
        if pod_class.has_affinity_terms:
            self._remove_terms(pod_class, row)

    def grow(self, num_rows: int) -> None:
        """Extend the arrays to `num_rows`."""
        self._num_rows = num_rows
        for counts in self._counts.values():
            counts.grow(num_rows)
        for existing_terms in self._terms.values():
            for existing in existing_terms.terms.values():
                existing.counts.grow(num_rows)

    def _count_new_queries_anew(self) -> None:
        self._num_new_queries = 0
        self._num_new_memberships = 0

    def _start_counting(self, query: PodQuery) -> PodCounts:
        slots = self.groups.matching(*query)
        counts, groups = self._counted(slots, self._tracking), self.groups.in_slots(slots)
        self._make_room_for(len(groups))
        for group in groups:
            group.counts[counts] = None
        self._memberships[query] = len(groups)
        self._num_memberships += len(groups)
        self._num_new_memberships += len(groups)
        self._counts[query] = counts
        self._buckets.add(query, query.selector, query.bucket_namespaces)
        return counts

    def _counted(self, slots: Int64Array, tracking: DomainTracking | None) -> PodCounts:
        """The counts of the groups in some slots."""
        return PodCounts(self._labels, self.groups.per_row(slots, self._num_rows), tracking)

    def _make_room_for(self, num_memberships: int) -> None:
        while self._counts and (
            len(self._counts) >= self._max_selectors
            or self._num_memberships + num_memberships > MAX_MEMBERSHIPS
        ):
            self._stop_counting(*self._counts.popitem(last=False))

    def _stop_counting(self, query: PodQuery, counts: PodCounts) -> None:
        for group in self.groups.in_slots(self.groups.matching(*query)):
            del group.counts[counts]
        self._num_memberships -= self._memberships.pop(query)
        self._buckets.discard(query, query.selector, query.bucket_namespaces)
        counts.dropped()

    def _new_group(self, pod_class: PodClass, terminating: bool) -> LabelGroup:
        group = self.groups.add(pod_class, terminating)
        for query in self._buckets.candidates(group.namespace, group.labels):
            if query.matches(group):
                group.counts[self._counts[query]] = None
        return group

    def _add_terms(self, pod_class: PodClass, row: int) -> None:
        num_pods, existing_terms = self._terms_of.get(pod_class, (0, ()))
        if not num_pods:
            existing_terms = tuple(
                self._terms[kind].intern(term)
                for kind, terms in pod_class.terms.items()
                for term in terms
            )
        self._terms_of[pod_class] = (num_pods + 1, existing_terms)
        for existing in existing_terms:
            existing.counts.add(row, 1)

    def _remove_terms(self, pod_class: PodClass, row: int) -> None:
        num_pods, existing_terms = self._terms_of[pod_class]
        for existing in existing_terms:
            existing.counts.add(row, -1)
        if num_pods > 1:
            self._terms_of[pod_class] = (num_pods - 1, existing_terms)
            return
        del self._terms_of[pod_class]
        for kind, terms in pod_class.terms.items():
            of_kind = self._terms[kind]
            for term in terms:
                known = of_kind.terms.get(term)
                if known is not None and not known.counts.total:
                    of_kind.drop(known)

    def _new_term_counts(self) -> TermCounts:
        return TermCounts(self._labels, self._get_num_rows, self._tracking)

    def _get_num_rows(self) -> int:
        return self._num_rows
