"""Selects the victims on many nodes at once."""

from __future__ import annotations

from collections import Counter

import msgspec
import numpy as np

from stowage.api.interruptible import Interruptible
from stowage.framework import Candidate
from stowage.framework.runtime.dry_run import Judgement, RowTrial
from stowage.framework.verdict import BoolArray, Int64Array
from stowage.plugins.default_preemption.budgets import violating_pods

ROWS_TRIED_PER_STEP = 25_000
"""So many rows are tried in one step."""
#: A trial takes as long as if it had so many rows more.
_ROWS_OF_A_TRIAL = 100

NO_VICTIMS = "No preemption victims found for incoming pod"


class Stripped(msgspec.Struct, frozen=True):
    """Some rows without their potential victims.

    Attributes:
        trial: The rows, in the order in which they were given.
        potential: ``bool[slots]``, the potential victims.
        positions: Ascending positions in `trial` of the rows that the pod fits.
        judgement: The answers about the rows that have potential victims.
    """

    trial: RowTrial
    potential: BoolArray
    positions: Int64Array
    judgement: Judgement

    def count_reasons(self) -> tuple[Counter[str], set[str]]:
        """Reasons why the pod does not fit the other rows, with row counts, and the plugins."""
        reasons, plugins = self.judgement.count_reasons()
        without = len(self.trial.what_if) - len(self.judgement.fits)
        if without:
            reasons[NO_VICTIMS] += without
        return reasons, plugins


class VictimsByNode(msgspec.Struct, frozen=True):
    """The candidates among some rows.

    Attributes:
        trial: The rows, in the order in which they were given.
        positions: Ascending positions of the candidates in `trial`.
        victims: ``bool[slots]``, the pods to evict.
        num_violations: ``int64[rows]``, number of victims whose eviction violates a budget.
        needless: Names of the nodes that take the pod without any eviction.
    """

    trial: RowTrial
    positions: Int64Array
    victims: BoolArray
    num_violations: Int64Array
    needless: tuple[str, ...]

    def node_names(self) -> list[str]:
        """The names of the nodes at `positions`."""
        what_if = self.trial.what_if
        names = what_if.snapshot.node_names
        return [names[row] for row in what_if.rows[self.positions].tolist()]

    def candidate(self, position: int) -> Candidate:
        """The candidate at one of `positions`; valid while the snapshot is current."""
        what_if = self.trial.what_if
        pods = what_if.ranked.pods_at(position)
        slots = np.flatnonzero(self.victims[what_if.ranked.slots_at(position)]).tolist()
        return Candidate(
            what_if.snapshot.node_names[int(what_if.rows[position])],
            tuple(pods[slot] for slot in slots),
            int(self.num_violations[position]),
        )


def strip(trial: RowTrial, priority: int) -> Stripped:
    """Remove all pods with a priority below `priority` from every row, and filter the rows."""
    what_if = trial.what_if
    ranked = what_if.ranked
    potential: BoolArray = ranked.priority < priority
    what_if.remove(potential)
    positions = np.flatnonzero(ranked.count(potential))
    judgement = trial.judge(positions)
    return Stripped(trial, potential, positions[judgement.fits], judgement)


def select_victims(stripped: Stripped) -> Interruptible[VictimsByNode]:
    """Find the victims on every row, in steps (``SelectVictimsOnNode`` of v1.36).

    Each potential victim is reprieved if the pod fits with it: first those whose eviction would
    violate a budget, then by importance. The k-th pods of all rows are tried in one call. The rows
    are left without their victims.
    """
    what_if, positions = stripped.trial.what_if, stripped.positions
    violating = violating_pods(what_if, stripped.potential)
    num_violations = yield from _reprieve(stripped.trial, positions, stripped.potential, violating)
    victims = what_if.removed
    in_vain = what_if.ranked.count(victims)[positions] == 0
    names = what_if.snapshot.node_names
    needless = tuple(names[row] for row in what_if.rows[positions[in_vain]].tolist())
    return VictimsByNode(stripped.trial, positions[~in_vain], victims, num_violations, needless)


def _reprieve(
    trial: RowTrial, positions: Int64Array, potential: BoolArray, violating: BoolArray | None
) -> Interruptible[Int64Array]:
    """Reprieve pods; returns ``int64[rows]``, the budget violations of the remaining victims."""
    what_if = trial.what_if
    num_violations = np.zeros(len(what_if), dtype=np.int64)
    order, lengths = what_if.ranked.slots_of(potential, positions)
    if violating is not None:
        # On each row the pods that violate a budget come first; both kinds by importance.
        order = order[np.lexsort((~violating[order], what_if.ranked.positions[order]))]
    begin = np.cumsum(lengths) - lengths
    num_tried = 0
    for k in range(int(lengths.max())):
        if num_tried > ROWS_TRIED_PER_STEP:
            yield
            num_tried = 0
        trying = lengths > k
        tried, slots = positions[trying], order[begin[trying] + k]
        num_tried += _ROWS_OF_A_TRIAL + len(tried)
        what_if.put_back(tried, slots)
        lost = ~trial.fits(tried)
        tried, slots = tried[lost], slots[lost]
        what_if.remove_again(tried, slots)
        if violating is not None:
            num_violations[tried] += violating[slots]
    return num_violations
