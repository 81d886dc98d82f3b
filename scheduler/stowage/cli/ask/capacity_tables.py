"""Counts of pods that fit, and of nodes that would do, as tables."""

from __future__ import annotations

from collections import Counter

from rich.console import RenderableType
from rich.markup import escape

from stowage.analysis.capacity import CapacityAnswer
from stowage.analysis.compact import CompactAnswer
from stowage.analysis.gang_capacity import GangCapacityAnswer
from stowage.cli.ask.device_tables import shortage_lines
from stowage.cli.ask.group_tables import group_tables
from stowage.cli.ask.output import plain_table
from stowage.cli.ask.what_if_tables import listing, note_lines, sentences, summary_table

_FEW_REASONS = 3
_FEW_ROWS = 10


def capacity_tables(answer: CapacityAnswer, wide: bool) -> list[RenderableType]:
    """The number, the nodes by group and by number of pods; with `wide` each node."""
    at_least = "at least " if answer.is_limited else ""
    parts: list[RenderableType] = [f"[bold]{at_least}{answer.fits}[/bold] more pods fit"]
    if answer.message:
        parts.append(f"the next one: {escape(answer.message)}")
    groups = plain_table(escape(answer.group_by), "nodes", "pods", "limited by (nodes)")
    for group in answer.groups:
        reasons = list(group.limited_by.items())
        shown = reasons if wide else reasons[:_FEW_REASONS]
        limits = ", ".join(f"{escape(reason)} ({count})" for reason, count in shown)
        groups.add_row(escape(group.value) or "-", str(group.nodes), str(group.fits), limits)
    histogram = plain_table("pods on a node", "nodes")
    for pods, nodes in answer.histogram.items():
        histogram.add_row(str(pods), str(nodes))
    parts += [groups, histogram, *shortage_lines(answer.device_shortages, wide)]
    parts += note_lines(answer.notes)
    if wide:
        per_node = plain_table("node", "pods")
        for name, count in sorted(answer.per_node.items(), key=lambda each: (-each[1], each[0])):
            per_node.add_row(escape(name), str(count))
        parts.append(per_node)
    return parts


def gang_capacity_tables(answer: GangCapacityAnswer, wide: bool) -> list[RenderableType]:
    """The number of gangs, where they go, and what the next one lacks."""
    at_least = "at least " if answer.is_limited else ""
    parts: list[RenderableType] = [
        f"[bold]{at_least}{answer.fits}[/bold] more gangs of {answer.num_members} pods fit"
    ]
    limit = None if wide else _FEW_ROWS
    domains = [(value, str(gangs)) for value, gangs in answer.per_domain.items()]
    parts += listing((answer.topology_key, "gangs"), domains, limit)
    histogram = Counter(answer.per_node.values())
    rows = [(str(pods), str(nodes)) for pods, nodes in sorted(histogram.items())]
    parts += listing(("pods on a node", "nodes"), rows, None)
    if answer.next_gang is not None:
        parts.append("the next one:")
        parts += group_tables(answer.next_gang, wide)
    parts += note_lines(answer.notes)
    if wide:
        nodes = sorted(answer.per_node.items(), key=lambda each: (-each[1], each[0]))
        parts += listing(("node", "pods"), [(name, str(pods)) for name, pods in nodes], None)
    return parts


def compact_tables(answer: CompactAnswer, wide: bool) -> list[RenderableType]:
    """The removable nodes, the moves, why others are needed, the cluster before and after."""
    limit = None if wide else _FEW_ROWS
    nodes = f"{len(answer.removable)} of {answer.before.nodes} nodes"
    names = f": {', '.join(answer.removable[:limit])}" if answer.removable else ""
    left = len(answer.removable) - len(answer.removable[:limit])
    more = f" and {left} more" if left else ""
    parts: list[RenderableType] = [f"[bold]{nodes}[/bold] could be removed{escape(names)}{more}"]
    moved = [(each.pod, each.was, each.node) for each in answer.moved]
    parts += listing(("pod", "was on", "goes to"), moved, limit)
    needed = [(each.node, "", each.why) for each in answer.needed]
    parts += sentences("needed nodes:", needed, limit)
    parts.append(summary_table(answer.before, answer.after))
    return [*parts, *note_lines(answer.notes)]
