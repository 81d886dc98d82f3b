"""Breaking ties between equally good nodes, with a record of every tie."""

from __future__ import annotations

from collections.abc import Callable


class TieBreaker:
    """Picks one of several equal candidates.

    Args:
        choose: ``choose(n)`` returns an index below n; the caller owns the randomness.

    Attributes:
        sizes: The number of candidates of each tie since `clear`, in order.
        choices: The index picked in each draw.
    """

    __slots__ = ("_choose", "choices", "sizes")

    def __init__(self, choose: Callable[[int], int]) -> None:
        self._choose = choose
        self.sizes: list[int] = []
        self.choices: list[int] = []

    def __call__(self, num_candidates: int) -> int:
        """Pick one of `num_candidates`."""
        choice = self._choose(num_candidates)
        self.sizes.append(num_candidates)
        self.choices.append(choice)
        return choice

    def note(self, num_candidates: int) -> None:
        """Record a tie that is broken without a draw, by what was decided before."""
        self.sizes.append(num_candidates)

    def clear(self) -> None:
        """Drop the record."""
        self.sizes.clear()
        self.choices.clear()
