"""The progress bar of the demo."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from simcluster.harness.placements import Placement


class DemoProgress:
    """A bar of bound pods, with the number of unschedulable ones."""

    def __init__(self, console: Console, total: int) -> None:
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
            transient=True,
        )
        self._task = self._progress.add_task("pods bound", total=total)

    def __enter__(self) -> DemoProgress:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def show(self, placements: Mapping[str, Placement]) -> None:
        """Update the bar."""
        num_bound = sum(each.bound_at is not None for each in placements.values())
        num_refused = sum(
            each.bound_at is None and each.is_unschedulable for each in placements.values()
        )
        self._progress.update(
            self._task,
            completed=num_bound,
            description=f"pods bound ({len(placements)} created, {num_refused} unschedulable)",
        )
