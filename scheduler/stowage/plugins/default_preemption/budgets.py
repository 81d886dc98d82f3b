"""Finds the pods whose eviction would violate a disruption budget."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

import numpy as np

from stowage.framework.verdict import BoolArray
from stowage.state.pods.disruption_budgets import Budget, DisruptionBudgets
from stowage.state.pods.pod_info import PodInfo
from stowage.state.what_if.row_local import RowWhatIf


def violating_pods(what_if: RowWhatIf, potential: BoolArray) -> BoolArray | None:
    """``bool[slots]``: pods whose eviction would violate a budget; None if no budget exists.

    On each row, every potential victim uses up one allowed disruption of each budget that covers
    it, most important first; a pod for which a budget has none left violates it. A pod that the
    budget's status lists as disrupted already uses up none. A potential victim that is reprieved
    later has used up its disruption all the same. (``filterPodsWithPDBViolation`` of v1.36)

    Args:
        what_if: The rows.
        potential: ``bool[slots]``, the potential victims.
    """
    violating: BoolArray | None = None
    for budget, counted in _covered(what_if, potential):
        _leave_out(counted, what_if, budget.disrupted)
        beyond = counted & (what_if.ranked.count_so_far(counted) > budget.allowed)
        violating = beyond if violating is None else violating | beyond
    return violating


def rows_beyond_budgets(what_if: RowWhatIf, victims: BoolArray) -> BoolArray:
    """``bool[rows]``: rows where evicting all victims would violate a budget.

    Unlike `violating_pods` it counts the victims alone, and not the reprieved pods. Pods that
    terminate already are no further disruption, and evictions that the budget's status does not
    show yet use up its allowed disruptions.

    Args:
        what_if: The rows.
        victims: ``bool[slots]``, the pods to evict.
    """
    beyond: BoolArray = np.zeros(len(what_if), dtype=np.bool_)
    running: BoolArray = np.array(
        [sort is not None and not sort[1] for sort in what_if.snapshot.pod_variants], dtype=np.bool_
    )
    disrupted = victims & running[what_if.ranked.variants]
    for budget, counted in _covered(what_if, disrupted):
        _leave_out(counted, what_if, budget.disrupted | budget.evicting)
        beyond |= what_if.ranked.count(counted) > budget.left
    return beyond


def is_beyond_budgets(victims: Sequence[PodInfo], budgets: DisruptionBudgets) -> bool:
    """Whether evicting all these pods would violate a budget; see `rows_beyond_budgets`."""
    counts = Counter(
        budget
        for victim in victims
        if not victim.terminating
        for budget in budgets.covering(victim.pod_class)
        if victim.name not in budget.disrupted | budget.evicting
    )
    return any(count > budget.left for budget, count in counts.items())


def _covered(what_if: RowWhatIf, pods: BoolArray) -> Iterator[tuple[Budget, BoolArray]]:
    """Each budget that covers some of the pods, and ``bool[slots]``, those it covers."""
    budgets = what_if.snapshot.budgets
    if not len(budgets):
        return
    sorts, values = what_if.ranked.variants, what_if.snapshot.pod_variants
    covered: dict[Budget, list[int]] = {}
    for code in np.flatnonzero(np.bincount(sorts[pods])).tolist():
        sort = values[code]
        for budget in budgets.covering(sort[0]) if sort is not None else ():
            covered.setdefault(budget, []).append(code)
    for budget, codes in covered.items():
        is_covered = np.zeros(len(values), dtype=np.bool_)
        is_covered[codes] = True
        yield budget, pods & is_covered[sorts]


def _leave_out(counted: BoolArray, what_if: RowWhatIf, names: Collection[str]) -> None:
    if not names:
        return
    for slot in np.flatnonzero(counted).tolist():
        if what_if.ranked.pod_in(slot).name in names:
            counted[slot] = False
