"""How many pods of which label group are on which row, as columns that are kept up to date."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stowage.state.arrays import Int64Array, extended, grown_capacity


class PlacementColumns(NamedTuple):
    """Label groups and rows with pods, one entry a pair; entries that are not in use have no pods.

    Attributes:
        slots: ``int64[entries]``, the slots of the groups.
        rows: ``int64[entries]``, the rows.
        numbers: ``int64[entries]``, the numbers of pods.
    """

    slots: Int64Array
    rows: Int64Array
    numbers: Int64Array


class GroupPlacements:
    """The entries of all label groups; a group knows its own by their rows."""

    __slots__ = ("_cells", "_columns", "_free", "_num_entries")

    def __init__(self) -> None:
        self._num_entries = 0
        self._free: list[int] = []
        self._set(PlacementColumns(*(np.zeros(0, dtype=np.int64) for _ in range(3))))

    @property
    def columns(self) -> PlacementColumns:
        """All entries; they change with the pods."""
        return PlacementColumns(*(column[: self._num_entries] for column in self._columns))

    def number(self, entry: int) -> int:
        """The number of pods of an entry."""
        return self._cells[2][entry]

    def add(self, slot: int, row: int) -> int:
        """Make an entry for the first pod of a group on a row."""
        entry = self._free.pop() if self._free else self._new_entry()
        slots, rows, numbers = self._cells
        slots[entry], rows[entry], numbers[entry] = slot, row, 1
        return entry

    def change(self, entry: int, delta: int) -> int:
        """Add pods to an entry, or take them away; return how many are left.

        An entry without pods is free.
        """
        numbers = self._cells[2]
        numbers[entry] = left = numbers[entry] + delta
        if not left:
            self._free.append(entry)
        return left

    def _new_entry(self) -> int:
        entry = self._num_entries
        if entry == len(self._columns.rows):
            capacity = grown_capacity(entry)
            self._set(PlacementColumns(*(extended(each, capacity) for each in self._columns)))
        self._num_entries = entry + 1
        return entry

    def _set(self, columns: PlacementColumns) -> None:
        self._columns = columns
        # Changing one element is much faster through the buffer.
        self._cells: tuple[memoryview[int], ...] = tuple(column.data for column in columns)
