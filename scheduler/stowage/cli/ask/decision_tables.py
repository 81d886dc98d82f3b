"""Recorded decisions as a table."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.markup import escape

from stowage.api.decisions import Decision, DecisionPage
from stowage.api.values.printable import printable
from stowage.cli.ask.output import plain_table

HEADINGS = ("time", "pod", "attempt", "result", "node", "why")
_WIDE_HEADINGS = ("decision", "feasible", "evaluated", "ms", "profile", "configuration")
#: Columns of a line that is printed before the next ones are known.
_WIDTHS = (27, 45, 7, 13, 30)
_WIDE_WIDTHS = (24, 8, 9, 8, 17)
_FEW_CHARACTERS = 100


def decision_tables(page: DecisionPage, wide: bool) -> list[RenderableType]:
    """A row for each decision, oldest first; `wide` adds columns and cuts nothing."""
    if not page.decisions:
        return ["no decision is recorded"]
    table = plain_table(*_headings(wide))
    for decision in page.decisions:
        table.add_row(*(escape(cell) for cell in _cells(decision, wide)))
    return [table]


def table_line(row: Decision | Sequence[str], wide: bool) -> str:
    """A row of a table that grows, or its headings."""
    cells = _cells(row, wide) if isinstance(row, Decision) else _headings(wide)
    widths = (*_WIDTHS[:4], *_WIDE_WIDTHS, _WIDTHS[4]) if wide else _WIDTHS
    padded = [f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=False)]
    return printable("  ".join([*padded, *cells[len(widths) :]]).rstrip())


def _headings(wide: bool) -> Sequence[str]:
    return (
        (*HEADINGS[:4], *_WIDE_HEADINGS[:5], *HEADINGS[4:], _WIDE_HEADINGS[5]) if wide else HEADINGS
    )


def _cells(decision: Decision, wide: bool) -> list[str]:
    where = decision.node or (f"({decision.nominated_node})" if decision.nominated_node else "-")
    why = _why(decision)
    row = [decision.time, decision.pod, str(decision.attempt), decision.result]
    if not wide:
        cut = why if len(why) <= _FEW_CHARACTERS else f"{why[:_FEW_CHARACTERS]}..."
        return [*row, where, cut]
    return [
        *row,
        decision.id,
        str(decision.feasible_nodes),
        str(decision.evaluated_nodes),
        f"{decision.duration_s * 1000:.3f}",
        decision.scheduler_name,
        where,
        why,
        decision.configuration,
    ]


def _why(decision: Decision) -> str:
    """The message of a refusal; the score of a node, and by how much the next one is behind."""
    if decision.result != "scheduled":
        return " ".join(decision.message.split())
    if not decision.nodes:
        return "the first node that fits" if decision.first_fit else "the only feasible node"
    first = decision.nodes[0]
    if len(decision.nodes) == 1:
        return f"{first.total} points"
    second = decision.nodes[1]
    behind = first.total - second.total
    return f"{first.total} points, {second.node} " + (f"{behind} behind" if behind else "as good")
