"""A progress bar with the time left; lines of text where standard error is no terminal."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

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

LINE_EVERY_S = 10.0
"""A line of text follows the last one after this time at the earliest."""


@contextmanager
def shown_progress(
    console: Console,
    total: int,
    what: str = "experiments",
    num_done: int = 0,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Callable[[Outcome], None]]:
    """Show a bar or lines while the body runs; yields what has to be told of each outcome.

    Args:
        console: Standard error; a bar where it is a terminal, else a line now and then.
        total: Number of experiments.
        what: What is counted.
        num_done: How many ended before.
        clock: Of the lines, in seconds.
    """
    if not console.is_terminal:
        yield _Lines(console, total, what, num_done, clock).advance
        return
    progress = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[failed]}"),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(elapsed_when_finished=False),
        console=console,
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


class _Lines:
    """Progress as lines of text, at most one each `LINE_EVERY_S` seconds."""

    def __init__(
        self, console: Console, total: int, what: str, num_done: int, clock: Callable[[], float]
    ) -> None:
        self._console = console
        self._total = total
        self._what = what
        self._num_before = self._num_done = num_done
        self._num_failed = 0
        self._clock = clock
        self._began = self._printed = clock()

    def advance(self, outcome: Outcome) -> None:
        self._num_done += 1
        self._num_failed += outcome.failure is not None
        now = self._clock()
        if now - self._printed < LINE_EVERY_S or self._num_done >= self._total:
            return
        self._printed = now
        taken_s = now - self._began
        left_s = taken_s / (self._num_done - self._num_before) * (self._total - self._num_done)
        failed = f" ({self._num_failed} failed)" if self._num_failed else ""
        took, left = (timedelta(seconds=round(each)) for each in (taken_s, left_s))
        line = f"{self._what} {self._num_done}/{self._total}{failed} {took} left: {left}"
        self._console.print(line, soft_wrap=True, markup=False)
