"""Picking one of the feasible nodes."""

from __future__ import annotations

from collections.abc import Callable

from scheduler.framework import ScoreResult
from scheduler.framework.verdict import Int64Array


def best_rows(scores: ScoreResult) -> Int64Array:
    """The rows with the highest total, ascending."""
    tied: Int64Array = scores.rows[(scores.total == scores.total.max()).nonzero()[0]]
    return tied


def pick_node(scores: ScoreResult, choose: Callable[[int], int]) -> int:
    """The row of a node with the highest total.

    Args:
        scores: Of at least one node.
        choose: Given the number of tied nodes, which of them to take; only asked in a tie.
    """
    best = best_rows(scores)
    return int(best[choose(len(best)) if len(best) > 1 else 0])
