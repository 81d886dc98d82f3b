"""Counts of the pods that have an affinity term, per node and per domain, in little memory.

A pod may have thousands of terms that no other pod has. An array over all nodes for each of them
would take a thousand times the memory of the pod. So counts are kept for the few nodes that have
such pods, and become arrays when there are many.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from stowage.state.arrays import Int64Array
from stowage.state.nodes.label_columns import LabelColumns
from stowage.state.pods.pod_counts import DomainTracking, FewDomains, PodCounts
from stowage.state.sparse_column import FEW, SparseColumn


class TermCounts:
    """Numbers of pods, as in `PodCounts`.

    Args:
        labels: The label columns of nodes; their values are the topology domains.
        num_rows: Returns the current number of node rows.
        tracking: Updates domain counts when labels change; None for a copy.
        few: Row -> count.
        counts: The counts as arrays, once there are many rows; either `few` or `counts`.
    """

    __slots__ = ("_counts", "_few", "_labels", "_num_rows", "_tracking")

    def __init__(
        self,
        labels: LabelColumns,
        num_rows: Callable[[], int],
        tracking: DomainTracking | None,
        few: Mapping[int, int] | None = None,
        counts: PodCounts | None = None,
    ) -> None:
        self._labels = labels
        self._num_rows = num_rows
        self._tracking = tracking
        self._counts = counts
        self._few = SparseColumn(few or {})

    @property
    def few(self) -> Mapping[int, int] | None:
        """Row -> count, if few rows have any; else None."""
        return self._few.counts if self._counts is None else None

    @property
    def total(self) -> int:
        """The number of all pods."""
        return sum(self._few.counts.values()) if self._counts is None else self._counts.total

    @property
    def per_node(self) -> Int64Array:
        """``int64[rows]``."""
        return self._columns().per_node

    def on_row(self, row: int) -> int:
        """The number of pods on one row."""
        if self._counts is None:
            return self._few.counts.get(row, 0)
        return int(self._counts.per_node[row])

    def per_domain(self, topology_key: str) -> Int64Array:
        """``int64[values]``; see `PodCounts.per_domain`."""
        return self._columns().per_domain(topology_key)

    def per_domain_or_none(self, topology_key: str) -> Int64Array:
        """``int64[values + 1]``; see `PodCounts.per_domain_or_none`."""
        return self._columns().per_domain_or_none(topology_key)

    def few_domains(self, topology_key: str) -> FewDomains | None:
        """See `PodCounts.few_domains`; None while few rows have any, see `few`."""
        return None if self._counts is None else self._counts.few_domains(topology_key)

    def known_domains(self) -> Collection[str]:
        """The topology keys whose domain counts are kept."""
        return () if self._counts is None else self._counts.known_domains()

    def add(self, row: int, delta: int) -> None:
        """Add `delta` pods on a row; for the index only."""
        if self._counts is not None:
            self._counts.add(row, delta)
            return
        few = self._few
        few.add(row, delta)
        # A pod may have thousands of terms: mostly the number of rows is not asked for.
        if len(few.counts) > FEW and few.is_dense(self._num_rows()):
            self._counts = PodCounts(self._labels, self._to_array(), self._tracking)
            self._few = SparseColumn()

    def with_changes(self, changes: Iterable[tuple[int, int]]) -> TermCounts:
        """A copy with these (row, delta) added; the copy is not kept up to date."""
        if self._counts is not None:
            changed = self._counts.with_changes(changes)
            return TermCounts(self._labels, self._num_rows, None, counts=changed)
        few = dict(self._few.counts)
        for row, delta in changes:
            few[row] = few.get(row, 0) + delta
        return TermCounts(self._labels, self._num_rows, None, few)

    def grow(self, num_rows: int) -> None:
        """Extend the arrays to `num_rows`; for the index only."""
        if self._counts is not None:
            self._counts.grow(num_rows)

    def dropped(self) -> None:
        """Stop updating domain counts; for the index only."""
        if self._counts is not None:
            self._counts.dropped()

    def _columns(self) -> PodCounts:
        """The counts as arrays, which are not kept if few rows have any."""
        return self._counts or PodCounts(self._labels, self._to_array())

    def _to_array(self) -> Int64Array:
        return self._few.to_array(self._num_rows())
