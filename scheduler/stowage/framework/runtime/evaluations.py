"""Counts how often plugins evaluate pods and nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

import msgspec

#: The counted extension points, as in ``scheduler_plugin_evaluation_total``.
PRE_FILTER, FILTER, PRE_SCORE, SCORE = "PreFilter", "Filter", "PreScore", "Score"


class _Tally(msgspec.Struct):
    """Number of evaluations at an extension point with one set of skipped plugins."""

    skipped: frozenset[str]
    stopped_at: str
    times: int = 0


class Evaluations:
    """Counts evaluations per extension point and set of skipped plugins.

    A cycle costs four additions, however many plugins there are, because consecutive pods mostly
    skip the same plugins. `totals` computes the counts per plugin.

    Args:
        plugins: Extension point -> names of its plugins, in order.
    """

    def __init__(self, plugins: Mapping[str, Sequence[str]]) -> None:
        self._plugins = plugins
        self._tallies: dict[str, dict[tuple[frozenset[str], str], _Tally]] = {
            point: {} for point in plugins
        }
        self._latest: dict[str, _Tally] = {}

    def add(
        self, point: str, skipped: AbstractSet[str], times: int = 1, stopped_at: str = ""
    ) -> None:
        """Count `times` evaluations by each plugin of a point.

        Args:
            point: The extension point.
            skipped: Names of plugins that did not run, or returned Skip, which does not count.
            times: Number of evaluations; at Filter and Score the number of nodes.
            stopped_at: The last plugin that ran, if it ended the run; empty if all ran.
        """
        tally = self._latest.get(point)
        if tally is None or tally.skipped != skipped or tally.stopped_at != stopped_at:
            tally = self._latest[point] = self._tally(point, frozenset(skipped), stopped_at)
        tally.times += times

    def totals(self) -> Counter[tuple[str, str]]:
        """Number of evaluations by (plugin, extension point)."""
        totals: Counter[tuple[str, str]] = Counter()
        for point, tallies in self._tallies.items():
            for tally in tallies.values():
                for plugin in self._plugins[point]:
                    if plugin not in tally.skipped:
                        totals[plugin, point] += tally.times
                    if plugin == tally.stopped_at:
                        break
        return totals

    def _tally(self, point: str, skipped: frozenset[str], stopped_at: str) -> _Tally:
        tallies = self._tallies[point]
        known = tallies.get((skipped, stopped_at))
        if known is None:
            known = tallies[skipped, stopped_at] = _Tally(skipped, stopped_at)
        return known
