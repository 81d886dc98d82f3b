"""Array types of the state, and functions that grow and protect arrays."""

from __future__ import annotations

from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

BoolArray: TypeAlias = NDArray[np.bool_]
Int32Array: TypeAlias = NDArray[np.int32]
Int64Array: TypeAlias = NDArray[np.int64]

ArrayT = TypeVar("ArrayT", bound=NDArray[Any])

_ROUND_TO = 64


def grown_capacity(capacity: int, needed: int) -> int:
    """The next capacity: a quarter more, at least `needed`, a multiple of 64."""
    wanted = max(needed, capacity + capacity // 4)
    return -(-wanted // _ROUND_TO) * _ROUND_TO


def extended(array: ArrayT, length: int, fill: int | bool = 0) -> ArrayT:
    """A copy with `length` entries along the first axis, the new ones set to `fill`."""
    order: Any = "F" if array.ndim > 1 else "C"
    longer = np.full((length, *array.shape[1:]), fill, dtype=array.dtype, order=order)
    longer[: len(array)] = array
    return longer  # type: ignore[return-value]


def read_only(array: ArrayT) -> ArrayT:
    """A read-only view of the same memory."""
    view = array.view()
    view.flags.writeable = False
    return view


def add_wrapping(cells: memoryview, index: int, amount: int) -> None:
    """Add to one int64 of a buffer; a sum beyond int64 wraps, as it does in kube-scheduler.

    Changing one element is much faster through the buffer than through the array.
    """
    try:
        cells[index] += amount
    except ValueError:
        cells[index] = wrapped_int64(cells[index] + amount)


def wrapped_int64(value: int) -> int:
    """The int64 that has the same low 64 bits."""
    return (value + 2**63) % 2**64 - 2**63
