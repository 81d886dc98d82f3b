"""The verdicts of all nodes as columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stowage.analysis.explanation import NodeVerdict, PluginStatus, SchedulingExplanation
from stowage.console.answers.answer import Answer

FITS = -1
LEFT_OUT = -2
"""The verdict about a node that PreFilter left out, or that no plugin was asked about."""


class Rejections:
    """The distinct rejections of a table, by code.

    Attributes:
        statuses: Code -> rejection.
    """

    def __init__(self) -> None:
        self.statuses: list[PluginStatus] = []
        self._codes: dict[PluginStatus, int] = {}

    def code(self, status: PluginStatus) -> int:
        """The code of a rejection."""
        code = self._codes.get(status)
        if code is None:
            code = self._codes[status] = len(self.statuses)
            self.statuses.append(status)
        return code

    def verdict(self, verdict: NodeVerdict | None) -> int:
        """The code of the deciding rejection; `FITS` or `LEFT_OUT` if there is none."""
        if verdict is None:
            return LEFT_OUT
        return FITS if verdict.rejected_by is None else self.code(verdict.rejected_by)


class PluginColumn(Answer, frozen=True):
    """The scores of the scored nodes, which are the first ones of the table."""

    plugin: str
    weight: int
    raw: list[int]
    normalized: list[int]
    weighted: list[int]


class VerdictTable(Answer, frozen=True):
    """What the plugins say about the nodes.

    Attributes:
        nodes: Feasible nodes by falling total, then the others by name.
        verdict: `FITS`, `LEFT_OUT`, or the code of the rejection that decides.
        also: Position of a node -> the other rejections.
        rejections: Code -> rejection.
        total: The total scores; None for nodes that were not scored.
        plugins: The scores by plugin.
    """

    nodes: list[str]
    verdict: list[int]
    also: dict[str, list[int]]
    rejections: list[PluginStatus]
    total: list[int | None]
    plugins: list[PluginColumn]


def verdict_table(decision: SchedulingExplanation, names: Sequence[str] = ()) -> VerdictTable:
    """The verdicts of a decision.

    Args:
        decision: The decision.
        names: All nodes; those without a verdict are left out by PreFilter.
    """
    rejections = Rejections()
    verdicts = decision.nodes
    judged = {each.node for each in verdicts}
    left_out = [name for name in names if name not in judged]
    also = {
        str(place): list(map(rejections.code, each.also_rejected_by))
        for place, each in enumerate(verdicts)
        if each.also_rejected_by
    }
    return VerdictTable(
        [*(each.node for each in verdicts), *left_out],
        [*map(rejections.verdict, verdicts), *[LEFT_OUT] * len(left_out)],
        also,
        rejections.statuses,
        [*(each.total for each in verdicts), *[None] * len(left_out)],
        _plugin_columns(decision.ranked),
    )


def _plugin_columns(ranked: Iterable[NodeVerdict]) -> list[PluginColumn]:
    """A column for each plugin; every scored node has the scores of the same plugins."""
    by_plugin = zip(*(each.scores for each in ranked), strict=True)
    return [
        PluginColumn(
            scores[0].plugin,
            scores[0].weight,
            [each.raw for each in scores],
            [each.normalized for each in scores],
            [each.weighted for each in scores],
        )
        for scores in by_plugin
    ]
