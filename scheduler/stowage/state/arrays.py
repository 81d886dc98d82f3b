"""Array types of the state, and functions that grow and protect arrays."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

BoolArray: TypeAlias = NDArray[np.bool_]
Int32Array: TypeAlias = NDArray[np.int32]
Int64Array: TypeAlias = NDArray[np.int64]

ArrayT = TypeVar("ArrayT", bound=NDArray[Any])

_ROUND_TO = 64
#: From so many runs on, gathering single rows is as fast.
FEW_RUNS = 32
_NO_ROWS: Int64Array = np.empty(0, dtype=np.int64)


def grown_capacity(capacity: int, needed: int = 1) -> int:
    """The next capacity: a quarter more, at least `needed`, a multiple of 64."""
    wanted = max(needed, capacity + capacity // 4)
    return -(-wanted // _ROUND_TO) * _ROUND_TO


def extended(array: ArrayT, length: int, fill: int | bool = 0) -> ArrayT:
    """A copy with `length` entries along the first axis, the new ones set to `fill`."""
    order: Any = "F" if array.ndim > 1 else "C"
    longer = np.full((length, *array.shape[1:]), fill, dtype=array.dtype, order=order)
    longer[: len(array)] = array
    return longer  # type: ignore[return-value]  # of the dtype of `array`


def read_only(array: ArrayT) -> ArrayT:
    """A read-only view of the same memory."""
    view = array.view()
    view.flags.writeable = False
    return view


class Rows(NamedTuple):
    """Ascending row numbers.

    Attributes:
        numbers: ``int64[]``.
        runs: The runs of consecutive numbers, if they are few: copying these takes a fraction of
            the time of gathering the entries of each row.
    """

    numbers: Int64Array
    runs: tuple[slice, ...] | None = None

    @classmethod
    def where(cls, mask: BoolArray) -> Rows:
        """The rows for which a mask is true.

        Examples:
            >>> rows = Rows.where(np.array([True, True, False, True]))
            >>> rows.numbers.tolist(), rows.runs
            ([0, 1, 3], (slice(0, 2, None), slice(3, 4, None)))
        """
        differs = mask[1:] != mask[:-1]
        if np.count_nonzero(differs) > 2 * FEW_RUNS:
            return cls(mask.nonzero()[0])
        bounds = (differs.nonzero()[0] + 1).tolist()
        if mask[:1].any():
            bounds.insert(0, 0)
        if len(bounds) % 2:
            bounds.append(len(mask))
        starts, stops = bounds[::2], bounds[1::2]
        runs = tuple(map(slice, starts, stops))
        numbers = [np.arange(*ends) for ends in zip(starts, stops, strict=True)]
        if len(numbers) == 1:
            return cls(numbers[0], runs)
        return cls(np.concatenate([_NO_ROWS, *numbers]), runs)


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
