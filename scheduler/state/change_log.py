"""Which rows changed since somebody last looked."""

from __future__ import annotations

import numpy as np

from scheduler.state.arrays import Int64Array, read_only

_NO_ROWS: Int64Array = read_only(np.empty(0, dtype=np.int64))


class ChangeLog:
    """A bounded list of changed rows; readers remember the generation they have seen.

    Args:
        limit: At least this many of the latest changes are kept. A reader that fell further
            behind is told to take all rows, which by then costs it no more.
    """

    __slots__ = ("_asked", "_forgotten", "_limit", "_rows")

    def __init__(self, limit: int = 4096) -> None:
        self._limit = limit
        self._rows: list[int] = []
        self._forgotten = 0
        # Filter and Score ask the same in one cycle: (since, until, answer).
        self._asked: tuple[int, int, Int64Array] = (0, 0, _NO_ROWS)

    @property
    def generation(self) -> int:
        """How many changes have been recorded in all."""
        return self._forgotten + len(self._rows)

    def record(self, row: int) -> None:
        """Note that `row` changed."""
        rows = self._rows
        rows.append(row)
        if len(rows) >= 2 * self._limit:
            del rows[: self._limit]
            self._forgotten += self._limit

    def since(self, generation: int) -> Int64Array | None:
        """The rows changed after `generation`, each once and ascending.

        None if that is too long ago to tell: every row may have changed.
        """
        start = generation - self._forgotten
        if start < 0:
            return None
        until = self.generation
        if self._asked[:2] == (generation, until):
            return self._asked[2]
        changed = self._rows[start:]
        rows = _NO_ROWS
        if changed:
            rows = read_only(np.array(sorted(set(changed)), dtype=np.int64))
        self._asked = (generation, until, rows)
        return rows
