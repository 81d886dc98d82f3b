"""Time limits within a call of the engine, with a record of the checks that found one passed.

Whether a limit has passed depends on how fast the machine is, so a replay repeats the record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial


class TimeLimits:
    """Starts time limits, and numbers the checks of all of them.

    Args:
        timer: A clock, in seconds.

    Attributes:
        passed: The numbers of the checks since `clear` that found a limit passed, ascending.
    """

    def __init__(self, timer: Callable[[], float]) -> None:
        self.passed: list[int] = []
        self._timer = timer
        self._num_checks = 0
        self._repeated: frozenset[int] | None = None

    def start(self, limit_s: float) -> Callable[[], bool]:
        """Start a limit; the result says whether it has passed."""
        return partial(self._check, self._timer() + limit_s)

    def repeat(self, passed: Iterable[int]) -> None:
        """From now on find a limit passed at these checks and no others, whatever the time."""
        self._repeated = frozenset(passed)
        self._num_checks = 0
        self.passed.clear()

    def clear(self) -> None:
        """Begin a new record, unless a recorded one is being repeated."""
        if self._repeated is None:
            self._num_checks = 0
            self.passed.clear()

    def _check(self, deadline: float) -> bool:
        number, self._num_checks = self._num_checks, self._num_checks + 1
        if self._repeated is None:
            has_passed = self._timer() > deadline
        else:
            has_passed = number in self._repeated
        if has_passed:
            self.passed.append(number)
        return has_passed
