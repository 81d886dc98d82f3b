"""Finds the potential victims whose eviction would violate a disruption budget."""

from __future__ import annotations

import numpy as np

from stowage.framework.verdict import BoolArray, Int64Array
from stowage.state.pods.disruption_budgets import Budget
from stowage.state.what_if.row_local import RowWhatIf


def violating_pods(what_if: RowWhatIf, potential: BoolArray) -> BoolArray | None:
    """``bool[rows, slots]``: pods whose eviction would violate a budget; None if no budget exists.

    On each row, every potential victim uses up one allowed disruption of each budget that covers
    it, most important first; a pod for which a budget has none left violates it. A pod that the
    budget's status lists as disrupted already uses up none. A potential victim that is reprieved
    later has used up its disruption all the same. (``filterPodsWithPDBViolation`` of v1.36)

    Args:
        what_if: The rows.
        potential: ``bool[rows, slots]``, the potential victims.
    """
    budgets = what_if.snapshot.budgets
    sorts, values = what_if.ranked.variants, what_if.snapshot.pod_variants
    if not len(budgets):
        return None
    covered: dict[Budget, list[int]] = {}
    for code in np.unique(sorts[potential]).tolist():
        sort = values[code]
        for budget in budgets.covering(sort[0]) if sort is not None else ():
            covered.setdefault(budget, []).append(code)
    violating: BoolArray | None = None
    for budget, codes in covered.items():
        counted = potential & np.isin(sorts, codes)
        if budget.disrupted:
            _leave_out_disrupted(counted, what_if, budget)
        beyond = counted & (np.cumsum(counted, axis=1) > budget.allowed)
        violating = beyond if violating is None else violating | beyond
    return violating


def _leave_out_disrupted(counted: BoolArray, what_if: RowWhatIf, budget: Budget) -> None:
    cells: Int64Array = np.argwhere(counted)
    for row, slot in cells.tolist():
        if what_if.ranked.pods_at(row)[slot].name in budget.disrupted:
            counted[row, slot] = False
