"""Ties: several nodes have the highest total. The policy that decides, and how it decided.

kube-scheduler v1.36 takes one of them at random, and so does a profile that says nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from stowage.api.config.types import TieBreakingType
from stowage.framework.extension_points import ScorePlugin

UInt64Array: TypeAlias = NDArray[np.uint64]


class TiePolicy(msgspec.Struct, frozen=True):
    """How a profile breaks ties; ``tieBreaking`` of the configuration.

    Attributes:
        type: Decides among the nodes that the plugins leave. ``Random``: any of them;
            ``RoundRobin``: in turn, ``selectHost`` of v1.12; ``FixedOrder``: the first one in an
            order of all nodes that never changes.
        seed: The seed of that order.
        plugins: Asked first, one after the other, each about the nodes that are still tied.
    """

    type: TieBreakingType = "Random"
    seed: int = 0
    plugins: tuple[ScorePlugin, ...] = ()

    @property
    def is_random(self) -> bool:
        """Whether any of the nodes is taken, as in kube-scheduler v1.36."""
        return self.type == "Random" and not self.plugins


class Draw(msgspec.Struct, frozen=True):
    """What a decision depends on beside the cluster and the pod.

    Attributes:
        choose: ``choose(n)`` returns an index below n; called for ``Random`` only.
        turn: The number of pods of the profile that were placed by scores before this one;
            ``lastNodeIndex`` of v1.12.
        start: The position in the search order with which ``RoundRobin`` begins.
    """

    choose: Callable[[int], int]
    turn: int = 0
    start: int = 0


class Narrowing(msgspec.Struct, frozen=True):
    """A plugin that was asked about tied nodes, and the number of nodes that it left."""

    plugin: str
    left: int


class BrokenTie(msgspec.Struct, frozen=True):
    """How a tie was broken.

    Attributes:
        num_nodes: Number of nodes with the highest total.
        narrowings: The plugins that were asked, in order.
        last_resort: The type that chose among the nodes left; empty if the plugins left one.
    """

    num_nodes: int
    narrowings: tuple[Narrowing, ...] = ()
    last_resort: TieBreakingType | None = None
