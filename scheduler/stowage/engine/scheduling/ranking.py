"""Picking one of the feasible nodes."""

from __future__ import annotations

from collections.abc import Callable

from stowage.framework import ScoreResult


def pick_node(scores: ScoreResult, choose: Callable[[int], int]) -> int:
    """The row of a node with the highest total.

    Args:
        scores: Of at least one node.
        choose: Given the number of tied nodes, which of them to take; only asked in a tie.
    """
    total = scores.total
    tied = (total == total[total.argmax()]).nonzero()[0]
    return int(scores.rows[tied[choose(len(tied)) if len(tied) > 1 else 0]])
