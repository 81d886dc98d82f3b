"""How often plugins are asked about pods and nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

#: The extension points that are counted, as in ``scheduler_plugin_evaluation_total``.
PRE_FILTER, FILTER, PRE_SCORE, SCORE = "PreFilter", "Filter", "PreScore", "Score"


class Evaluations:
    """Counts per extension point whom it skipped; who was asked is spelled out on demand.

    That costs a cycle four additions, however many plugins there are.

    Args:
        plugins: Extension point -> names of its plugins, in order.
    """

    def __init__(self, plugins: Mapping[str, Sequence[str]]) -> None:
        self._plugins = plugins
        self._counts: Counter[tuple[str, frozenset[str], str]] = Counter()

    def add(
        self, point: str, skipped: AbstractSet[str], times: int = 1, stopped_at: str = ""
    ) -> None:
        """Count `times` evaluations by each plugin of a point.

        Args:
            point: The extension point.
            skipped: Names of plugins that were not asked, or said Skip, which does not count.
            times: How many; nodes at Filter and Score.
            stopped_at: The plugin after which nobody was asked any more; empty if all were.
        """
        self._counts[point, frozenset(skipped), stopped_at] += times

    def totals(self) -> Counter[tuple[str, str]]:
        """How often each plugin was asked, by (plugin, extension point)."""
        totals: Counter[tuple[str, str]] = Counter()
        for (point, skipped, stopped_at), times in self._counts.items():
            for plugin in self._plugins[point]:
                if plugin not in skipped:
                    totals[plugin, point] += times
                if plugin == stopped_at:
                    break
        return totals
