"""Matrices of amounts by node and resource, in which most columns of a wide one stay untouched.

A cluster has a handful of resources. A node may still name thousands of its own, and each gets a
column over all nodes. Memory of such a column is taken when it is first written to, and copies
leave out the columns that hold nothing.
"""

from __future__ import annotations

import mmap
import sys
from collections.abc import Iterable
from contextlib import suppress

import numpy as np

from stowage.state.arrays import Int64Array, grown_capacity

#: Matrices up to this size are as usual: copied whole, and as wide as there are resources.
MAX_DENSE_BYTES = 2**22
_CELL_BYTES = 8


def is_dense(rows: int, columns: int) -> bool:
    """Whether a matrix is small enough to be copied whole."""
    return rows * columns * _CELL_BYTES < MAX_DENSE_BYTES


def zero_amounts(rows: int, columns: int) -> Int64Array:
    """``int64[rows, columns]`` of zeros; columns, not rows, are contiguous.

    Plugins read one resource of all nodes.

    Raises:
        MemoryError: There is too little memory.
    """
    if is_dense(rows, columns):
        return np.zeros((rows, columns), dtype=np.int64, order="F")
    try:
        # A mapping of its own, since numpy asks for huge pages: writing one cell of each column
        # would fill the whole matrix.
        memory = mmap.mmap(-1, rows * columns * _CELL_BYTES, flags=_PRIVATE)
    except OSError as error:
        raise MemoryError(f"{rows} x {columns} amounts: {error}") from error
    if sys.platform == "linux":
        with suppress(OSError):  # a kernel without huge pages
            memory.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(memory, dtype=np.int64).reshape((rows, columns), order="F")


def column_capacity(rows: int, columns: int) -> int:
    """How many columns to provide for so many resources: more than that in a wide matrix."""
    return columns if is_dense(rows, columns) else grown_capacity(columns, columns)


def copied_amounts(
    source: Int64Array, rows: int, columns: int, filled: Iterable[int]
) -> Int64Array:
    """A copy with this number of rows and columns, which must not be fewer.

    Args:
        source: The matrix.
        rows: Rows of the copy.
        columns: Columns of the copy.
        filled: The columns of a wide matrix to copy; the others are zero in the copy.
    """
    copy = zero_amounts(rows, columns)
    if is_dense(*source.shape):
        copy[: source.shape[0], : source.shape[1]] = source
        return copy
    for column in filled:
        copy[: source.shape[0], column] = source[:, column]
    return copy


_PRIVATE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
