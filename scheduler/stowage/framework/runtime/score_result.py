"""The scores of the feasible nodes."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np

from stowage.api.config.extenders import EXTENDER_PLUGIN
from stowage.api.decisions import RawAndNormalized
from stowage.framework.shared_scores import Picked
from stowage.framework.verdict import Int64Array, UInt8Array

#: From here on the totals are searched in blocks of this size.
MANY_NODES, BLOCK = 10_000, 256
#: More blocks than these take longer to search one by one.
_FEW_BLOCKS = 12


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


class ScoreResult:
    """Total scores of the feasible nodes and, on demand, the scores of each plugin.

    Args:
        rows: The feasible rows, ascending.
        total: ``int64[rows]``, sum of the weighted scores.
        explain: Runs all Score plugins again; valid while the snapshot is current.
        pick: Returns the scores of the nodes at some positions in `rows`; valid until the next
            cycle.
    """

    __slots__ = ("_explain", "_highest", "_per_plugin", "_tied", "pick", "rows", "total")

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
        self._highest: Int64Array | None = None

    def tied(self) -> Int64Array:
        """The positions in `rows` of the nodes with the highest total."""
        if self._tied is None:
            self._tied = self._find_tied()
        return self._tied

    def highest_of_blocks(self) -> Int64Array:
        """``int64[blocks]``: the highest total of each `BLOCK` positions; the last may be short."""
        if self._highest is None:
            total = self.total
            whole = len(total) - len(total) % BLOCK
            highest = total[:whole].reshape(-1, BLOCK).max(axis=1)
            if whole < len(total):
                highest = np.append(highest, total[whole:].max())
            self._highest = highest
        return self._highest

    def _find_tied(self) -> Int64Array:
        total = self.total
        if len(total) > MANY_NODES:
            highest = self.highest_of_blocks()
            best = highest[highest.argmax()]
            blocks = (highest == best).nonzero()[0]
            if len(blocks) <= _FEW_BLOCKS:
                return np.concatenate(
                    [
                        (total[begin : begin + BLOCK] == best).nonzero()[0] + begin
                        for begin in (blocks * BLOCK).tolist()
                    ]
                )
        else:
            best = total[total.argmax()]
        tied: Int64Array = (total == best).nonzero()[0]
        return tied

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
