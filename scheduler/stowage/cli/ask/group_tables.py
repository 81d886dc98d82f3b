"""The answer about a pod group as tables."""

from __future__ import annotations

from collections import Counter

from rich.console import RenderableType
from rich.markup import escape

from stowage.analysis.group_explanation import GroupExplanation
from stowage.cli.ask.explain_tables import rejection_parts
from stowage.cli.ask.output import plain_table
from stowage.cli.ask.what_if_tables import listing

_FEW_ROWS = 10


def group_tables(about: GroupExplanation, wide: bool) -> list[RenderableType]:
    """The sentence, the domains, the members, and what the first misfit lacks."""
    limit = None if wide else _FEW_ROWS
    parts: list[RenderableType] = [
        f"[bold]{escape(about.group)}[/bold] ({about.outcome}): {escape(about.text)}"
    ]
    if about.condition and about.condition != about.message:
        parts.append(f"its scheduler says: {escape(about.condition)}")
    parts += [f"[dim]{escape(note)}[/dim]" for note in (about.basis, *about.notes)]
    domains = [
        (each.value, str(each.nodes), str(each.fits), each.outcome, each.message)
        for each in about.domains
    ]
    headings = (about.topology_key, "nodes", "members that fit", "outcome", "why")
    parts += listing(headings, domains, limit)
    parts += _members(about, wide)
    if about.victims:
        parts += listing(("victim",), [(each,) for each in about.victims], limit)
    if about.preemption:
        parts.append(f"the group does not preempt: {escape(about.preemption)}")
    if about.decision is not None:
        parts.append(f"[bold]{escape(about.misfit)}[/bold], beside the members before it:")
        parts += rejection_parts(about.decision, wide)
    return parts


def _members(about: GroupExplanation, wide: bool) -> list[RenderableType]:
    """The members; without `wide` only their numbers by state."""
    if wide:
        rows = [(each.pod, each.state, each.node or "-", each.message) for each in about.members]
        return listing(("member", "state", "node", "why"), rows, None)
    table = plain_table("members", "state")
    for state, number in Counter(each.state for each in about.members).items():
        table.add_row(str(number), state)
    return [table] if about.members else []
