"""What changed since somebody last looked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

import numpy as np

from stowage.state.arrays import Int64Array, read_only

_NO_ROWS: Int64Array = read_only(np.empty(0, dtype=np.int64))


Item = TypeVar("Item")


class Log(Generic[Item]):
    """A bounded list of what changed; readers remember the generation they have seen.

    Args:
        limit: At least this many of the latest changes are kept. A reader that fell further
            behind is told to take everything, which by then costs it no more.
    """

    __slots__ = ("_forgotten", "_items", "_limit")

    def __init__(self, limit: int = 4096) -> None:
        self._limit = limit
        self._items: list[Item] = []
        self._forgotten = 0

    @property
    def generation(self) -> int:
        """How many changes have been recorded in all."""
        return self._forgotten + len(self._items)

    def record(self, item: Item) -> None:
        """Note that `item` changed."""
        items = self._items
        items.append(item)
        if len(items) >= 2 * self._limit:
            del items[: self._limit]
            self._forgotten += self._limit

    def tail(self, generation: int) -> Sequence[Item] | None:
        """What was recorded after `generation`, oldest first; None if that is too long ago."""
        start = generation - self._forgotten
        return None if start < 0 else self._items[start:]


class ChangeLog(Log[int]):
    """Which rows changed."""

    __slots__ = ("_asked",)

    def __init__(self, limit: int = 4096) -> None:
        super().__init__(limit)
        # Filter and Score ask the same in one cycle: (since, until, answer).
        self._asked: tuple[int, int, Int64Array] = (0, 0, _NO_ROWS)

    def since(self, generation: int) -> Int64Array | None:
        """The rows changed after `generation`, each once and ascending.

        None if that is too long ago to tell: every row may have changed.
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
