"""The pods removed from each of some nodes, and sums over them.

A dry run of preemption removes pods from many nodes, puts some back, and needs sums over the
removed pods after each step. A value that depends on the variant of a pod is computed once per
variant.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Set
from functools import cached_property

import numpy as np

from stowage.api.values.csi_migration import AttachedVolume
from stowage.state.arrays import BoolArray, Int64Array, extended
from stowage.state.cluster_state import ClusterState
from stowage.state.pods.pod_info import PodInfo
from stowage.state.pods.pod_variants import PodVariants
from stowage.state.pods.ranked_rows import RankedRows
from stowage.state.what_if.added_pods import PodValue
from stowage.state.what_if.removed_volumes import RemovedVolumes

PodNumber = Callable[[PodInfo], int]
"""A number for a pod that its variant does not determine."""


class VariantValues:
    """Values per variant that plugins computed, shared by all what-ifs of a cycle."""

    __slots__ = ("_known", "_numbering")

    def __init__(self) -> None:
        self._numbering = -1
        self._known: dict[Hashable, tuple[Int64Array, BoolArray]] = {}

    def about(
        self, key: Hashable, ask: PodValue, variants: PodVariants, present: BoolArray
    ) -> Int64Array:
        """``int64[variants + 1]``: the value of each variant that is `present`; 0 for no pod.

        Args:
            key: Identifies `ask`: functions with equal keys return equal values.
            ask: The value of a variant.
            variants: The variants.
            present: ``bool[variants]``.
        """
        if variants.numbering != self._numbering:
            self._known.clear()
            self._numbering = variants.numbering
        values = variants.values
        table, known = self._known.get(key, (_NO_ANSWERS, _NOTHING_KNOWN))
        if len(known) < len(values):
            known = extended(known, len(values))
            table = np.append(extended(table[:-1], len(values)), 0)
            self._known[key] = table, known
        for code in np.flatnonzero(present & ~known).tolist():
            variant = values[code]
            if variant is not None:
                table[code] = ask(*variant)
            known[code] = True
        return table


_NO_ANSWERS: Int64Array = np.zeros(1, dtype=np.int64)
_NOTHING_KNOWN: BoolArray = np.zeros(0, dtype=np.bool_)


class RemovedPods:
    """The pods on some rows, and which of them are removed; none at first.

    Args:
        state: The cluster as it is.
        rows: The rows.
        answers: Values shared with other what-ifs of the same cycle.
    """

    def __init__(self, state: ClusterState, rows: Int64Array, answers: VariantValues) -> None:
        self._state = state
        self._rows = rows
        self._answers = answers
        self._mask: BoolArray | None = None
        self._sums: dict[Hashable, tuple[Int64Array, Int64Array]] = {}
        self._numbers: dict[Hashable, Int64Array] = {}
        self._volumes: dict[str, RemovedVolumes] = {}

    @cached_property
    def ranked(self) -> RankedRows:
        """The pods on the rows, removed or not."""
        return self._state.ranked.of(self._rows, self._state.columns.num_rows)

    @cached_property
    def requests(self) -> Int64Array:
        """``int64[variants + 1, resources + 3]``; see `PodVariants.requests`."""
        return self._state.ranked.variants.requests()

    def requested(self, slots: Int64Array) -> tuple[Int64Array, Int64Array]:
        """What some pods use on their rows.

        Args:
            slots: Ascending slots.

        Returns:
            The positions of the rows that have some of the pods, and
            ``int64[positions, resources + 3]``; columns as in `PodVariants.requests`.
        """
        owners = self.ranked.positions[slots]
        starts = np.flatnonzero(np.diff(owners, prepend=-1))
        codes = self.ranked.variants[slots]
        used = np.zeros((len(starts), self.requests.shape[1]), dtype=np.int64)
        for column in self._requested_columns:
            used[:, column] = np.add.reduceat(self.requests[:, column].take(codes), starts)
        return owners[starts], used

    @cached_property
    def _requested_columns(self) -> list[int]:
        """The columns of `requests` of which some pod requests something: few of many resources."""
        return np.flatnonzero(self.requests.any(axis=0)).tolist()

    @property
    def mask(self) -> BoolArray:
        """``bool[slots]``: the pods that are removed now."""
        if self._mask is None:
            self._mask = np.zeros(self.ranked.num_slots, dtype=np.bool_)
        return self._mask

    def remove(self, pods: BoolArray) -> None:
        """Remove all pods of ``bool[slots]``."""
        self._sums.clear()
        self._mask = self.mask | pods

    def put_back(self, positions: Int64Array, slots: Int64Array) -> Int64Array:
        """Put one pod back on each of these rows; returns the variants of the pods."""
        return self._change(positions, slots, is_removed=False)

    def remove_again(self, positions: Int64Array, slots: Int64Array) -> Int64Array:
        """Remove one pod from each of these rows; returns the variants of the pods."""
        return self._change(positions, slots, is_removed=True)

    def _change(self, positions: Int64Array, slots: Int64Array, is_removed: bool) -> Int64Array:
        self.mask[slots] = is_removed
        variants: Int64Array = self.ranked.variants[slots]
        for values, sums in self._sums.values():
            sums[positions] += values[variants] if is_removed else -values[variants]
        return variants

    def removed_on(self, position: int) -> list[PodInfo]:
        """The pods removed from a row."""
        return self._on(position, is_removed=True)

    def left_on(self, position: int) -> list[PodInfo]:
        """The pods on a row that are not removed."""
        return self._on(position, is_removed=False)

    def _on(self, position: int, is_removed: bool) -> list[PodInfo]:
        pods = self.ranked.pods_at(position)
        if self._mask is None:
            return [] if is_removed else list(pods)
        mask = self._mask[self.ranked.slots_at(position)].tolist()
        return [pod for pod, each in zip(pods, mask, strict=True) if each is is_removed]

    def by_variant(self, key: Hashable, ask: PodValue) -> Int64Array:
        """``int64[variants + 1]``: a value for each variant on the rows; `key` identifies `ask`."""
        return self._answers.about(key, ask, self._state.ranked.variants, self._present_variants)

    def sum(self, positions: Int64Array, key: Hashable, ask: PodValue) -> Int64Array:
        """``int64[positions]``: the sum over the removed pods; `key` identifies `ask`.

        Sums are cached by key, and updated when pods are put back and removed again.
        """
        if self._mask is None:
            return np.zeros(len(positions), dtype=np.int64)
        known = self._sums.get(key)
        if known is None:
            table = self.by_variant(key, ask)
            values = table[self.ranked.variants] * self._mask
            known = self._sums[key] = (table, self.ranked.total(values))
        return known[1][positions]

    def sum_by_pod(
        self, positions: Int64Array, key: Hashable, ask: PodNumber, among: Int64Array
    ) -> Int64Array:
        """``int64[positions]``: `sum` of a number per pod, which is 0 except on rows `among`."""
        if self._mask is None:
            return np.zeros(len(positions), dtype=np.int64)
        table = self._numbers.get(key)
        if table is None:
            table = np.zeros(self.ranked.num_slots, dtype=np.int64)
            for position in np.flatnonzero(np.isin(self._rows, among)).tolist():
                numbers = [ask(pod) for pod in self.ranked.pods_at(position)]
                table[self.ranked.slots_at(position)] = numbers
            self._numbers[key] = table
        return self.ranked.total(table * self._mask)[positions]

    def volumes(
        self, positions: Int64Array, driver: str, wanted: Set[AttachedVolume], tight: BoolArray
    ) -> tuple[Int64Array, Int64Array]:
        """Two ``int64[positions]``: detached volumes, and `wanted` volumes no longer in use."""
        if self._mask is None:
            nothing: Int64Array = np.zeros(len(positions), dtype=np.int64)
            return nothing, nothing
        volumes = self._volumes.get(driver)
        if volumes is None:
            places = np.flatnonzero(tight[self._rows])
            volumes = RemovedVolumes(self._state.volume_use, self.ranked, driver, places)
            self._volumes[driver] = volumes
        detached, missing = volumes.count(self._mask, wanted)
        return detached[positions], missing[positions]

    def volume_changes_on(
        self, position: int, driver: str, wanted: Set[AttachedVolume], now: Iterable[PodInfo]
    ) -> tuple[int, int]:
        """How many more volumes a row has with the pods `now`: attached, and among `wanted`."""
        row, use = int(self._rows[position]), self._state.volume_use
        after = {volume for pod in now for volume in use.volumes_of(pod)}
        before = {v for pod in self.ranked.pods_at(position) for v in use.volumes_of(pod)}
        come = [each for each in after - before if each.driver == driver]
        gone = [each for each in before - after if each.driver == driver]
        attached = sum(not use.is_attached(each, row) for each in come)
        attached -= sum(not use.is_attached(each, row) for each in gone)
        return attached, sum(each in wanted for each in come) - sum(each in wanted for each in gone)

    @cached_property
    def _present_variants(self) -> BoolArray:
        """``bool[variants]``: which variants are on the rows."""
        present: BoolArray = np.zeros(len(self._state.ranked.variants.values), dtype=np.bool_)
        present[self.ranked.variants] = True
        return present
