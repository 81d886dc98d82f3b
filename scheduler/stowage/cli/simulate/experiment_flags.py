"""Flags of commands that run experiments: where they run, and what is written about them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, TypeAlias

import msgspec
import typer
from rich.console import Console
from rich.markup import escape

from stowage.analysis.simulation.result import ExperimentResult
from stowage.experiments.experiment import Experiment
from stowage.experiments.exports import write_csv, write_parquet
from stowage.experiments.extra import MissingExtra, import_extra
from stowage.experiments.pool import PoolOptions
from stowage.experiments.progress import shown_progress
from stowage.experiments.report.page import simulation_sections, write_report
from stowage.experiments.results_file import UnusableResults
from stowage.experiments.sweep import INTERRUPTED, Sweep, SweepOptions, run_sweep

EXIT_INTERRUPTED = 130
_RUNNING = "Experiments"
_FILES = "Files"

Workers: TypeAlias = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Processes on this machine that run experiments. Default: one for each CPU, if the "
        "rest takes longer than 20 s in one and the extra simulate is installed.",
        rich_help_panel=_RUNNING,
    ),
]
DaskAddress: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--dask",
        metavar="ADDRESS",
        help="Run experiments on the Dask cluster whose scheduler is there, such as "
        "tcp://10.0.0.1:8786, instead of on this machine.",
        rich_help_panel=_RUNNING,
    ),
]
Resume: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        dir_okay=False,
        metavar="FILE",
        help="Write each result to this file as it comes, and do not run experiments again whose "
        "result it has already, unless their input has changed.",
        rich_help_panel=_RUNNING,
    ),
]
ReportFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--report",
        dir_okay=False,
        metavar="FILE.html",
        help="Write a page with plots, which needs no other file and no network.",
        rich_help_panel=_FILES,
    ),
]
CsvFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--csv",
        dir_okay=False,
        metavar="FILE",
        help="Write the metrics: trace, policy, seed, metric, value.",
        rich_help_panel=_FILES,
    ),
]
ParquetFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--parquet",
        dir_okay=False,
        metavar="FILE",
        help="Write metrics, series over time and reasons of failed pods as one table.",
        rich_help_panel=_FILES,
    ),
]


class ResultFiles(msgspec.Struct, frozen=True):
    """The files that results are written to, beside the answer."""

    report: Path | None = None
    csv: Path | None = None
    parquet: Path | None = None

    def check(self) -> None:
        """Check the names and the packages before the first experiment.

        Raises:
            typer.BadParameter: The report has another name.
            MissingExtra: A package is not installed.
        """
        check_report_name(self.report)
        if self.report is not None:
            import_extra("plotly", "--report")
        if self.parquet is not None:
            import_extra("pyarrow", "--parquet")

    def write(self, title: str, subtitle: str, results: Sequence[ExperimentResult]) -> None:
        """Write the files that were asked for.

        Raises:
            OSError: A file cannot be written.
        """
        if self.csv is not None:
            write_csv(self.csv, results)
        if self.parquet is not None:
            write_parquet(self.parquet, results)
        if self.report is not None:
            write_report(self.report, title, subtitle, simulation_sections(results))


def check_report_name(report: Path | None) -> None:
    """Refuse a report that a browser would not show.

    Raises:
        typer.BadParameter: Its name does not end in .html.
    """
    if report is not None and report.suffix not in (".html", ".htm"):
        raise typer.BadParameter(f"--report: {report} (expected a name that ends in .html)")


def run_with_progress(
    experiments: Sequence[Experiment], options: SweepOptions, console: Console
) -> Sweep:
    """Run experiments with a progress bar, and print what became of the sweep."""
    with shown_progress(console, len(experiments)) as on_result:
        sweep = run_sweep(experiments, options, on_result)
    if sweep.num_kept:
        console.print(f"{sweep.num_kept} results are from {options.results}", soft_wrap=True)
    if sweep.num_outdated:
        console.print(
            f"[yellow]{sweep.num_outdated} results in {options.results} were of other inputs: "
            "these experiments were run again[/yellow]",
            soft_wrap=True,
        )
    if sweep.ended_early is not None:
        text = f"{sweep.ended_early}; {sweep.num_missing} of {len(experiments)} not run"
        console.print(f"[red]error:[/red] {escape(text)}", soft_wrap=True)
    return sweep


def pool_options(workers: int | None, dask: str | None) -> PoolOptions:
    """Where experiments run.

    Raises:
        typer.BadParameter: Both flags were given.
    """
    if workers is not None and dask is not None:
        raise typer.BadParameter("--workers is for processes on this machine: not with --dask")
    return PoolOptions(workers, dask)


def exit_code(sweep: Sweep) -> int:
    """130 after Ctrl-C, 1 if an experiment has no result, else 0."""
    if sweep.ended_early == INTERRUPTED:
        return EXIT_INTERRUPTED
    return 1 if sweep.ended_early is not None or sweep.failures else 0


@contextmanager
def experiment_failures_reported(console: Console) -> Iterator[None]:
    """Print why experiments cannot run or cannot be written, and exit with 1."""
    try:
        yield
    except (MissingExtra, UnusableResults) as error:
        console.print(f"[red]error:[/red] {escape(str(error))}", soft_wrap=True)
        raise typer.Exit(1) from error
    except OSError as error:
        text = f"{error.filename}: {error.strerror or error}" if error.filename else str(error)
        console.print(f"[red]error:[/red] {escape(text)}", soft_wrap=True)
        raise typer.Exit(1) from error
