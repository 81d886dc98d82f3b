"""Which pods have to go from each of many nodes so that a pod fits there."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from scheduler.framework import Candidate
from scheduler.framework.preemption import RowTrial
from scheduler.framework.verdict import BoolArray, Int64Array
from scheduler.plugins.default_preemption.budgets import violating_pods

NO_VICTIMS = "No preemption victims found for incoming pod"


@dataclass(frozen=True, slots=True)
class VictimsByNode:
    """The candidates among some rows.

    Attributes:
        trial: Of the rows, in the order in which they were given.
        positions: Ascending positions of the candidates in it.
        victims: ``bool[rows, slots]``, who has to go.
        num_violations: ``int64[rows]``, of how many a budget forbids it.
        reasons: Why the other rows are none, with the number of rows.
        needless: Names of the nodes where the pod fits with all victims put back.
    """

    trial: RowTrial
    positions: Int64Array
    victims: BoolArray
    num_violations: Int64Array
    reasons: Counter[str]
    needless: tuple[str, ...]

    def candidate(self, position: int) -> Candidate:
        """The candidate at one of `positions`."""
        what_if = self.trial.what_if
        pods = what_if.ranked.pods[position]
        slots = np.flatnonzero(self.victims[position]).tolist()
        return Candidate(
            what_if.snapshot.node_names[int(what_if.rows[position])],
            tuple(pods[slot] for slot in slots),
            int(self.num_violations[position]),
        )


def select_victims(trial: RowTrial, priority: int) -> VictimsByNode:
    """Find on every row the least that has to go (``SelectVictimsOnNode`` of v1.36).

    All pods of lower priority go; then each is put back if the pod fits all the same, those first
    whose eviction would violate a budget, otherwise the most important first. The k-th pods of
    all rows are tried at once.

    Args:
        trial: The rows, which are left without their victims.
        priority: The preemptor's.
    """
    what_if = trial.what_if
    ranked = what_if.ranked
    potential: BoolArray = ranked.present & (ranked.priority < priority)
    what_if.remove(potential)
    has_victims = potential.any(axis=1)
    positions = np.flatnonzero(has_victims)
    judged = trial.judge(positions)
    reasons = judged.count_reasons()
    without = len(what_if) - len(positions)
    if without:
        reasons[NO_VICTIMS] += without
    positions = positions[judged.fits]
    violating = violating_pods(what_if, potential)
    num_violations = _reprieve(trial, positions, potential, violating)
    victims = what_if.removed
    in_vain = ~victims[positions].any(axis=1)
    names = what_if.snapshot.node_names
    needless = tuple(names[row] for row in what_if.rows[positions[in_vain]].tolist())
    return VictimsByNode(trial, positions[~in_vain], victims, num_violations, reasons, needless)


def _reprieve(
    trial: RowTrial, positions: Int64Array, potential: BoolArray, violating: BoolArray | None
) -> Int64Array:
    """Put back who can stay; ``int64[rows]`` of the budget violations that remain."""
    what_if = trial.what_if
    num_violations = np.zeros(len(what_if), dtype=np.int64)
    # Potential victims before all others; who violates a budget first of all. Otherwise by rank.
    turn = np.where(potential[positions], 1, 2)
    if violating is not None:
        turn[violating[positions]] = 0
    order = np.argsort(turn, axis=1, kind="stable")
    lengths = potential[positions].sum(axis=1)
    for k in range(int(lengths.max(initial=0))):
        trying = lengths > k
        tried, slots = positions[trying], order[trying, k]
        what_if.put_back(tried, slots)
        lost = ~trial.fits(tried)
        tried, slots = tried[lost], slots[lost]
        what_if.take_off_again(tried, slots)
        if violating is not None:
            num_violations[tried] += violating[tried, slots]
    return num_violations
