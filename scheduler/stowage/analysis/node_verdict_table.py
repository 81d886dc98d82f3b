"""Every plugin's verdict about every node, as records."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from stowage.analysis.explanation import NodeVerdict, PluginStatus
from stowage.api.decisions import PluginScore
from stowage.api.status import Status
from stowage.framework import FilterResult, NodeVerdicts, PluginVerdict, ScoreResult
from stowage.framework.verdict import Int64Array


class Verdicts:
    """The rejections of all nodes that were filtered.

    Nodes that are rejected alike share their records, so a table of thousands of nodes costs a
    lookup for each rejection.

    Attributes:
        deciding: Node -> the rejection that decides.
        others: Node -> the rejections of the other plugins.
    """

    def __init__(self, filtered: FilterResult) -> None:
        self.deciding: dict[int, PluginStatus] = {}
        self.others: dict[int, tuple[PluginStatus, ...]] = {}
        self._records: dict[Status, PluginStatus] = {}
        self._collect(filtered)

    def _collect(self, filtered: FilterResult) -> None:
        rows = filtered.asked.rows
        by_row = self._rejections(filtered.verdicts)
        infeasible = filtered.asked.exists & ~filtered.feasible[rows]
        special = self._decided_otherwise(filtered)
        for row in rows[infeasible].tolist():
            answers = by_row.get(row, [])
            deciding = answers[0] if answers and row not in special else None
            if deciding is None:
                deciding = self._record(filtered.status(row))
            self.deciding[row] = deciding
            self.others[row] = tuple(each for each in answers if each.plugin != deciding.plugin)

    def _decided_otherwise(self, filtered: FilterResult) -> set[int]:
        """The rows whose rejection extenders or nominated pods may decide."""
        nominated = filtered.with_nominated_pods
        rows = set(filtered.overruled)
        return rows if nominated is None else rows | set(nominated.view.rows.tolist())

    def _rejections(self, verdicts: NodeVerdicts) -> dict[int, list[PluginStatus]]:
        """Row -> the rejections of all plugins, in their order."""
        found: defaultdict[int, list[PluginStatus]] = defaultdict(list)
        rows = verdicts.view.rows
        exists = verdicts.view.exists
        for answer in verdicts.answers:
            for positions, status in _distinct_statuses(answer):
                record = self._record(status)
                for row in rows[positions[exists[positions]]].tolist():
                    found[row].append(record)
        return found

    def _record(self, status: Status) -> PluginStatus:
        record = self._records.get(status)
        if record is None:
            record = self._records[status] = plugin_status(status)
        return record


def plugin_status(status: Status) -> PluginStatus:
    """The status as a record, with sorted reasons."""
    return PluginStatus(status.plugin, status.code.title, tuple(sorted(status.reasons)))


def _distinct_statuses(answer: PluginVerdict) -> Iterator[tuple[Int64Array, Status]]:
    """The positions of the nodes that the plugin rejects, grouped by equal status."""
    rejections = answer.verdict.rejections
    if not rejections:
        return
    masks = [rejection.mask for rejection in rejections]
    flags = [rejection.mask & rejection.unresolvable for rejection in rejections]
    _, group_of = np.unique(np.stack([*masks, *flags], axis=1), axis=0, return_inverse=True)
    rejected = np.logical_or.reduce(masks)
    for group in np.unique(group_of[rejected]).tolist():
        positions = np.flatnonzero(group_of == group)
        yield positions, answer.status(int(positions[0]))


def score_records(scores: ScoreResult, names: list[str]) -> dict[str, tuple[PluginScore, ...]]:
    """Node -> the scores of every plugin that took part, in order."""
    columns = [
        [
            PluginScore(each.plugin, each.weight, *values)
            for values in zip(
                each.raw.tolist(), each.normalized.tolist(), each.weighted.tolist(), strict=True
            )
        ]
        for each in scores.per_plugin()
    ]
    if not columns:
        return dict.fromkeys(names, ())
    return dict(zip(names, zip(*columns, strict=True), strict=True))


def verdict_records(
    filtered: FilterResult, scores: ScoreResult | None, names: list[str]
) -> tuple[NodeVerdict, ...]:
    """The verdicts of all filtered nodes: feasible ones by falling total, others by name.

    Args:
        filtered: The result of Filter.
        scores: The scores of the feasible rows; None if there are none.
        names: Row -> node name.
    """
    verdicts = Verdicts(filtered)
    ranked: list[NodeVerdict] = []
    if scores is not None:
        ranked_names = [names[row] for row in scores.rows.tolist()]
        by_node = score_records(scores, ranked_names)
        ranked = [
            NodeVerdict(name, scores=by_node[name], total=total)
            for name, total in zip(ranked_names, scores.total.tolist(), strict=True)
        ]
        ranked.sort(key=lambda each: (-(each.total or 0), each.node))
    scored = () if scores is None else scores.rows
    unscored = [NodeVerdict(names[row]) for row in np.setdiff1d(filtered.rows, scored).tolist()]
    rejected = [
        NodeVerdict(names[row], status, verdicts.others[row])
        for row, status in verdicts.deciding.items()
    ]
    return (*ranked, *sorted([*unscored, *rejected], key=lambda each: each.node))
