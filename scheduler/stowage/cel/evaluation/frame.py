"""The state of one evaluation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stowage.cel.errors import CelLimitError, CelRuntimeError

COST_LIMIT = 1_000_000
"""The cost that ends an evaluation, ``CELSelectorExpressionMaxCost``."""
_WORK_LIMIT = 100_000

Run = Callable[["Frame"], Any]
"""Evaluates a part of an expression.

It raises a CelRuntimeError if that part fails, after it charged the cost.
"""


class Frame:
    """Variables and costs of one evaluation.

    Attributes:
        slots: values of the variables; the first one is the device.
        cost: cost so far, as cel-go counts it.
    """

    __slots__ = ("_work", "cost", "slots")

    def __init__(self, slots: list[Any]) -> None:
        self.slots = slots
        self.cost = 0
        self._work = 0

    def charge(self, cost: int) -> None:
        """Add to the cost; raises a CelLimitError beyond the limit."""
        self.cost += cost
        if self.cost > COST_LIMIT:
            raise cost_limit_exceeded()

    def charge_work(self, amount: int) -> None:
        """Count comparisons of elements, which cel-go does not charge in full."""
        self._work += amount
        if self._work > _WORK_LIMIT:
            raise cost_limit_exceeded()


class Failure:
    """A variable whose value could not be computed."""

    __slots__ = ("error",)

    def __init__(self, error: CelRuntimeError) -> None:
        self.error = error


def cost_limit_exceeded() -> CelLimitError:
    """Return the error of an evaluation that costs too much."""
    return CelLimitError("operation cancelled: actual cost limit exceeded")
