"""The answer to a what-if as tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.markup import escape
from rich.table import Table

from stowage.analysis.group_explanation import GroupExplanation
from stowage.analysis.what_if import ClusterSummary, WhatIfAnswer
from stowage.cli.ask.device_tables import shortage_lines
from stowage.cli.ask.output import plain_table

_FEW_ROWS = 20


def what_if_tables(answer: WhatIfAnswer, wide: bool) -> list[RenderableType]:
    """What would happen to which pod, and the cluster before and after."""
    limit = None if wide else _FEW_ROWS
    parts: list[RenderableType] = []
    if answer.added_nodes:
        parts.append(f"added: {escape(', '.join(answer.added_nodes))}")
    placed = [
        (each.pod, each.was or "-", f"{each.node} (tie)" if each.tied else each.node)
        for each in answer.placed
    ]
    parts += listing(("pod", "was on", "goes to"), placed, limit)
    parts += _group_lines(answer.groups, limit)
    evicted = [(each.pod, each.node, each.preemptor) for each in answer.preempted]
    parts += listing(("preempted pod", "on", "for"), evicted, limit)
    pending = [(each.pod, each.was, each.message) for each in answer.pending]
    parts += sentences("pending:", pending if wide else _grouped(pending), limit)
    parts += _shortages(answer, wide)
    deleted = [(each,) for each in answer.deleted]
    parts += listing(("deleted pod without a controller",), deleted, limit)
    kept = [(each.pod, "", each.why) for each in answer.kept]
    parts += sentences("not evicted:", kept, limit)
    if not parts:
        parts.append("no pod would move")
    parts.append(summary_table(answer.before, answer.after))
    if any(each.tied for each in answer.placed):
        parts.append("tie: other nodes are as good, a running scheduler may choose one of them")
    return [*parts, *note_lines(answer.notes)]


def note_lines(notes: Sequence[str]) -> list[RenderableType]:
    """What an answer cannot know, a line each."""
    return [f"[dim]{escape(note)}[/dim]" for note in notes]


def _shortages(answer: WhatIfAnswer, wide: bool) -> Iterator[RenderableType]:
    """The devices that pending pods lack; without `wide` of the first such pod only."""
    lacking = [each for each in answer.pending if each.device_shortages]
    shown = lacking if wide else lacking[:1]
    for each in shown:
        heading, *lines = shortage_lines(each.device_shortages, wide)
        yield f"{escape(each.pod)}, {heading}"
        yield from lines
    if len(shown) < len(lacking):
        yield f"and {len(lacking) - len(shown)} more without devices: -o wide"


def _group_lines(groups: Sequence[GroupExplanation], limit: int | None) -> Iterator[RenderableType]:
    """A line for each pod group: its sentence is too long for a table."""
    for each in groups[:limit]:
        yield f"pod group {escape(each.group)} ({each.outcome}): {escape(each.text)}"
    left = len(groups) - len(groups[:limit])
    if left:
        yield f"and {left} more pod groups: -o wide"


def _grouped(rows: Sequence[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """A row for all pods that were on one node and are pending for one reason."""
    groups: dict[tuple[str, str], list[str]] = {}
    for pod, was, why in rows:
        groups.setdefault((was, why), []).append(pod)
    return [
        (pods[0] if len(pods) == 1 else f"{pods[0]} and {len(pods) - 1} more", was, why)
        for (was, why), pods in groups.items()
    ]


def sentences(
    heading: str, rows: Sequence[tuple[str, str, str]], limit: int | None
) -> list[RenderableType]:
    """A line for each row, what, its node before, and why: sentences are too long for a table."""
    if not rows:
        return []
    lines = [
        f"  {escape(what)}{f' (was on {escape(was)})' if was else ''}: {escape(why)}"
        for what, was, why in rows[:limit]
    ]
    left = len(rows) - len(lines)
    return [heading, *lines, *([f"  and {left} more: -o wide"] if left else [])]


def listing(
    headings: Sequence[str], rows: Sequence[Sequence[str]], limit: int | None
) -> list[RenderableType]:
    """A table of the rows, cut to `limit`; nothing without rows."""
    if not rows:
        return []
    table = plain_table(*headings)
    for row in rows[:limit]:
        table.add_row(*map(escape, row))
    left = len(rows) - len(rows[:limit])
    return [table, f"and {left} more: -o wide"] if left else [table]


def summary_table(before: ClusterSummary, after: ClusterSummary) -> Table:
    """The counts of the cluster before and after."""
    table = plain_table("cluster", "before", "after")
    table.add_row("nodes", str(before.nodes), str(after.nodes))
    table.add_row("pods on nodes", str(before.placed), str(after.placed))
    table.add_row("pending pods", str(before.pending), str(after.pending))
    for resource in after.allocatable:
        table.add_row(
            f"{escape(resource)} requested", _share(before, resource), _share(after, resource)
        )
    return table


def _share(summary: ClusterSummary, resource: str) -> str:
    if resource not in summary.allocatable:
        return "-"
    share = summary.utilisation[resource]
    return f"{share:.1%} of {summary.allocatable[resource]}"
