"""Which pods have to go from each of many nodes so that a pod fits there."""

from __future__ import annotations

from collections import Counter

import msgspec
import numpy as np

from stowage.framework import Candidate
from stowage.framework.preemption import Judgement, RowTrial
from stowage.framework.verdict import BoolArray, Int64Array
from stowage.plugins.default_preemption.budgets import violating_pods

NO_VICTIMS = "No preemption victims found for incoming pod"


class Stripped(msgspec.Struct, frozen=True):
    """Some rows without any pod that may have to go.

    Attributes:
        trial: Of the rows, in the order in which they were given.
        potential: ``bool[rows, slots]``, who is gone.
        positions: Ascending positions of the rows in it that the pod fits on.
        judgement: Of the rows that have potential victims.
    """

    trial: RowTrial
    potential: BoolArray
    positions: Int64Array
    judgement: Judgement

    def count_reasons(self) -> tuple[Counter[str], set[str]]:
        """Why it fits on no other row, with the number of rows, and the plugins that say so."""
        reasons, plugins = self.judgement.count_reasons()
        without = len(self.potential) - len(self.judgement.fits)
        if without:
            reasons[NO_VICTIMS] += without
        return reasons, plugins


class VictimsByNode(msgspec.Struct, frozen=True):
    """The candidates among some rows.

    Attributes:
        trial: Of the rows, in the order in which they were given.
        positions: Ascending positions of the candidates in it.
        victims: ``bool[rows, slots]``, who has to go.
        num_violations: ``int64[rows]``, of how many a budget forbids it.
        needless: Names of the nodes where the pod fits with all victims put back.
    """

    trial: RowTrial
    positions: Int64Array
    victims: BoolArray
    num_violations: Int64Array
    needless: tuple[str, ...]

    def node_names(self) -> list[str]:
        """The nodes at `positions`."""
        what_if = self.trial.what_if
        names = what_if.snapshot.node_names
        return [names[row] for row in what_if.rows[self.positions].tolist()]

    def candidate(self, position: int) -> Candidate:
        """The candidate at one of `positions`; as long as the snapshot is current."""
        what_if = self.trial.what_if
        pods = what_if.ranked.pods_at(position)
        slots = np.flatnonzero(self.victims[position]).tolist()
        return Candidate(
            what_if.snapshot.node_names[int(what_if.rows[position])],
            tuple(pods[slot] for slot in slots),
            int(self.num_violations[position]),
        )


def strip(trial: RowTrial, priority: int) -> Stripped:
    """Take all pods of less than `priority` off every row and see where the pod fits then."""
    what_if = trial.what_if
    ranked = what_if.ranked
    potential: BoolArray = ranked.present & (ranked.priority < priority)
    what_if.remove(potential)
    positions = np.flatnonzero(potential.any(axis=1))
    judgement = trial.judge(positions)
    return Stripped(trial, potential, positions[judgement.fits], judgement)


def select_victims(stripped: Stripped) -> VictimsByNode:
    """Find on every row the least that has to go (``SelectVictimsOnNode`` of v1.36).

    Of those who are gone each is put back if the pod fits all the same, those first whose eviction
    would violate a budget, otherwise the most important first. The k-th pods of all rows are tried
    at once. The rows are left without their victims.
    """
    what_if, positions = stripped.trial.what_if, stripped.positions
    violating = violating_pods(what_if, stripped.potential)
    num_violations = _reprieve(stripped.trial, positions, stripped.potential, violating)
    victims = what_if.removed
    in_vain = ~victims[positions].any(axis=1)
    names = what_if.snapshot.node_names
    needless = tuple(names[row] for row in what_if.rows[positions[in_vain]].tolist())
    return VictimsByNode(stripped.trial, positions[~in_vain], victims, num_violations, needless)


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
        what_if.remove_again(tried, slots)
        if violating is not None:
            num_violations[tried] += violating[tried, slots]
    return num_violations
