"""A column of numbers of which few rows have any."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from stowage.state.arrays import Int64Array

FEW = 8
"""Up to so many rows are few however many there are."""
_SHARE = 64


class SparseColumn:
    """Row -> number, without zeros; an array takes its place once many rows have a number.

    Attributes:
        counts: The numbers that are not zero.
    """

    __slots__ = ("counts",)

    def __init__(self, counts: Mapping[int, int] = {}) -> None:
        self.counts = dict(counts)

    def add(self, row: int, delta: int) -> None:
        """Add to the number of a row."""
        count = self.counts.get(row, 0) + delta
        if count:
            self.counts[row] = count
        else:
            self.counts.pop(row, None)

    def is_dense(self, num_rows: int) -> bool:
        """Whether so many rows have a number that an array is worth its memory."""
        count = len(self.counts)
        return count > FEW and count > num_rows // _SHARE

    def to_array(self, num_rows: int) -> Int64Array:
        """``int64[rows]``."""
        column = np.zeros(num_rows, dtype=np.int64)
        column[list(self.counts)] = list(self.counts.values())
        return column
