"""The answer of a Filter plugin about many nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

BoolArray: TypeAlias = NDArray[np.bool_]
Int64Array: TypeAlias = NDArray[np.int64]
UInt8Array: TypeAlias = NDArray[np.uint8]


class Rejection(msgspec.Struct, frozen=True):
    """One reason and the nodes it applies to.

    Attributes:
        reason: kube-scheduler's text.
        mask: ``bool[nodes]``, True where the node is rejected for this reason.
        unresolvable: Whether preemption cannot help: one flag for all its nodes, or
            ``bool[nodes]``. A node is unresolvable if any of its reasons is.
    """

    reason: str
    mask: BoolArray
    unresolvable: bool | BoolArray = False


class FilterErrors(msgspec.Struct, frozen=True):
    """The nodes about which a plugin failed to answer.

    An error ends the attempt of the pod if no plugin before this one rejects the node.

    Attributes:
        mask: ``bool[nodes]``.
        text: Returns the error of the node at a position.
    """

    mask: BoolArray
    text: Callable[[int], str]


class FilterVerdict(msgspec.Struct, frozen=True):
    """All rejections of one plugin; it accepts a node without a reason."""

    rejections: tuple[Rejection, ...] = msgspec.field(default=())
    errors: FilterErrors | None = None

    @property
    def accepts_all(self) -> bool:
        """Whether there is no rejection and no error; cheaper than reading masks."""
        return not self.rejections and self.errors is None

    def rejected(self, num_nodes: int) -> BoolArray:
        """``bool[nodes]``: nodes with at least one reason or an error; read-only."""
        if len(self.rejections) == 1 and self.errors is None:
            return self.rejections[0].mask
        mask = np.zeros(num_nodes, dtype=np.bool_)
        for rejection in self.rejections:
            mask |= rejection.mask
        if self.errors is not None:
            mask |= self.errors.mask
        return mask

    def unresolvable(self, num_nodes: int) -> BoolArray:
        """``bool[nodes]``: rejected nodes on which preemption cannot help."""
        mask = np.zeros(num_nodes, dtype=np.bool_)
        for rejection in self.rejections:
            if rejection.unresolvable is not False:
                mask |= rejection.mask & rejection.unresolvable
        return mask


ACCEPT_ALL = FilterVerdict()
