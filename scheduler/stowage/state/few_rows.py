"""Numbers by row, where few rows have any."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from stowage.state.arrays import Int64Array

_FEW = 8
_SHARE = 64


class FewRows:
    """Row -> number, zeros left out; once there are many it is better off as a column.

    Attributes:
        counts: The numbers.
    """

    __slots__ = ("counts",)

    def __init__(self, counts: Mapping[int, int] = {}) -> None:
        self.counts = dict(counts)

    def add(self, row: int, delta: int) -> None:
        """Change a row's number."""
        count = self.counts.get(row, 0) + delta
        if count:
            self.counts[row] = count
        else:
            self.counts.pop(row, None)

    def are_many(self, num_rows: int) -> bool:
        """Whether a column of all rows would be worth its memory."""
        return len(self.counts) > max(_FEW, num_rows // _SHARE)

    def spread_out(self, num_rows: int) -> Int64Array:
        """``int64[rows]``."""
        column = np.zeros(num_rows, dtype=np.int64)
        column[list(self.counts)] = list(self.counts.values())
        return column
