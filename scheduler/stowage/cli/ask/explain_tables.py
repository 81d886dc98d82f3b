"""Explanations as tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from rich.console import RenderableType
from rich.markup import escape
from rich.table import Table

from stowage.analysis.explanation import (
    NodeExplanation,
    NodeVerdict,
    PluginStatus,
    PodExplanation,
    SchedulingExplanation,
)
from stowage.analysis.group_explanation import FITS
from stowage.cli.ask.device_tables import device_tables, shortage_lines
from stowage.cli.ask.output import plain_table

_FEW_NODES = 10
_FEW_COLUMNS = 4
_FEW_NEAR_MISSES = 5


def pod_tables(explained: PodExplanation, wide: bool) -> list[RenderableType]:
    """A pod's explanation; without `wide` the best nodes and the nearest misses only."""
    decision = explained.decision
    parts: list[RenderableType] = [_headline(explained)]
    if explained.condition and explained.condition != decision.message:
        parts.append(f"its scheduler says: {escape(explained.condition)}")
    if explained.group is not None:
        group = explained.group
        parts.append(f"pod group {escape(group.group)} ({group.outcome}): {escape(group.text)}")
    parts += [f"[dim]{escape(note)}[/dim]" for note in (explained.basis, *explained.notes)]
    if decision.outcome == "Scheduled":
        parts += _scores(explained, wide)
    elif explained.node:
        parts += _reason_tables(decision)  # it waits for nothing, and preempts none
    else:
        parts += rejection_parts(decision, wide, said=decision.message)
    return parts


def _headline(explained: PodExplanation) -> str:
    decision = explained.decision
    if explained.recorded:
        place = _recorded_place(decision)
    elif explained.node:
        place = f"is on node [bold]{escape(explained.node)}[/bold]"
    elif decision.outcome == "Scheduled":
        place = f"is pending, and {_future(explained)} [bold]{escape(decision.chosen)}[/bold]"
    else:
        place = f"is pending ({decision.outcome}): {escape(decision.message)}"
    return f"[bold]{escape(explained.pod)}[/bold] {place}"


def _future(explained: PodExplanation) -> str:
    """What a pending pod's node is worth: a member gets it only with its group."""
    if explained.group is None or explained.group.outcome == FITS:
        return "would be placed on"
    return "waits for its pod group; it fits on"


def _recorded_place(decision: SchedulingExplanation) -> str:
    if decision.outcome == "Scheduled":
        return f"went to node [bold]{escape(decision.chosen)}[/bold]"
    return f"found no node ({decision.outcome}): {escape(decision.message)}"


def _scores(explained: PodExplanation, wide: bool) -> list[RenderableType]:
    decision = explained.decision
    parts: list[RenderableType] = []
    if decision.via_nomination:
        parts.append("it fits on its nominated node, which is taken without a search")
    elif decision.first_fit:
        parts.append("nothing rates nodes: the first node on which it fits is taken")
    elif not decision.scored:
        parts.append("only one node is feasible, so scores do not count")
    elif decision.tie is not None:
        parts.append(escape(decision.tie.text))
    elif len(decision.best) > 1:
        parts.append(f"tie of {len(decision.best)} nodes")
    node = explained.node or decision.chosen
    if decision.ranked:
        parts.append(
            _score_table(decision.ranked, node) if wide else _points(decision.ranked, node)
        )
    if explained.runner_up is not None:
        lost = explained.runner_up
        by = ", ".join(f"{plugin} {points:+d}" for plugin, points in lost.by_plugin.items())
        side = "behind" if lost.behind >= 0 else "ahead"
        what = f"{abs(lost.behind)} points {side}"
        parts.append(f"runner-up: {escape(lost.node)}, {what}" + (f" ({by})" if by else ""))
    if wide:
        parts.append(_node_table(each for each in decision.nodes if each.rejected_by is not None))
    else:
        parts += _reason_tables(decision)
    return parts


def _points(ranked: Sequence[NodeVerdict], node: str) -> Table:
    """The weighted scores of the pod's node and of the best others: a column for each node."""
    own = [each for each in ranked if each.node == node]
    shown = [*own, *[each for each in ranked if each.node != node][: _FEW_COLUMNS - len(own)]]
    table = plain_table()
    table.add_column("points", no_wrap=True)
    for verdict in shown:
        table.add_column(escape(verdict.node), justify="right")
    for scores in zip(*(verdict.scores for verdict in shown), strict=True):
        table.add_row(scores[0].plugin, *(str(each.weighted) for each in scores))
    table.add_section()
    table.add_row("total", *(str(verdict.total) for verdict in shown))
    if len(shown) < len(ranked):
        table.caption = f"and {len(ranked) - len(shown)} more feasible nodes, see -o wide"
    return table


def _score_table(ranked: Sequence[NodeVerdict], node: str) -> Table:
    """A row for each node; a cell has the weighted score, and raw and normalised in brackets."""
    table = plain_table("node", "total", title="weighted (raw, normalised)", title_justify="left")
    for score in ranked[0].scores if ranked else ():
        table.add_column(score.plugin, justify="right", no_wrap=True)
    for verdict in ranked:
        cells = [f"{each.weighted} ({each.raw}, {each.normalized})" for each in verdict.scores]
        name = escape(verdict.node)
        table.add_row(
            f"[bold]{name}[/bold]" if verdict.node == node else name, str(verdict.total), *cells
        )
    return table


