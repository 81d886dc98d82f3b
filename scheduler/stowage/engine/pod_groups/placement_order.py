"""Which placements of a pod group are tried, the most promising first."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from stowage.framework import Outlook
from stowage.framework.verdict import Int64Array

EQUALS_TRIED = 16
"""How many placements that take as many members as any can are tried for those that break ties."""


class PlacementOrder:
    """The placements in the order in which a group is tried in them, as far as it has to be.

    kube-scheduler tries a group in each placement, and takes the one with the highest score. Here

    - a placement that has no room for enough members is not tried, unless all are like that: then
      the one with most room is, to say what is missing there;
    - when a placement took as many members as any can, its score is what the outlook said, and
      those whose highest score is lower are not tried. Of those with an equal one, a few are tried
      if a plugin chooses among them, one for all that are alike.

    Args:
        outlook: What is known about the placements; None if all have to be tried.
        num_placements: Their number, at least 1.
        draw: ``draw(n)`` returns an index below n.
        breaks_ties: Whether a plugin chooses among equally good placements.

    Attributes:
        ruled_out_by: The plugins because of which placements are not tried, though no other may be
            feasible.
    """

    def __init__(
        self,
        outlook: Outlook | None,
        num_placements: int,
        draw: Callable[[int], int],
        *,
        breaks_ties: bool,
    ) -> None:
        self._outlook = outlook
        self._draw = draw
        self._breaks_ties = breaks_ties
        self._num_full = 0
        self._tied: list[int] = []
        self.ruled_out_by: frozenset[str] = frozenset()
        if outlook is None:
            self._later = [list(range(num_placements))]
            return
        hopeful = np.flatnonzero(outlook.most >= outlook.least)
        if len(hopeful) < num_placements:
            self.ruled_out_by = outlook.known_by
        if not len(hopeful):
            hopeful = np.array([outlook.most.argmax()])
        self._later = _by_highest(outlook, hopeful)

    def take(self) -> int | None:
        """The placement to try next; None if no other can be better."""
        if not self._tied and self._later:
            self._tied = self._later.pop()
        return self._tied.pop(self._position()) if self._tied else None

    def note_feasible(self, index: int, num_placed: int) -> None:
        """Note that the group fits into a placement, with so many members."""
        outlook = self._outlook
        if outlook is None or num_placed < outlook.most.max():
            return
        self._num_full += 1
        self._later.clear()
        if self._breaks_ties and self._num_full < EQUALS_TRIED:
            likeness = outlook.likeness
            self._tied = [each for each in self._tied if likeness[each] != likeness[index]]
        else:
            self._tied.clear()

    def _position(self) -> int:
        """The one to take of those that are tied; without a choice to make, the first."""
        num_tied = len(self._tied)
        takes_all = self._outlook is None or (self._breaks_ties and num_tied <= EQUALS_TRIED)
        return 0 if num_tied == 1 or takes_all else self._draw(num_tied)


def _by_highest(outlook: Outlook, placements: Int64Array) -> list[list[int]]:
    """Some placements, those with equal highest scores together; the best come last."""
    order = placements[np.argsort(outlook.highest[placements], kind="stable")]
    begins = np.flatnonzero(np.diff(outlook.highest[order])) + 1
    return [each.tolist() for each in np.split(order, begins)]
