"""Which candidate is best: the one that costs least."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stowage.framework import Candidate
from stowage.framework.verdict import BoolArray, Int64Array
from stowage.plugins.default_preemption.victims import VictimsByNode
from stowage.state.pods.pod_info import PodInfo
from stowage.state.pods.ranked_pods import started_at

#: Makes every priority positive, so that more victims never cost less.
_PRIORITY_SHIFT = 2**31


def costs(found: VictimsByNode) -> Int64Array:
    """``int64[candidates, 5]``, to be compared from left to right (``pickOneNodeForPreemption``).

    Budget violations; priority of the most important victim; sum of the priorities, each shifted
    to be positive; number of victims; and the later its most important victim started (of several
    of that priority the earliest), the cheaper.
    """
    ranked = found.trial.what_if.ranked
    victims = found.victims[found.positions]
    first = victims.argmax(axis=1)
    priority = ranked.priority[found.positions]
    shifted = np.where(victims, priority + _PRIORITY_SHIFT, 0)
    return np.column_stack(
        (
            found.num_violations[found.positions],
            ranked.priority[found.positions, first],
            shifted.sum(axis=1),
            victims.sum(axis=1),
            -ranked.start[found.positions, first],
        )
    )


def costs_of(candidates: Sequence[Candidate]) -> Int64Array:
    """The same for candidates with victims that extenders chose, in whatever order."""
    return np.array([_cost(each) for each in candidates], dtype=np.int64).reshape(-1, 5)


def cheapest(cost: Int64Array) -> BoolArray:
    """``bool[candidates]``: those that cost least; several may."""
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
    """When the first of the most important pods started."""
    highest = max(pod.priority for pod in pods)
    return min(started_at(pod) for pod in pods if pod.priority == highest)
