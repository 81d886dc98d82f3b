"""A call whose cost is estimated."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from stowage.cel.estimation.sizes import UNKNOWN, Size
from stowage.cel.estimation.tracked_sizes import TrackedSizes
from stowage.cel.signatures.functions import Overload
from stowage.cel.signatures.types import INT
from stowage.cel.syntax.tree import Call, Literal


class CallCost(NamedTuple):
    """The cost of a call without its arguments, and the size of its result if it says one."""

    cost: int
    result: Size | None = None


class CalledOverload(NamedTuple):
    """A call, as one of the overloads that it may be.

    Attributes:
        sizes: The sizes of its arguments.
    """

    sizes: TrackedSizes
    call: Call
    candidate: Overload

    @property
    def target(self) -> Size:
        """The size of the target of a member; any size without one."""
        target = self.call.target
        return UNKNOWN if target is None else self.sizes.size_or_unknown(target)

    def argument(self, index: int) -> Size:
        """The size of an argument."""
        return self.sizes.size_or_unknown(self.call.args[index])

    def whole_number(self, index: int, otherwise: int) -> int:
        """The value of an argument that is a literal integer; 0 for negative ones."""
        node = self.call.args[index]
        if isinstance(node, Literal) and node.type == INT:
            return max(0, int(node.value))
        return otherwise


Estimate = Callable[[CalledOverload], CallCost | None]
"""The cost of a call; None if it costs what most calls cost."""
