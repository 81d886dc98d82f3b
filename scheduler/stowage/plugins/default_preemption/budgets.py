"""Which victims a disruption budget does not allow to go."""

from __future__ import annotations

import numpy as np

from stowage.framework.verdict import BoolArray, Int64Array
from stowage.state.pods.disruption_budgets import Budget
from stowage.state.what_if.row_local import RowWhatIf


def violating_pods(what_if: RowWhatIf, potential: BoolArray) -> BoolArray | None:
    """``bool[rows, slots]``: pods whose eviction would violate a budget; None if there are none.

    ``filterPodsWithPDBViolation`` of v1.36: on each row the potential victims are counted off the
    budgets that cover them, most important first; those for which a budget has nothing left
    violate it. A pod that a budget counts as disrupted already is not counted again. Every
    potential victim counts, also one that is spared in the end.

    Args:
        what_if: Whose pods.
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
    places: Int64Array = np.argwhere(counted)
    for row, slot in places.tolist():
        if what_if.ranked.pods_at(row)[slot].name in budget.disrupted:
            counted[row, slot] = False
