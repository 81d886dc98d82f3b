"""The end-to-end benchmark's results as a table and as a plot."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from statistics import median
from typing import TypeAlias

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from stowage_benchmarks.e2e.result import E2EResult

#: All runs of one scheduler with one workload at one size.
Runs: TypeAlias = Sequence[E2EResult]

#: Attribute, heading, and whether a higher value is better.
_MEASURES = (
    ("binds_per_s", "binds/s", True),
    ("first_bind_s", "first bind\ns", False),
    ("cpu_ms_per_pod", "CPU a pod\nms", False),
    ("cpu_ms_per_pod_after_first_bind", "from the first\nbind on, ms", False),
    ("rss_mib", "peak RSS\nMiB", False),
)


class PlotLibraryMissingError(Exception):
    """matplotlib is not installed."""


def by_case(results: Iterable[E2EResult]) -> list[Runs]:
    """Group the runs of one case, in their order."""
    return [list(runs) for _, runs in groupby(results, _case)]


def e2e_table(results: Iterable[E2EResult]) -> Table:
    """One row per scheduler, workload and size: the best run, and the worst in brackets."""
    table = Table("workload", "scheduler", "nodes", "running", "pods", "runs", box=None)
    for _, heading, _ in _MEASURES:
        table.add_column(heading, justify="right")
    for runs in by_case(results):
        first = runs[0]
        table.add_row(
            first.workload,
            first.scheduler,
            *(f"{count:,}" for count in (first.nodes, first.running, first.pods, len(runs))),
            *(_cell(runs, name, more_is_better) for name, _, more_is_better in _MEASURES),
        )
    return table


def print_results(console: Console, results: Sequence[E2EResult]) -> None:
    """Print the table, and below it the problems."""
    console.print(e2e_table(results))
    for result in results:
        for problem in result.problems:
            console.print(f"[red]failed:[/red] {result.workload}: {escape(problem)}")


def plot_results(results: Sequence[E2EResult], file: Path) -> None:
    """Draw binds per second and CPU per pod, one bar per row of the table.

    Raises:
        PlotLibraryMissingError: matplotlib is not installed.
        ValueError: the file's suffix is not a format that matplotlib writes.
    """
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 - an extra, and slow to import
    except ImportError as error:
        raise PlotLibraryMissingError(
            "to draw, install matplotlib, or stowage-benchmarks with the extra plot"
        ) from error
    cases = by_case(results)[::-1]
    figure = Figure(figsize=(11, 1.5 + 0.3 * len(cases)), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    names = [f"{runs[0].workload}, {runs[0].nodes:,} nodes, {runs[0].scheduler}" for runs in cases]
    for axis, name, title in (
        (axes[0], "binds_per_s", "binds per second, median of the runs"),
        (axes[1], "cpu_ms_per_pod", "scheduler CPU a pod in ms, median of the runs"),
    ):
        values = [[getattr(run, name) or 0.0 for run in runs] for runs in cases]
        middles = [median(each) for each in values]
        below = [middle - min(each) for middle, each in zip(middles, values, strict=True)]
        above = [max(each) - middle for middle, each in zip(middles, values, strict=True)]
        axis.barh(names, middles, xerr=[below, above], capsize=3)
        axis.set_title(title)
        axis.grid(axis="x", alpha=0.3)
    figure.savefig(file)


def _case(result: E2EResult) -> tuple[str, str, int, int, int]:
    return (result.workload, result.scheduler, result.nodes, result.running, result.pods)


def _cell(runs: Runs, name: str, more_is_better: bool) -> str:
    values = [value for run in runs if (value := getattr(run, name)) is not None]
    if not values:
        return "-"
    low, high = min(values), max(values)
    best, worst = (high, low) if more_is_better else (low, high)
    return f"{best:g}" if low == high else f"{best:g} ({worst:g})"
