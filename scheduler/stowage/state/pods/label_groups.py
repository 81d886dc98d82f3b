"""The kinds of pods there are on nodes, and finding those a selector means.

Few kinds are looked at one by one. Where there are many, they are judged as nodes are: labels are
columns, a requirement is judged once per value, and what it means for each kind is looked up.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from stowage.api.values.selectors import Selector
from stowage.state.arrays import BoolArray, Int64Array, extended, grown_capacity
from stowage.state.nodes.label_columns import LabelColumn, LabelColumns
from stowage.state.pods.pod_class import NamespacedLabels, PodClass

if TYPE_CHECKING:
    from stowage.state.pods.pod_counts import PodCounts

_FEW = 64
_NO_LABELS: Mapping[str, str] = {}


class LabelGroup:
    """Pods that no selector can tell apart.

    Attributes:
        slot: Its place in columns over kinds.
        per_row: Row -> how many of them.
        counts: Kept up to date as they come and go.
    """

    __slots__ = (
        "_placements",
        "counts",
        "labels",
        "namespaced_labels",
        "per_row",
        "slot",
        "terminating",
    )

    def __init__(self, pod_class: PodClass, terminating: bool, slot: int) -> None:
        self.namespaced_labels = pod_class.namespaced_labels
        self.labels = pod_class.labels
        self.terminating = terminating
        self.slot = slot
        self.per_row: dict[int, int] = {}
        self._placements: tuple[Int64Array, Int64Array] | None = None
        self.counts: dict[PodCounts, None] = {}

    def add(self, row: int) -> None:
        """One of them came to a row."""
        self.per_row[row] = self.per_row.get(row, 0) + 1
        self._placements = None

    def remove(self, row: int) -> None:
        """One of them left a row."""
        left = self.per_row[row] - 1
        if left:
            self.per_row[row] = left
        else:
            del self.per_row[row]
        self._placements = None

    @property
    def namespace(self) -> str:
        """Whose pods they are."""
        return self.namespaced_labels[0]

    def placements(self) -> tuple[Int64Array, Int64Array]:
        """Rows, and how many of them are on each."""
        if self._placements is None:
            num = len(self.per_row)
            self._placements = (
                np.fromiter(self.per_row, dtype=np.int64, count=num),
                np.fromiter(self.per_row.values(), dtype=np.int64, count=num),
            )
        return self._placements

    def is_meant_by(self, selector: Selector, skip_terminating: bool) -> bool:
        """Whether these pods are meant; their namespace is known to be right."""
        if skip_terminating and self.terminating:
            return False
        return selector.matches(self.labels)


class LabelGroups:
    """All kinds; one without pods vanishes.

    Attributes:
        labels: Columns over the kinds, for the keys that somebody asked about.
    """

    def __init__(self) -> None:
        self._kinds: dict[tuple[NamespacedLabels, bool], LabelGroup] = {}
        self._kinds_in: dict[str, dict[LabelGroup, None]] = {}
        self._slots: list[LabelGroup | None] = []
        self._free: list[int] = []
        self.labels = LabelColumns(self._labels_of, 0, keeps_unused=False)
        self._namespaces = LabelColumn("", 0)
        self._terminating: BoolArray = np.zeros(0, dtype=np.bool_)
        self._placed: tuple[Int64Array, Int64Array, Int64Array] | None = None
        self._judged: tuple[int, frozenset[str], BoolArray] | None = None

    def get(self, pod_class: PodClass, terminating: bool) -> LabelGroup | None:
        """The kind of such pods, if there are any."""
        return self._kinds.get((pod_class.namespaced_labels, terminating))

    def add(self, pod_class: PodClass, terminating: bool) -> LabelGroup:
        """A kind of pods there were none of."""
        if not self._free:
            self._grow(grown_capacity(len(self._slots), len(self._slots) + 1))
        kind = LabelGroup(pod_class, terminating, self._free.pop())
        self._kinds[kind.namespaced_labels, terminating] = kind
        self._kinds_in.setdefault(kind.namespace, {})[kind] = None
        self._slots[kind.slot] = kind
        self.labels.update(kind.slot, _NO_LABELS, kind.labels)
        self._namespaces.set(kind.slot, kind.namespace)
        self._terminating[kind.slot] = terminating
        return kind

    def drop(self, kind: LabelGroup) -> None:
        """Forget a kind that has no pods any more."""
        del self._kinds[kind.namespaced_labels, kind.terminating]
        of_namespace = self._kinds_in[kind.namespace]
        del of_namespace[kind]
        if not of_namespace:
            del self._kinds_in[kind.namespace]
        self._slots[kind.slot] = None
        self.labels.update(kind.slot, kind.labels, _NO_LABELS)
        self._namespaces.set(kind.slot, None)
        self._free.append(kind.slot)

    def moved(self) -> None:
        """Note that pods came or went."""
        self._placed = None

    def are_many(self, namespaces: frozenset[str] | None) -> bool:
        """Whether looking at the kinds of these namespaces one by one is slow."""
        if namespaces is None or len(namespaces) > len(self._kinds_in):
            return len(self._kinds) > _FEW
        num_kinds = 0
        for namespace in namespaces:
            num_kinds += len(self._kinds_in.get(namespace, ()))
            if num_kinds > _FEW:
                return True
        return False

    def meant(
        self, selector: Selector, namespaces: frozenset[str] | None, skip_terminating: bool
    ) -> list[LabelGroup]:
        """The kinds that are to be counted."""
        if not self.are_many(namespaces):
            return [
                kind
                for kind in self._of(namespaces)
                if kind.is_meant_by(selector, skip_terminating)
            ]
        slots = np.flatnonzero(self._mask(selector, namespaces, skip_terminating))
        return [kind for slot in slots.tolist() if (kind := self._slots[slot]) is not None]

    def per_row(
        self,
        selector: Selector,
        namespaces: frozenset[str] | None,
        skip_terminating: bool,
        num_rows: int,
    ) -> Int64Array:
        """``int64[rows]``: how many pods are meant; costs no loop over kinds or pods."""
        slots, rows, numbers = self._placements()
        here = self._mask(selector, namespaces, skip_terminating)[slots]
        # Doubles are exact up to 2**53.
        sums = np.bincount(rows[here], weights=numbers[here], minlength=num_rows)
        return sums.astype(np.int64)

    def _mask(
        self, selector: Selector, namespaces: frozenset[str] | None, skip_terminating: bool
    ) -> BoolArray:
        """``bool[slots]``: who is meant."""
        mask = self.labels.mask(selector)
        mask &= self._namespaces.codes >= 0
        if namespaces is not None:
            mask &= self._in_namespaces(namespaces)[self._namespaces.codes]
        if skip_terminating:
            mask &= ~self._terminating
        return mask

    def _in_namespaces(self, namespaces: frozenset[str]) -> BoolArray:
        """``bool[namespace codes + 1]``; asked again and again about one set by like terms."""
        version = self._namespaces.values.version
        if self._judged is None or self._judged[:2] != (version, namespaces):
            table: BoolArray = np.zeros(self._namespaces.num_values + 1, dtype=np.bool_)
            table[:-1] = [each in namespaces for each in self._namespaces.values.values]
            self._judged = (version, namespaces, table)
        return self._judged[2]

    def _of(self, namespaces: frozenset[str] | None) -> Iterator[LabelGroup]:
        if namespaces is None:
            yield from self._kinds.values()
            return
        among: Collection[str] = namespaces
        if len(namespaces) > len(self._kinds_in):
            among = [each for each in self._kinds_in if each in namespaces]
        for namespace in among:
            yield from self._kinds_in.get(namespace, ())

    def _placements(self) -> tuple[Int64Array, Int64Array, Int64Array]:
        """Slot of a kind, row and number of its pods there; made anew once pods came or went."""
        if self._placed is None:
            kinds = list(self._kinds.values())
            lengths = np.array([len(kind.per_row) for kind in kinds], dtype=np.int64)
            slots = np.array([kind.slot for kind in kinds], dtype=np.int64)
            total = int(lengths.sum())
            rows = chain.from_iterable(kind.per_row for kind in kinds)
            numbers = chain.from_iterable(kind.per_row.values() for kind in kinds)
            self._placed = (
                np.repeat(slots, lengths),
                np.fromiter(rows, dtype=np.int64, count=total),
                np.fromiter(numbers, dtype=np.int64, count=total),
            )
        return self._placed

    def _labels_of(self, slot: int) -> Mapping[str, str]:
        kind = self._slots[slot]
        return _NO_LABELS if kind is None else kind.labels

    def _grow(self, num_slots: int) -> None:
        self._free.extend(range(num_slots - 1, len(self._slots) - 1, -1))
        self._slots.extend([None] * (num_slots - len(self._slots)))
        self.labels.grow(num_slots)
        self._namespaces.grow(num_slots)
        self._terminating = extended(self._terminating, num_slots)
