"""Finds the pods whose eviction would violate a disruption budget."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence

import msgspec
import numpy as np

from stowage.framework.verdict import BoolArray, Int64Array
from stowage.state.pods.disruption_budgets import Budget, DisruptionBudgets
from stowage.state.pods.pod_info import PodInfo
from stowage.state.what_if.row_local import RowWhatIf

_MAX_UINT16 = 65_536


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
    found = _disruptions(what_if, potential, lambda budget: budget.disrupted)
    if found is None:
        return None
    allowed = np.array([budget.allowed for budget in found.budgets], dtype=np.int64)
    violating: BoolArray = np.zeros(what_if.ranked.num_slots, dtype=np.bool_)
    violating[found.slots[found.count_so_far(what_if) > allowed[found.numbers]]] = True
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
    found = _disruptions(what_if, disrupted, lambda budget: budget.disrupted | budget.evicting)
    if found is not None:
        left = np.array([budget.left for budget in found.budgets], dtype=np.int64)
        over = found.count_so_far(what_if) > left[found.numbers]
        beyond[what_if.ranked.positions[found.slots[over]]] = True
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


class _Disruptions(msgspec.Struct, frozen=True):
    """Pairs of a budget and a pod that it covers, by budget, then by slot.

    Most pods have one budget, so these are few, however many budgets there are.

    Attributes:
        budgets: The budgets.
        numbers: ``int64[pairs]``, the places of their budgets in `budgets`.
        slots: ``int64[pairs]``, the slots of their pods.
    """

    budgets: Sequence[Budget]
    numbers: Int64Array
    slots: Int64Array

    def count_so_far(self, what_if: RowWhatIf) -> Int64Array:
        """``int64[pairs]``: how many pods of a budget a row has up to and with that of a pair."""
        rows = what_if.ranked.positions[self.slots]
        begins = np.flatnonzero(np.diff(self.numbers * len(what_if) + rows, prepend=-1))
        lengths = np.diff(begins, append=len(rows))
        counts: Int64Array = np.arange(1, len(rows) + 1) - begins.repeat(lengths)
        return counts


def _disruptions(
    what_if: RowWhatIf, pods: BoolArray, left_out: Callable[[Budget], Collection[str]]
) -> _Disruptions | None:
    """The pairs of budgets and some pods, without those whose names a budget leaves out."""
    budgets, offsets, of_variant = _covering(what_if, pods)
    if not budgets:
        return None
    slots = np.flatnonzero(pods)
    variants = what_if.ranked.variants[slots]
    begins, lengths = offsets[variants], np.diff(offsets)[variants]
    within = np.arange(int(lengths.sum())) - (lengths.cumsum() - lengths).repeat(lengths)
    numbers, slots = of_variant[begins.repeat(lengths) + within], slots.repeat(lengths)
    # Sorting 16 bits takes time in proportion to the number of pairs.
    keys = numbers.astype(np.uint16) if len(budgets) <= _MAX_UINT16 else numbers
    order = keys.argsort(kind="stable")
    numbers, slots = numbers[order], slots[order]
    counted = np.ones(len(slots), dtype=np.bool_)
    for number, budget in enumerate(budgets):
        names = left_out(budget)
        for pair in np.flatnonzero(numbers == number).tolist() if names else ():
            counted[pair] = what_if.ranked.pod_in(int(slots[pair])).name not in names
    return _Disruptions(budgets, numbers[counted], slots[counted])


def _covering(
    what_if: RowWhatIf, pods: BoolArray
) -> tuple[Sequence[Budget], Int64Array, Int64Array]:
    """The budgets that cover some of the pods, and the numbers of those that cover each variant.

    Returns:
        The budgets; ``int64[variants + 1]`` offsets; ``int64[]``: from one offset to the next are
        the numbers of the budgets that cover the variant.
    """
    budgets, values = what_if.snapshot.budgets, what_if.snapshot.pod_variants
    numbers: dict[Budget, int] = {}
    lengths: Int64Array = np.zeros(len(values) + 1, dtype=np.int64)
    flat: list[int] = []
    if len(budgets):
        for code in np.flatnonzero(np.bincount(what_if.ranked.variants[pods])).tolist():
            variant = values[code]
            covering = () if variant is None else budgets.covering(variant[0])
            lengths[code + 1] = len(covering)
            flat += [numbers.setdefault(budget, len(numbers)) for budget in covering]
    return list(numbers), lengths.cumsum(), np.array(flat, dtype=np.int64)
