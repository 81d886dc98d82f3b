"""Sums pods per topology domain, over many terms."""

from __future__ import annotations

import numpy as np

from stowage.framework.verdict import Int64Array
from stowage.state.pods.pod_index import ExistingTerm
from stowage.state.snapshot import Snapshot


class DomainSums:
    """Weighted numbers of pods per domain, one sum per topology key.

    Terms of pods on few nodes are collected and added in one step: each costs time by the number
    of those nodes, not by the number of domains.
    """

    __slots__ = ("_gathered", "_snapshot", "_totals")

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._totals: dict[str, Int64Array] = {}
        self._gathered: dict[str, tuple[list[int], list[int]]] = {}

    def add(self, key: str, weight: int, pods: Int64Array) -> None:
        """Add ``weight * pods`` for ``int64[domains]`` pods, unless there are none."""
        # Counts are not negative; argmax takes a third of the time of any().
        if not len(pods) or not pods[pods.argmax()]:
            return
        total = self._totals.get(key)
        if total is None:
            total = self._totals[key] = np.zeros(len(pods) + 1, dtype=np.int64)
            np.multiply(pods, weight, out=total[:-1])
        else:
            total[:-1] += pods * weight

    def add_weighted(self, key: str, amounts: Int64Array) -> None:
        """Add ``int64[domains]``, of either sign, unless it is empty."""
        if not len(amounts):
            return
        total = self._totals.get(key)
        if total is None:
            total = self._totals[key] = np.zeros(len(amounts) + 1, dtype=np.int64)
        total[:-1] += amounts

    def add_carried(self, carried: ExistingTerm, weight: int) -> None:
        """Add the placed pods that have a term, with a weight."""
        key, few = carried.term.topology_key, carried.counts.few
        if few is None:
            self.add(key, weight, carried.counts.per_domain(key))
            return
        rows, weights = self._gathered.setdefault(key, ([], []))
        rows.extend(few)
        weights.extend([weight * count for count in few.values()] if weight != 1 else few.values())

    def totals(self) -> dict[str, Int64Array]:
        """Topology key -> ``int64[domains + 1]``; the last entry, no domain, is 0.

        Keys of which no domain has any pod are left out.
        """
        for key, (rows, weights) in self._gathered.items():
            column = self._snapshot.label_column(key)
            codes = column.codes[np.array(rows, dtype=np.int64)]
            amounts = np.array(weights, dtype=np.int64)
            # A what-if may have removed all pods with the term from a row.
            inside = (codes >= 0) & (amounts != 0)
            if not inside.any():
                continue
            total = self._totals.get(key)
            if total is None:
                total = self._totals[key] = np.zeros(column.num_values + 1, dtype=np.int64)
            np.add.at(total, codes[inside], amounts[inside])
        self._gathered.clear()
        return self._totals
