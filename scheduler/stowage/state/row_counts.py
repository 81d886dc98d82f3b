"""Counts per key and row, for keys that few rows have."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from types import MappingProxyType
from typing import Generic, TypeVar

import numpy as np

from stowage.state.arrays import Int64Array

K = TypeVar("K", bound=Hashable)
_NOWHERE: Mapping[int, int] = MappingProxyType({})


class RowCounts(Generic[K]):
    """Key -> row -> count; a key without counts takes no memory.

    Args:
        base: The counts of which this is a changed copy; unchanged keys are shared.
    """

    __slots__ = ("_base", "_rows")

    def __init__(self, base: RowCounts[K] | None = None) -> None:
        self._base = base
        self._rows: dict[K, dict[int, int]] = {}

    def at(self, key: K) -> Mapping[int, int]:
        """Row -> count, without zeros."""
        own = self._rows.get(key)
        if own is not None:
            return own
        return _NOWHERE if self._base is None else self._base.at(key)

    def rows(self, key: K) -> Int64Array:
        """``int64[]``: the rows where the count is not zero, in no order."""
        found = self.at(key)
        return np.fromiter(found, dtype=np.int64, count=len(found))

    def add(self, key: K, row: int, amount: int) -> int:
        """Add to a count; returns the new count."""
        own = self._rows.get(key)
        if own is None:
            own = self._rows[key] = {} if self._base is None else dict(self._base.at(key))
        count = own.get(row, 0) + amount
        if count:
            own[row] = count
        else:
            own.pop(row, None)
            if not own and self._base is None:
                del self._rows[key]
        return count

    def take(self, key: K) -> Mapping[int, int]:
        """Remove a key; returns its counts by row. Not for a changed copy."""
        return self._rows.pop(key, _NOWHERE)

    def __iter__(self) -> Iterator[K]:
        return iter(self._rows)
