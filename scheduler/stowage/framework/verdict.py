"""What a Filter plugin answers about many nodes at once."""

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
        mask: ``bool[nodes]``, True where the node is refused for this reason.
        unresolvable: Whether removing pods cannot help: one flag for all its nodes, or
            ``bool[nodes]``. A node is unresolvable if any of its reasons is.
    """

    reason: str
    mask: BoolArray
    unresolvable: bool | BoolArray = False


class FilterVerdict(msgspec.Struct, frozen=True):
    """All reasons of one plugin; a node without a reason is feasible for it."""

    rejections: tuple[Rejection, ...] = msgspec.field(default=())

    @property
    def accepts_all(self) -> bool:
        """Whether there is no reason at all (cheaper than looking at masks)."""
        return not self.rejections

    def rejected(self, num_nodes: int) -> BoolArray:
        """``bool[nodes]``: nodes with at least one reason."""
        mask = np.zeros(num_nodes, dtype=np.bool_)
        for rejection in self.rejections:
            mask |= rejection.mask
        return mask

    def unresolvable(self, num_nodes: int) -> BoolArray:
        """``bool[nodes]``: refused nodes that removing pods cannot help."""
        mask = np.zeros(num_nodes, dtype=np.bool_)
        for rejection in self.rejections:
            mask |= rejection.mask & rejection.unresolvable
        return mask


ACCEPT_ALL = FilterVerdict()
