"""The answer of a Filter plugin about many nodes."""

from __future__ import annotations

from typing import TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

BoolArray: TypeAlias = NDArray[np.bool_]
Int64Array: TypeAlias = NDArray[np.int64]


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


class FilterVerdict(msgspec.Struct, frozen=True):
    """All rejections of one plugin; it accepts a node without a reason."""

    rejections: tuple[Rejection, ...] = msgspec.field(default=())

    @property
    def accepts_all(self) -> bool:
        """Whether there is no rejection; cheaper than reading masks."""
        return not self.rejections

    def rejected(self, num_nodes: int) -> BoolArray:
        """``bool[nodes]``: nodes with at least one reason."""
        mask = np.zeros(num_nodes, dtype=np.bool_)
        for rejection in self.rejections:
            mask |= rejection.mask
        return mask

    def unresolvable(self, num_nodes: int) -> BoolArray:
        """``bool[nodes]``: rejected nodes on which preemption cannot help."""
        mask = np.zeros(num_nodes, dtype=np.bool_)
        for rejection in self.rejections:
            mask |= rejection.mask & rejection.unresolvable
        return mask


ACCEPT_ALL = FilterVerdict()
