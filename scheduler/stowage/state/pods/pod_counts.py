"""Counts of matching pods per node, and per domain of a topology key."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TypeAlias

import numpy as np

from stowage.state.arrays import Int64Array, extended, read_only
from stowage.state.nodes.label_columns import LabelColumn, LabelColumns

NO_DOMAINS: Int64Array = read_only(np.empty(0, dtype=np.int64))
_ONLY_NONE: Int64Array = read_only(np.zeros(1, dtype=np.int64))
FewDomains: TypeAlias = tuple[Int64Array, Int64Array]
"""Codes of domains, distinct, and the numbers of their pods; all other domains have none."""

#: Domains are many from here on, and few of them are at most one in so many.
MANY_DOMAINS, _SHARE = 1024, 16


class _Occupied:
    """The domains that have, or had, a pod, while these are few of many.

    Args:
        counts: ``int64[domains]``.
    """

    __slots__ = ("_buffer", "_known", "_length")

    def __init__(self, counts: Int64Array) -> None:
        codes = np.flatnonzero(counts)
        self._buffer: Int64Array = np.empty(len(counts) // _SHARE, dtype=np.int64)
        self._known = bytearray(len(counts))
        self._length = 0
        for code in codes[: len(self._buffer) + 1].tolist():
            self.note(code)

    @property
    def codes(self) -> Int64Array | None:
        """``int64[]``; None if they are not few."""
        if self._length > len(self._buffer):
            return None
        return self._buffer[: self._length]

    def note(self, code: int) -> None:
        """Take note of a domain to which pods are added."""
        if self._length <= len(self._buffer) and not self._known[code]:
            self._known[code] = 1
            if self._length < len(self._buffer):
                self._buffer[self._length] = code
            self._length += 1


class _DomainCounts:
    """The counts of a `PodCounts`, summed per value of a label."""

    __slots__ = ("_cells", "_occupied", "column", "counts", "per_node")

    def __init__(self, column: LabelColumn, per_node: Int64Array) -> None:
        self.column = column
        self.per_node = per_node
        # Code -1 (no label) falls into the first bin, which is cut off; doubles are exact to 2**53.
        sums = np.bincount(column.codes + 1, weights=per_node)
        self.counts = extended(sums[1:].astype(np.int64), column.num_values + 1)
        self._cells = self.counts.data
        self._occupied: _Occupied | None = None

    def few(self) -> FewDomains | None:
        """The domains with pods; None unless these are few of many."""
        if len(self.counts) < MANY_DOMAINS:
            return None
        if self._occupied is None:
            self._occupied = _Occupied(self.counts)
        codes = self._occupied.codes
        return None if codes is None else (codes, self.counts[codes])

    def add(self, row: int, delta: int) -> None:
        """Add `delta` pods on a row."""
        code = self.column.cells[row]
        if code >= 0:
            self._cells[code] += delta
            if self._occupied is not None:
                self._occupied.note(code)

    def label_changed(self, row: int, old: int, new: int) -> None:
        """Move the pods of a row from one domain to another; either may be absent."""
        if new + 1 >= len(self.counts):
            self.counts = extended(self.counts, 2 * new + 1)
            self._cells = self.counts.data
            self._occupied = None
        num_pods = self.per_node[row]
        if old >= 0:
            self.counts[old] -= num_pods
        if new >= 0:
            self.counts[new] += num_pods
            if self._occupied is not None and num_pods:
                self._occupied.note(new)


class DomainTracking:
    """Updates the domain counts of `PodCounts` when labels of nodes change."""

    __slots__ = ("_by_key", "labels")

    def __init__(self, labels: LabelColumns) -> None:
        self.labels = labels
        self._by_key: dict[str, dict[_DomainCounts, None]] = {}
        labels.observers.append(self._label_changed)

    def track(self, domain: _DomainCounts) -> None:
        """Start to update domain counts."""
        self._by_key.setdefault(domain.column.key, {})[domain] = None

    def drop(self, domain: _DomainCounts) -> None:
        """Stop updating domain counts."""
        of_key = self._by_key[domain.column.key]
        del of_key[domain]
        if not of_key:
            del self._by_key[domain.column.key]

    def _label_changed(self, column: LabelColumn, row: int, old: int, new: int) -> None:
        for domain in self._by_key.get(column.key, ()):
            domain.label_changed(row, old, new)


class PodCounts:
    """Numbers of pods, updated when pods are added or removed and when labels of nodes change.

    Valid within the cycle that requested it: counts that are not requested for long are dropped,
    and are no longer updated then.

    Attributes:
        per_node: ``int64[rows]``, read-only; includes rows without a node object.
        total: The sum of `per_node`.
    """

    __slots__ = (
        "_cells",
        "_domains",
        "_labels",
        "_per_node",
        "_tracking",
        "per_node",
        "total",
    )

    def __init__(
        self, labels: LabelColumns, per_node: Int64Array, tracking: DomainTracking | None = None
    ) -> None:
        self._labels = labels
        self._tracking = tracking
        self._per_node = per_node
        self._cells = per_node.data  # changing one element is much faster through the buffer
        self.per_node: Int64Array = read_only(per_node)
        self.total = int(per_node.sum())
        self._domains: dict[str, _DomainCounts] = {}

    def per_domain(self, topology_key: str) -> Int64Array:
        """``int64[values]``: number of pods on the nodes with each value of a label, by its code.

        Its length is ``label_column(topology_key).num_values``. Nodes without the label, and rows
        without a node object, are left out.
        """
        domain = self._domain(topology_key)
        if domain is None:
            return NO_DOMAINS
        return read_only(domain.counts[: domain.column.num_values])

    def per_domain_or_none(self, topology_key: str) -> Int64Array:
        """``int64[values + 1]``: `per_domain` and a last entry, no domain, which is 0."""
        domain = self._domain(topology_key)
        if domain is None:
            return _ONLY_NONE
        return read_only(domain.counts[: domain.column.num_values + 1])

    def few_domains(self, topology_key: str) -> FewDomains | None:
        """`per_domain`, without most of the domains that have no pods.

        None unless few of many domains have pods, and for counts that are not kept up to date.
        """
        if self._tracking is None:
            return None
        domain = self._domain(topology_key)
        return None if domain is None else domain.few()

    def _domain(self, topology_key: str) -> _DomainCounts | None:
        domain = self._domains.get(topology_key)
        if domain is None:
            column = self._labels.column(topology_key)
            if not column.num_values:
                return None
            domain = self._domains[topology_key] = _DomainCounts(column, self._per_node)
            if self._tracking is not None:
                self._tracking.track(domain)
        return domain

    def known_domains(self) -> Collection[str]:
        """The topology keys requested so far."""
        return self._domains.keys()

    def add(self, row: int, delta: int) -> None:
        """Add `delta` pods on a row; for the index only."""
        self._cells[row] += delta
        self.total += delta
        for domain in self._domains.values():
            domain.add(row, delta)

    def with_changes(self, changes: Iterable[tuple[int, int]]) -> PodCounts:
        """A copy with these (row, delta) added; the copy is not kept up to date."""
        per_node = self._per_node.copy()
        for row, delta in changes:
            per_node[row] += delta
        return PodCounts(self._labels, per_node)

    def grow(self, num_rows: int) -> None:
        """Extend the arrays to `num_rows`; for the index only."""
        self._per_node = extended(self._per_node, num_rows)
        self._cells = self._per_node.data
        self.per_node = read_only(self._per_node)
        for domain in self._domains.values():
            domain.per_node = self._per_node

    def dropped(self) -> None:
        """Stop updating domain counts; for the index only."""
        if self._tracking is not None:
            for domain in self._domains.values():
                self._tracking.drop(domain)
        self._domains.clear()
