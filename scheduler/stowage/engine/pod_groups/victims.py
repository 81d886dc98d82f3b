"""Victims of a pod group: whom it may evict, in which order they are spared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from stowage.engine.state.engine_state import EngineState
from stowage.state.pods.disruption_budgets import DisruptionBudgets
from stowage.state.pods.pod_info import PodInfo

#: Sorts after every RFC 3339 timestamp: a pod that has not started counts as started now.
_NOW = "~"


class VictimUnit(msgspec.Struct, frozen=True):
    """Pods that are evicted together: one pod, or all members of a group with that mode.

    Attributes:
        pods: At least one.
        priority: That of the pod, or of the group.
    """

    pods: tuple[PodInfo, ...]
    priority: int

    @property
    def importance(self) -> tuple[Any, ...]:
        """A key by which the most important unit comes first.

        Higher priority; members of any group before other pods; of those, more pods; earlier start.
        A lone member outranks an older ordinary pod, as in kube-scheduler v1.36.
        """
        start = min(pod.start_time or _NOW for pod in self.pods)
        is_member = bool(self.pods[0].group)
        return (-self.priority, not is_member, -len(self.pods) if is_member else 0, start)


def victim_units(state: EngineState, below: int) -> list[VictimUnit]:
    """The units of a lower priority, in the order in which they are spared.

    First those whose eviction would violate a disruption budget, then the others, each the most
    important ones first.
    """
    groups = state.cache.pod_groups
    wholes: dict[str, list[PodInfo]] = {}
    units: list[VictimUnit] = []
    for pod in state.cache.pods():
        known = groups.group(pod.group_key) if pod.group else None
        if known is not None and known.group.is_disrupted_as_a_whole:
            if known.group.priority < below:
                wholes.setdefault(pod.group_key, []).append(pod)
        elif pod.priority < below:
            units.append(VictimUnit((pod,), pod.priority))
    for key, pods in wholes.items():
        known = groups.group(key)
        units.append(VictimUnit(tuple(pods), 0 if known is None else known.group.priority))
    units.sort(key=lambda unit: unit.importance)
    return _violating_first(units, state.cache.snapshot().budgets)


def _violating_first(units: Sequence[VictimUnit], budgets: DisruptionBudgets) -> list[VictimUnit]:
    """The units in the same order, but first those one of whose pods violates a budget.

    Every pod uses up one allowed disruption of each budget that covers it, unless the budget's
    status counts it already.
    """
    if not len(budgets):
        return list(units)
    used: Counter[int] = Counter()
    violating: list[VictimUnit] = []
    others: list[VictimUnit] = []
    for unit in units:
        violates = [_use_up(pod, budgets, used) for pod in unit.pods]
        (violating if any(violates) else others).append(unit)
    return [*violating, *others]


def _use_up(pod: PodInfo, budgets: DisruptionBudgets, used: Counter[int]) -> bool:
    """Count the eviction of a pod; whether a budget has no disruption left for it."""
    violates = False
    for budget in budgets.covering(pod.pod_class):
        if pod.name in budget.disrupted:
            continue
        used[id(budget)] += 1
        violates |= used[id(budget)] > budget.allowed
    return violates


def pods_of(units: Iterable[VictimUnit]) -> list[PodInfo]:
    """All pods of some units."""
    return [pod for unit in units for pod in unit.pods]