def rejection_parts(
    decision: SchedulingExplanation, wide: bool, *, said: str = ""
) -> list[RenderableType]:
    """Why no node takes a pod, and what would help; nothing that `said`, shown above, says."""
    parts: list[RenderableType] = []
    for rejection, point in (
        (decision.pre_enqueue, "PreEnqueue"),
        (decision.pre_filter, "PreFilter"),
    ):
        if rejection is not None:
            parts.append(f"{point}: {_status_text(rejection, said)}")
    parts += _reason_tables(decision)
    parts += shortage_lines(decision.device_shortages, wide)
    if wide:
        parts.append(_node_table(decision.nodes))
    misses = decision.near_misses if wide else decision.near_misses[:_FEW_NEAR_MISSES]
    if misses:
        parts.append("nearest misses:")
        parts += [f"  {escape(miss.text)}" for miss in misses]
    parts += _preemption(decision, wide, said)
    parts += _retries(decision)
    return parts


def _retries(decision: SchedulingExplanation) -> list[RenderableType]:
    """When the scheduler comes back to the pod."""
    if decision.outcome == "Error":
        return ["it is tried again after its backoff, by default 1 to 10 seconds"]
    if not decision.waits_for:
        return []
    again = "PreEnqueue is asked again" if decision.outcome == "Gated" else "it is tried again"
    return [
        f"{again} after one of these events, or by default after 5 minutes:",
        *(f"  {each.plugin}: {', '.join(each.events)}" for each in decision.waits_for),
    ]


def _reason_tables(decision: SchedulingExplanation) -> list[RenderableType]:
    """How many nodes each plugin rejects for which reason, all plugins counted."""
    counts: Counter[tuple[str, str]] = Counter()
    for verdict in decision.nodes:
        for status in _statuses(verdict):
            for reason in status.reasons:
                counts[status.plugin, reason] += 1
    if not counts and decision.reason_counts:
        table = plain_table("nodes", "reason")
        for reason, count in decision.reason_counts.items():
            table.add_row(str(count), escape(reason))
        return [table]
    if not counts:
        return []
    table = plain_table("nodes", "rejected by", "reason")
    for (plugin, reason), count in counts.most_common():
        table.add_row(str(count), plugin, escape(reason))
    return [table]


def _statuses(verdict: NodeVerdict) -> tuple[PluginStatus, ...]:
    first = verdict.rejected_by
    return () if first is None else (first, *verdict.also_rejected_by)


def _node_table(verdicts: Iterable[NodeVerdict]) -> Table:
    table = plain_table("node", "rejected by", "reasons")
    for verdict in verdicts:
        for number, status in enumerate(_statuses(verdict)):
            name = "" if number else escape(verdict.node)
            table.add_row(name, status.plugin, escape(", ".join(status.reasons)))
    return table


def _preemption(decision: SchedulingExplanation, wide: bool, said: str) -> list[RenderableType]:
    answer = decision.preemption
    if answer is None:
        return []
    if not answer.nominated_node:
        why = "" if answer.message in said else f": {escape(answer.message)}"
        return [f"preemption does not help{why}"]
    chosen = f"[bold]{escape(answer.nominated_node)}[/bold] is chosen"
    if not answer.candidates:
        return [f"preemption: {chosen}"]
    table = plain_table("node", "victims", "budget violations")
    candidates = sorted(answer.candidates, key=lambda each: each.node != answer.nominated_node)
    for each in candidates if wide else candidates[:_FEW_NODES]:
        table.add_row(escape(each.node), escape(", ".join(each.victims)), str(each.pdb_violations))
    return [f"preemption: {len(answer.candidates)} candidate nodes; {chosen}", table]


def _status_text(status: PluginStatus, said: str = "") -> str:
    reasons = ", ".join(status.reasons)
    return status.plugin if said and reasons in said else f"{status.plugin}: {escape(reasons)}"


def node_tables(explained: NodeExplanation, wide: bool) -> list[RenderableType]:
    """A node's explanation; without `wide` the first pods and rejections only."""
    cordoned = ", cordoned" if explained.unschedulable else ""
    count = "1 pod" if len(explained.pods) == 1 else f"{len(explained.pods)} pods"
    taints = f", taints {escape(', '.join(explained.taints))}" if explained.taints else ""
    amounts = plain_table("resource", "allocatable", "free")
    for resource, amount in explained.allocatable.items():
        amounts.add_row(escape(resource), amount, explained.free[resource])
    limit = None if wide else _FEW_NODES
    parts: list[RenderableType] = [
        f"[bold]{escape(explained.node)}[/bold]: {count}{cordoned}{taints}",
        amounts,
    ]
    if explained.devices:
        parts += device_tables(explained.devices, wide)
    if explained.pods:
        parts.append(f"pods: {escape(_listed(explained.pods, limit))}")
    if explained.rejects:
        table = plain_table("pending pod", "rejected by")
        for each in explained.rejects[:limit]:
            found = [escape(f"{it.subject}: {it.finding}") for it in each.device_shortages]
            reasons = [*map(_status_text, each.rejected_by), *found]
            table.add_row(escape(each.pod), "; ".join(reasons))
        parts.append(table)
    if explained.fits:
        parts.append(f"pending pods that fit: {escape(_listed(explained.fits, limit))}")
    return parts


def _listed(names: Sequence[str], limit: int | None) -> str:
    shown = ", ".join(names[:limit])
    left = len(names) - len(names[:limit])
    return f"{shown} and {left} more" if left else shown
