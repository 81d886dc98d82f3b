"""Ranks candidate nodes by the cost of their victims."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stowage.framework import Candidate
from stowage.framework.verdict import BoolArray, Int64Array
from stowage.plugins.default_preemption.victims import VictimsByNode
from stowage.state.pods.pod_info import PodInfo
from stowage.state.pods.ranked_pods import started_at

#: Makes every priority positive, so that an additional victim never lowers the sum.
_PRIORITY_SHIFT = 2**31


def costs(found: VictimsByNode) -> Int64Array:
    """``int64[candidates, 5]``, compared from left to right (``pickOneNodeForPreemption``).

    The columns are: number of budget violations; priority of the most important victim; sum of the
    priorities, each shifted to be positive; number of victims; and the negated start time of the
    most important victim (the earliest of several with that priority), so that a later start costs
    less.
    """
    ranked = found.trial.what_if.ranked
    victims, counts = ranked.slots_of(found.victims, found.positions)
    begin = np.cumsum(counts) - counts
    first = victims[begin]
    return np.column_stack(
        (
            found.num_violations[found.positions],
            ranked.priority[first],
            np.add.reduceat(ranked.priority[victims] + _PRIORITY_SHIFT, begin),
            counts,
            -ranked.start[first],
        )
    )


def costs_of(candidates: Sequence[Candidate]) -> Int64Array:
    """`costs` of candidates whose victims extenders chose, in any order."""
    return np.array([_cost(each) for each in candidates], dtype=np.int64).reshape(-1, 5)


def cheapest(cost: Int64Array) -> BoolArray:
    """``bool[candidates]``: those with the lowest cost.

    Examples:
        >>> cheapest(np.array([[0, 5], [0, 3], [1, 0], [0, 3]])).tolist()
        [False, True, False, True]
    """
    least: BoolArray = np.ones(len(cost), dtype=np.bool_)
    for column in cost.T:
        least &= column == column[least].min()
    return least


def _cost(candidate: Candidate) -> tuple[int, int, int, int, int]:
    pods = candidate.victims
    return (
        candidate.num_violations,
        pods[0].priority,
        sum(pod.priority + _PRIORITY_SHIFT for pod in pods),
        len(pods),
        -_earliest_start(pods),
    )


def _earliest_start(pods: Sequence[PodInfo]) -> int:
    """The earliest start time among the pods of the highest priority."""
    highest = max(pod.priority for pod in pods)
    return min(started_at(pod) for pod in pods if pod.priority == highest)
