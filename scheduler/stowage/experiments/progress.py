"""A progress bar with the time left; on a terminal only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from stowage.experiments.experiment import Outcome

_SPEED_PERIOD_S = 3600.0
"""Experiments take seconds to minutes: their speed is the mean of the last hour."""


@contextmanager
def shown_progress(
    console: Console, total: int, what: str = "experiments", num_done: int = 0
) -> Iterator[Callable[[Outcome], None]]:
    """Show a bar while the body runs; yields what has to be told of each outcome.

    Args:
        console: Standard error. Nothing is shown where it is no terminal.
        total: Number of experiments.
        what: What is counted.
        num_done: How many ended before.
    """
    progress = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[failed]}"),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(elapsed_when_finished=False),
        console=console,
        disable=not console.is_terminal,
        speed_estimate_period=_SPEED_PERIOD_S,
        transient=True,
    )
    task = progress.add_task(what, total=total, failed="", completed=num_done)
    num_failed = 0

    def advance(outcome: Outcome) -> None:
        nonlocal num_failed
        num_failed += outcome.failure is not None
        progress.update(task, advance=1, failed=f"({num_failed} failed)" if num_failed else "")

    with progress:
        yield advance
