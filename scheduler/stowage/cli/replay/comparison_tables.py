"""The comparison of lives as tables."""

from __future__ import annotations

from rich.console import RenderableType
from rich.markup import escape

from stowage.analysis.life_comparison import LifeComparison
from stowage.cli.ask.output import plain_table
from stowage.cli.ask.what_if_tables import listing

_FEW_ROWS = 20


def comparison_tables(answer: LifeComparison, wide: bool) -> list[RenderableType]:
    """The pods with other nodes, and the counts of each life."""
    names = [each.name for each in answer.lives]
    other = f"{len(answer.differing)} of {answer.pods}"
    parts: list[RenderableType] = [
        f"{answer.started} to {answer.ended}",
        f"[bold]{other}[/bold] pods have another node {names[-1]} than {names[-2]}",
    ]
    rows = [
        (each.pod, *(each.nodes[name] or "-" for name in names), "tie" if each.tied else "")
        for each in answer.differing
    ]
    parts += listing(("pod", *names, ""), rows, None if wide else _FEW_ROWS)
    parts.append(_summary_table(answer))
    return [*parts, *(f"[dim]{escape(note)}[/dim]" for note in answer.notes)]


def _summary_table(answer: LifeComparison) -> RenderableType:
    lives = answer.lives
    table = plain_table("", *(each.name for each in lives))
    table.add_row("pods that got a node", *(str(each.placed) for each in lives))
    table.add_row("pods that got none", *(str(each.unplaced) for each in lives))
    table.add_row("mean time pending", *(f"{each.pending.mean_s:.3f} s" for each in lives))
    table.add_row("median time pending", *(f"{each.pending.p50_s:.3f} s" for each in lives))
    table.add_row("99th percentile", *(f"{each.pending.p99_s:.3f} s" for each in lives))
    table.add_row("preempted pods", *(str(each.preempted) for each in lives))
    for resource in lives[-1].utilisation:
        shares = [each.utilisation.get(resource) for each in lives]
        cells = ["-" if one is None else f"{one.mean:.1%} ± {one.deviation:.1%}" for one in shares]
        table.add_row(f"{escape(resource)} requested", *cells)
    return table
