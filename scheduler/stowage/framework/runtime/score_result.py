"""The scores of the feasible nodes."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np

from stowage.api.config.extenders import EXTENDER_PLUGIN
from stowage.api.decisions import RawAndNormalized
from stowage.framework.shared_scores import Picked, TotalsArray
from stowage.framework.verdict import BoolArray, Int64Array, UInt8Array

#: So many positions are searched at once.
_BLOCK = 1024


class PluginScores(msgspec.Struct, frozen=True):
    """One plugin's scores of the feasible nodes, ``int64[rows]`` each."""

    plugin: str
    weight: int
    raw: Int64Array
    normalized: Int64Array

    @property
    def weighted(self) -> Int64Array:
        """``normalized * weight``."""
        return self.normalized * self.weight

    def picked(self, positions: Int64Array) -> Picked:
        """Raw and normalised scores of the nodes at some positions."""
        raw, normalized = self.raw.take(positions), self.normalized.take(positions)
        return tuple(raw.tolist()), tuple(normalized.tolist())


class NodeScores(msgspec.Struct, frozen=True):
    """The scores of a few nodes by all Score plugins that took part, as `BestNodes` has them.

    Attributes:
        weights: Name and weight of the plugins, in order.
        plain_plugins: The plugins that do not normalise and whose scores are kept.
        plain: ``uint8[plain_plugins, nodes]``, their scores.
        others: Plugin -> raw and normalised scores; one value if all nodes have the same.
    """

    weights: tuple[tuple[str, int], ...]
    plain_plugins: tuple[str, ...]
    plain: UInt8Array
    others: dict[str, RawAndNormalized]


class TiedNodes:
    """The nodes that share the highest total, as positions in `ScoreResult.rows`.

    Most nodes may be among them, so single positions are found without a list of all.

    Args:
        is_tied: ``bool[rows]``, at least one.
    """

    __slots__ = ("_count", "_is_tied")

    def __init__(self, is_tied: BoolArray) -> None:
        self._is_tied = is_tied
        self._count = int(np.count_nonzero(is_tied))

    def __len__(self) -> int:
        return self._count

    def position(self, index: int) -> int:
        """The position of one of them, counted from 0 in ascending order."""
        begin, end = 0, len(self._is_tied)
        while end - begin > _BLOCK:
            middle = (begin + end) // 2
            num_below = int(np.count_nonzero(self._is_tied[begin:middle]))
            if index < num_below:
                end = middle
            else:
                begin, index = middle, index - num_below
        return begin + int(self._is_tied[begin:end].nonzero()[0][index])

    def first(self, count: int) -> Int64Array:
        """The lowest positions, ascending: `count` of them, or all if there are fewer."""
        end = _BLOCK
        while end < len(self._is_tied) and np.count_nonzero(self._is_tied[:end]) < count:
            end *= 4
        found: Int64Array = self._is_tied[:end].nonzero()[0][:count]
        return found

    def all(self) -> Int64Array:
        """All positions, ascending."""
        return self.first(self._count)


class ScoreResult:
    """Total scores of the feasible nodes and, on demand, the scores of each plugin.

    Args:
        rows: The feasible rows, ascending.
        total: ``int[rows]``, sum of the weighted scores, as narrow as the weights allow.
        explain: Runs all Score plugins again; valid while the snapshot is current.
        pick: Returns the scores of the nodes at some positions in `rows`; valid until the next
            cycle.
    """

    __slots__ = ("_explain", "_per_plugin", "_tied", "pick", "rows", "total")

    def __init__(
        self,
        rows: Int64Array,
        total: TotalsArray,
        explain: Callable[[], tuple[PluginScores, ...]],
        pick: Callable[[Int64Array], NodeScores],
    ) -> None:
        self.rows = rows
        self.total = total
        self.pick = pick
        self._explain = explain
        self._per_plugin: tuple[PluginScores, ...] | None = None
        self._tied: TiedNodes | None = None

    def tied(self) -> TiedNodes:
        """The nodes with the highest total."""
        if self._tied is None:
            total = self.total
            self._tied = TiedNodes(total == total[total.argmax()])
        return self._tied

    def per_plugin(self) -> tuple[PluginScores, ...]:
        """The scores of every Score plugin that took part, in order.

        Raises:
            PluginFailed: A plugin failed.
        """
        if self._per_plugin is None:
            self._per_plugin = self._explain()
        return self._per_plugin

    def with_extender_scores(self, scores: Int64Array) -> ScoreResult:
        """The same result plus the scores of extenders, ``int64[rows]``, listed last."""

        def explain() -> tuple[PluginScores, ...]:
            return (*self.per_plugin(), PluginScores(EXTENDER_PLUGIN, 1, scores, scores))

        def pick(positions: Int64Array) -> NodeScores:
            of_plugins = self.pick(positions)
            added = tuple(scores.take(positions).tolist())
            return msgspec.structs.replace(
                of_plugins,
                weights=(*of_plugins.weights, (EXTENDER_PLUGIN, 1)),
                others={**of_plugins.others, EXTENDER_PLUGIN: (added, added)},
            )

        return ScoreResult(self.rows, self.total + scores, explain, pick)
