"""Change logs: readers ask what changed since a generation they remember."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

import numpy as np

from stowage.state.arrays import Int64Array, read_only

_NO_ROWS: Int64Array = read_only(np.empty(0, dtype=np.int64))


Item = TypeVar("Item")


class Log(Generic[Item]):
    """A bounded list of changes; each reader remembers the generation up to which it has read.

    Args:
        limit: At least this many of the latest changes are kept. A reader that is further behind
            reads everything instead, which costs no more than so many changes.
    """

    __slots__ = ("_forgotten", "_items", "_limit")

    def __init__(self, limit: int = 4096) -> None:
        self._limit = limit
        self._items: list[Item] = []
        self._forgotten = 0

    @property
    def generation(self) -> int:
        """Total number of recorded changes."""
        return self._forgotten + len(self._items)

    def record(self, item: Item) -> None:
        """Record that `item` changed."""
        items = self._items
        items.append(item)
        if len(items) >= 2 * self._limit:
            del items[: self._limit]
            self._forgotten += self._limit

    def forget(self) -> None:
        """Drop all changes: every reader reads everything."""
        self._forgotten = self.generation + 1
        self._items.clear()

    def num_since(self, generation: int) -> int | None:
        """Number of changes after `generation`; None if some were dropped."""
        return None if generation < self._forgotten else self.generation - generation

    def tail(self, generation: int) -> Sequence[Item] | None:
        """The changes after `generation`, oldest first; None if some were dropped."""
        start = generation - self._forgotten
        return None if start < 0 else self._items[start:]


class ChangeLog(Log[int]):
    """A log of changed rows."""

    __slots__ = ("_asked",)

    def __init__(self, limit: int = 4096) -> None:
        super().__init__(limit)
        # Filter and Score ask the same in one cycle: (since, until, answer).
        self._asked: tuple[int, int, Int64Array] = (0, 0, _NO_ROWS)

    def since(self, generation: int) -> Int64Array | None:
        """The rows changed after `generation`, each once and ascending.

        None if some changes were dropped: every row may have changed.
        """
        if generation < self._forgotten:
            return None
        until = self.generation
        if self._asked[:2] == (generation, until):
            return self._asked[2]
        changed = self.tail(generation)
        rows = _NO_ROWS
        if changed:
            ascending = changed if len(changed) == 1 else sorted(set(changed))
            rows = read_only(np.array(ascending, dtype=np.int64))
        self._asked = (generation, until, rows)
        return rows
