"""Results of ``stowage bench steps`` as a table."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from rich.console import Console
from rich.table import Table

from stowage_benchmarks.steps.run import ShapeResult

LIMIT_MS = 50.0
"""What a step of the loop is to take at most: CPU milliseconds."""


class StepsReport(msgspec.Struct, frozen=True):
    """All results.

    Attributes:
        nodes: Number of nodes.
        shapes: The results.
        limit_ms: The limit to check; None checks none.
    """

    nodes: int
    shapes: Sequence[ShapeResult]
    limit_ms: float | None = None

    @property
    def has_failed(self) -> bool:
        """Whether a step took longer than the limit to check."""
        return self.limit_ms is not None and any(
            each.step_ms > self.limit_ms for each in self.shapes
        )

    def print(self, console: Console) -> None:
        """Print one row per shape."""
        limit_ms = LIMIT_MS if self.limit_ms is None else self.limit_ms
        title = f"Longest steps with {self.nodes:,} nodes: CPU milliseconds"
        table = Table("shape", title=title, title_justify="left")
        for name in ("longest step", "limit", "longest part"):
            table.add_column(name, justify="right")
        table.add_column("kind of that part")
        for each in self.shapes:
            mark = "red" if each.step_ms > limit_ms else "none"
            step = f"[{mark}]{each.step_ms:,.1f}[/]"
            table.add_row(each.shape, step, f"{limit_ms:g}", f"{each.part_ms:,.1f}", each.kind)
        console.print(table)
