"""The pods on some rows as flat arrays, the most important pod of each row first."""

from __future__ import annotations

import msgspec
import numpy as np

from stowage.state.arrays import BoolArray, Int64Array
from stowage.state.pods.pod_info import PodInfo


class RankedRows(msgspec.Struct, frozen=True):
    """The pods on some rows, the most important of each row first.

    The arrays over pods have one slot for each pod: first those of the first row, then those of the
    second. So a row with many pods costs the other rows nothing.

    Attributes:
        pods: The pods of all rows of the cluster; see `pods_at`.
        rows: ``int64[rows]``, the row numbers.
        ends: ``int64[rows + 1]``: row ``i`` has the slots from ``ends[i]`` to ``ends[i + 1]``.
        positions: ``int64[slots]``, the place in `rows` of the row of each pod.
        variants: ``int64[slots]``, codes of `PodVariants`.
        priority: ``int64[slots]``.
        start: ``int64[slots]``, ``YYYYmmddHHMMSS`` as a number, or `NOT_STARTED`.
    """

    pods: list[tuple[PodInfo, ...]]
    rows: Int64Array
    ends: Int64Array
    positions: Int64Array
    variants: Int64Array
    priority: Int64Array
    start: Int64Array

    @property
    def num_slots(self) -> int:
        """Number of pods on the rows."""
        return len(self.variants)

    def pods_at(self, position: int) -> tuple[PodInfo, ...]:
        """The pods on the row at `position`."""
        return self.pods[int(self.rows[position])]

    def slots_at(self, position: int) -> slice:
        """The slots of the row at `position`."""
        return slice(int(self.ends[position]), int(self.ends[position + 1]))

    def pod_in(self, slot: int) -> PodInfo:
        """The pod in a slot."""
        position = int(self.positions[slot])
        return self.pods_at(position)[slot - int(self.ends[position])]

    def count(self, chosen: BoolArray) -> Int64Array:
        """``int64[rows]``: how many pods of ``bool[slots]`` each row has."""
        return np.bincount(self.positions[chosen], minlength=len(self.rows))

    def count_so_far(self, chosen: BoolArray) -> Int64Array:
        """``int64[slots]``: how many pods of ``bool[slots]`` a row has up to and with this one."""
        counts: Int64Array = np.zeros(self.num_slots + 1, dtype=np.int64)
        chosen.cumsum(out=counts[1:])
        return counts[1:] - counts[self.ends[:-1]][self.positions]

    def total(self, values: Int64Array) -> Int64Array:
        """``int64[rows]``: the sum of ``int64[slots]`` over the pods of each row."""
        totals: Int64Array = np.zeros(len(self.rows), dtype=np.int64)
        starts = self.ends[:-1]
        occupied = starts < self.ends[1:]
        totals[occupied] = np.add.reduceat(values, starts[occupied])
        return totals

    def slots_of(self, chosen: BoolArray, positions: Int64Array) -> tuple[Int64Array, Int64Array]:
        """The slots of some pods on some rows, and how many of them each row has.

        Args:
            chosen: ``bool[slots]``, the pods.
            positions: Ascending positions of the rows.

        Returns:
            ``int64[]``, ascending, and ``int64[positions]``.
        """
        asked: BoolArray = np.zeros(len(self.rows), dtype=np.bool_)
        asked[positions] = True
        slots = np.flatnonzero(chosen & asked[self.positions])
        counts = np.bincount(self.positions[slots], minlength=len(self.rows))
        return slots, counts[positions]
