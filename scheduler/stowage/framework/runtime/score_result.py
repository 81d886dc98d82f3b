"""The scores of the feasible nodes."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from stowage.api.config.extenders import EXTENDER_PLUGIN
from stowage.api.decisions import RawAndNormalized
from stowage.framework.verdict import Int64Array, UInt8Array


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


class ScoreResult:
    """Total scores of the feasible nodes and, on demand, the scores of each plugin.

    Args:
        rows: The feasible rows, ascending.
        total: ``int64[rows]``, sum of the weighted scores.
        explain: Runs all Score plugins again; valid while the snapshot is current.
        pick: Returns the scores of the nodes at some positions in `rows`; valid until the next
            cycle.
    """

    __slots__ = ("_explain", "_per_plugin", "_tied", "pick", "rows", "total")

    def __init__(
        self,
        rows: Int64Array,
        total: Int64Array,
        explain: Callable[[], tuple[PluginScores, ...]],
        pick: Callable[[Int64Array], NodeScores],
    ) -> None:
        self.rows = rows
        self.total = total
        self.pick = pick
        self._explain = explain
        self._per_plugin: tuple[PluginScores, ...] | None = None
        self._tied: Int64Array | None = None

    def tied(self) -> Int64Array:
        """The positions in `rows` of the nodes with the highest total."""
        if self._tied is None:
            self._tied = (self.total == self.total[self.total.argmax()]).nonzero()[0]
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
