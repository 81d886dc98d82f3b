"""Label groups: pods on nodes that no selector distinguishes, and matching them with selectors.

Few groups are matched one by one. Many are matched like nodes: their labels are columns, a
requirement is evaluated once per distinct value, and each group looks up the result. Where the pods
of the groups are is in columns, too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TypeAlias

import numpy as np

from stowage.api.interruptible import Interruptible
from stowage.api.values.selectors import Selector
from stowage.state.arrays import BoolArray, Int64Array, extended, grown_capacity
from stowage.state.nodes.label_columns import ROWS_PER_STEP, LabelColumn, LabelColumns
from stowage.state.pods.group_placements import GroupPlacements, PlacementColumns
from stowage.state.pods.pod_class import NamespacedLabels, PodClass
from stowage.state.pods.pod_counts import PodCounts

_FEW = 64
"""So many groups are matched, and so many rows added up, one by one."""
_NO_LABELS: Mapping[str, str] = {}

WeightedQuery: TypeAlias = tuple[Selector, frozenset[str] | None, int]
"""A selector, the namespaces in which it holds (None: all), and a weight."""


class LabelGroup:
    """Pods with equal namespace and labels, and equally terminating or not.

    Args:
        pod_class: A class of such pods.
        terminating: Whether they have a deletion timestamp.
        slot: The index of the group in columns over groups.
        placements: Has the numbers of its pods.

    Attributes:
        entries: Row -> the entry of the group and the row in `placements`.
        counts: The counts in which these pods are included.
    """

    __slots__ = (
        "_placements",
        "counts",
        "entries",
        "labels",
        "namespaced_labels",
        "slot",
        "terminating",
    )

    def __init__(
        self, pod_class: PodClass, terminating: bool, slot: int, placements: GroupPlacements
    ) -> None:
        self.namespaced_labels = pod_class.namespaced_labels
        self.labels = pod_class.labels
        self.terminating = terminating
        self.slot = slot
        self.entries: dict[int, int] = {}
        self._placements = placements
        self.counts: dict[PodCounts, None] = {}

    def add(self, row: int) -> None:
        """Add a pod of the group on a row."""
        entry = self.entries.get(row)
        if entry is None:
            self.entries[row] = self._placements.add(self.slot, row)
        else:
            self._placements.change(entry, 1)

    def remove(self, row: int) -> None:
        """Remove a pod of the group from a row."""
        if not self._placements.change(self.entries[row], -1):
            del self.entries[row]

    def num_on_row(self, row: int) -> int:
        """The number of pods of the group on a row."""
        entry = self.entries.get(row)
        return 0 if entry is None else self._placements.number(entry)

    @property
    def namespace(self) -> str:
        """The namespace of the pods."""
        return self.namespaced_labels[0]

    def matches(self, selector: Selector, skip_terminating: bool) -> bool:
        """Whether a selector matches the pods; the caller has checked the namespace."""
        if skip_terminating and self.terminating:
            return False
        return selector.matches(self.labels)


class LabelGroups:
    """All label groups that have pods.

    Attributes:
        labels: Label columns over the slots of groups.
    """

    def __init__(self) -> None:
        self._groups: dict[tuple[NamespacedLabels, bool], LabelGroup] = {}
        self._groups_in: dict[str, dict[LabelGroup, None]] = {}
        self._slots: list[LabelGroup | None] = []
        self._free: list[int] = []
        self._placements = GroupPlacements()
        self.labels = LabelColumns(self._labels_of, 0, keeps_unused=False)
        self._namespaces = LabelColumn("", 0)
        self._terminating: BoolArray = np.zeros(0, dtype=np.bool_)
        self._no_slots: BoolArray = np.zeros(0, dtype=np.bool_)
        self._namespace_table: tuple[int, frozenset[str], BoolArray] | None = None

    def get(self, pod_class: PodClass, terminating: bool) -> LabelGroup | None:
        """The group of such pods; None if there are none."""
        return self._groups.get((pod_class.namespaced_labels, terminating))

    def add(self, pod_class: PodClass, terminating: bool) -> LabelGroup:
        """Add the group of such pods, of which there were none."""
        if not self._free:
            self._grow(grown_capacity(len(self._slots)))
        group = LabelGroup(pod_class, terminating, self._free.pop(), self._placements)
        self._groups[group.namespaced_labels, terminating] = group
        self._groups_in.setdefault(group.namespace, {})[group] = None
        self._slots[group.slot] = group
        self.labels.update(group.slot, _NO_LABELS, group.labels)
        self._namespaces.set(group.slot, group.namespace)
        self._terminating[group.slot] = terminating
        return group

    def drop(self, group: LabelGroup) -> None:
        """Remove a group without pods."""
        del self._groups[group.namespaced_labels, group.terminating]
        of_namespace = self._groups_in[group.namespace]
        del of_namespace[group]
        if not of_namespace:
            del self._groups_in[group.namespace]
        self._slots[group.slot] = None
        self.labels.update(group.slot, group.labels, _NO_LABELS)
        self._namespaces.set(group.slot, None)
        self._free.append(group.slot)

    def building_steps(self, keys: Iterable[str]) -> Interruptible[None]:
        """Build in steps the columns of labels that selectors read, if there are very many groups.

        No group may come or go before the last step.
        """
        if len(self._groups) > ROWS_PER_STEP:
            yield from self.labels.building_steps(keys)

    def _are_many(self, namespaces: frozenset[str] | None) -> bool:
        """Whether matching the groups of these namespaces one by one is slow."""
        if namespaces is None or len(namespaces) > len(self._groups_in):
            return len(self._groups) > _FEW
        num_groups = 0
        for namespace in namespaces:
            num_groups += len(self._groups_in.get(namespace, ()))
            if num_groups > _FEW:
                return True
        return False

    def matching(
        self, selector: Selector, namespaces: frozenset[str] | None, skip_terminating: bool
    ) -> Int64Array:
        """The slots of the groups of `namespaces` (None: all) that `selector` matches."""
        if self._are_many(namespaces):
            mask = self._mask(selector, namespaces, skip_terminating)
            return np.flatnonzero(mask).astype(np.int64)
        slots = [
            group.slot
            for group in self._of(namespaces)
            if group.matches(selector, skip_terminating)
        ]
        return np.array(slots, dtype=np.int64)

    def in_slots(self, slots: Int64Array) -> list[LabelGroup]:
        """The groups in some slots."""
        return [group for slot in slots.tolist() if (group := self._slots[slot]) is not None]

    def per_row(self, slots: Int64Array, num_rows: int) -> Int64Array:
        """``int64[rows]``: the number of pods of the groups in some slots."""
        groups = self.in_slots(slots) if len(slots) <= _FEW else ()
        if len(groups) == len(slots) and sum(len(group.entries) for group in groups) <= _FEW:
            per_row: Int64Array = np.zeros(num_rows, dtype=np.int64)
            for group in groups:
                for row in group.entries:
                    per_row[row] += group.num_on_row(row)
            return per_row
        are_counted: BoolArray = np.zeros(len(self._slots), dtype=np.bool_)
        are_counted[slots] = True
        of_groups, rows, numbers = self._placements.columns
        here = are_counted[of_groups]
        # Doubles are exact up to 2**53.
        sums = np.bincount(rows[here], weights=numbers[here], minlength=num_rows)
        return sums.astype(np.int64)

    def weigh(self, queries: Iterable[WeightedQuery]) -> tuple[Int64Array, BoolArray]:
        """Add up the weights of the queries that match each group, without counting pods.

        Thousands of queries take some microseconds each.

        Returns:
            ``int64[slots]``, the sums, and ``bool[slots]``, the groups that any query matches. Free
            slots may have any value.
        """
        num_slots = len(self._slots)
        sums: Int64Array = np.zeros(num_slots, dtype=np.int64)
        matched: BoolArray = np.zeros(num_slots, dtype=np.bool_)
        everywhere: dict[frozenset[str] | None, int] = {}
        for selector, namespaces, weight in queries:
            mask = self._distinguished(selector)
            if mask is None:
                everywhere[namespaces] = everywhere.get(namespaces, 0) + weight
                continue
            if mask is self._no_slots:
                continue
            if namespaces is not None:
                mask = mask & self._in_namespaces(namespaces)[self._namespaces.codes]
            sums += mask * weight
            matched |= mask
        for namespaces, weight in everywhere.items():
            inside: BoolArray = np.ones(num_slots, dtype=np.bool_)
            if namespaces is not None:
                inside = self._in_namespaces(namespaces)[self._namespaces.codes]
            sums += inside * weight
            matched |= inside
        return sums, matched

    def placed(self) -> PlacementColumns:
        """Where the pods of all groups are."""
        return self._placements.columns

    def _distinguished(self, selector: Selector) -> BoolArray | None:
        """``bool[slots]``: the groups that a selector matches; None if it matches every group."""
        if selector.matches_nothing:
            return self._no_slots
        mask: BoolArray | None = None
        for requirement in selector.requirements:
            column = self.labels.column(requirement.key)
            if not column.has_any_of(requirement):
                # No group has the label, or one of the values.
                if requirement.matches_value(None):
                    continue
                return self._no_slots
            here = column.table(requirement)[column.codes]
            mask = here if mask is None else mask & here
        return mask

    def _mask(
        self, selector: Selector, namespaces: frozenset[str] | None, skip_terminating: bool
    ) -> BoolArray:
        """``bool[slots]``: which groups match."""
        mask = self.labels.mask(selector)
        mask &= self._namespaces.codes >= 0
        if namespaces is not None:
            mask &= self._in_namespaces(namespaces)[self._namespaces.codes]
        if skip_terminating:
            mask &= ~self._terminating
        return mask

    def _in_namespaces(self, namespaces: frozenset[str]) -> BoolArray:
        """``bool[namespace codes + 1]``; similar terms ask repeatedly about the same set."""
        version = self._namespaces.values.version
        if self._namespace_table is None or self._namespace_table[:2] != (version, namespaces):
            table: BoolArray = np.zeros(self._namespaces.num_values + 1, dtype=np.bool_)
            table[:-1] = [each in namespaces for each in self._namespaces.values.values]
            self._namespace_table = (version, namespaces, table)
        return self._namespace_table[2]

    def _of(self, namespaces: frozenset[str] | None) -> Iterator[LabelGroup]:
        if namespaces is None:
            yield from self._groups.values()
            return
        among: Collection[str] = namespaces
        if len(namespaces) > len(self._groups_in):
            among = [each for each in self._groups_in if each in namespaces]
        for namespace in among:
            yield from self._groups_in.get(namespace, ())

    def _labels_of(self, slot: int) -> Mapping[str, str]:
        group = self._slots[slot]
        return _NO_LABELS if group is None else group.labels

    def _grow(self, num_slots: int) -> None:
        self._free.extend(range(num_slots - 1, len(self._slots) - 1, -1))
        self._slots.extend([None] * (num_slots - len(self._slots)))
        self.labels.grow(num_slots)
        self._namespaces.grow(num_slots)
        self._terminating = extended(self._terminating, num_slots)
