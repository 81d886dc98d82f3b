"""Sums pods per topology domain, over many terms."""

from __future__ import annotations

import numpy as np

from stowage.framework.verdict import Int64Array
from stowage.state.pods.pod_counts import MANY_DOMAINS, FewDomains, PodCounts
from stowage.state.pods.pod_index import ExistingTerm
from stowage.state.pods.term_counts import TermCounts
from stowage.state.snapshot import Snapshot

#: Number of domains that are looked at before all are.
_SOME = 64


class DomainSums:
    """Weighted numbers of pods per domain, one sum per topology key.

    Terms of pods on few nodes, or in few of many domains, are collected and added in one step: each
    costs time by the number of those nodes, not by the number of domains.
    """

    __slots__ = ("_few", "_gathered", "_shared", "_snapshot", "_totals")

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._totals: dict[str, Int64Array] = {}
        self._gathered: dict[str, tuple[list[int], list[int]]] = {}
        self._few: dict[str, list[FewDomains]] = {}
        self._shared: dict[str, bool] = {}

    def add(self, key: str, weight: int, counts: PodCounts | TermCounts) -> None:
        """Add ``weight`` times the pods of each domain of a key, unless there are none."""
        few = counts.few_domains(key)
        if few is not None:
            codes, pods = few
            if pods.any():
                self._few.setdefault(key, []).append((codes, pods * weight))
            return
        if not counts.total:
            return
        pods = counts.per_domain_or_none(key)
        # Counts are not negative; argmax takes a third of the time of any(). Where most domains
        # have pods, the first ones do.
        if pods[:_SOME].any() or pods[pods.argmax()]:
            self._add(key, pods if weight == 1 else pods * weight, is_shared=weight == 1)

    def add_weighted(self, key: str, amounts: Int64Array) -> None:
        """Add ``int64[domains]``, of either sign, unless it is empty."""
        if len(amounts):
            self._add(key, np.append(amounts, 0))

    def add_carried(self, carried: ExistingTerm, weight: int) -> None:
        """Add the placed pods that have a term, with a weight."""
        key, few = carried.term.topology_key, carried.counts.few
        if few is None:
            self.add(key, weight, carried.counts)
            return
        rows, weights = self._gathered.setdefault(key, ([], []))
        rows.extend(few)
        weights.extend([weight * count for count in few.values()] if weight != 1 else few.values())

    def few(self) -> dict[str, FewDomains]:
        """The keys of which only few of many domains have pods, with the sums of these domains.

        Those keys are then left out of `totals`.
        """
        self._find_domains()
        found = {}
        for key in [key for key in self._few if key not in self._totals]:
            if self._snapshot.label_column(key).num_values < MANY_DOMAINS:
                continue
            parts = self._few.pop(key)
            codes, amounts = parts[0]
            if len(parts) > 1:
                codes, places = np.unique(
                    np.concatenate([codes for codes, _ in parts]), return_inverse=True
                )
                amounts = np.zeros(len(codes), dtype=np.int64)
                np.add.at(amounts, places, np.concatenate([amounts for _, amounts in parts]))
            found[key] = codes, amounts
        return found

    def totals(self) -> dict[str, Int64Array]:
        """Topology key -> ``int64[domains + 1]``, not to be written to; the last, no domain, is 0.

        Keys of which no domain has any pod are left out.
        """
        self._find_domains()
        for key, parts in self._few.items():
            num_domains = self._snapshot.label_column(key).num_values
            total = np.zeros(num_domains + 1, dtype=np.int64)
            for codes, amounts in parts:
                total[codes] += amounts
            self._add(key, total)
        self._few.clear()
        return self._totals

    def _find_domains(self) -> None:
        """Add what was gathered by row to the domains of the rows."""
        for key, (rows, weights) in self._gathered.items():
            column = self._snapshot.label_column(key)
            codes = column.codes[np.array(rows, dtype=np.int64)]
            amounts = np.array(weights, dtype=np.int64)
            # A what-if may have removed all pods with the term from a row.
            inside = (codes >= 0) & (amounts != 0)
            if not inside.any():
                continue
            if column.num_values < MANY_DOMAINS:
                total = np.zeros(column.num_values + 1, dtype=np.int64)
                np.add.at(total, codes[inside], amounts[inside])
                self._add(key, total)
                continue
            own, places = np.unique(codes[inside], return_inverse=True)
            sums = np.zeros(len(own), dtype=np.int64)
            np.add.at(sums, places, amounts[inside])
            self._few.setdefault(key, []).append((own.astype(np.int64), sums))
        self._gathered.clear()

    def _add(self, key: str, amounts: Int64Array, *, is_shared: bool = False) -> None:
        """Add ``int64[domains + 1]``, which stays as it is if `is_shared`."""
        total = self._totals.get(key)
        if total is None:
            self._totals[key] = amounts
            self._shared[key] = is_shared
        elif self._shared[key]:
            self._totals[key] = total + amounts
            self._shared[key] = False
        else:
            total += amounts
