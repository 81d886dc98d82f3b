"""Flags of commands that run experiments: where they run, and what is written about them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, TypeAlias

import typer
from rich.console import Console

from stowage.analysis.simulation.result import ExperimentResult
from stowage.cli.failures import os_error_text, print_error
from stowage.cli.flag_groups import FlagGroup, Panel
from stowage.experiments.experiment import Experiment
from stowage.experiments.exports import write_csv, write_parquet
from stowage.experiments.extra import MissingExtra, import_extra
from stowage.experiments.pool import PoolOptions
from stowage.experiments.progress import shown_progress
from stowage.experiments.report.page import simulation_sections, write_report
from stowage.experiments.results_file import UnusableResults
from stowage.experiments.sweep import INTERRUPTED, Sweep, SweepOptions, run_sweep

EXIT_INTERRUPTED = 130
_RUNNING = Panel("Experiments")
FILES = Panel("Files")


class RunningFlags(FlagGroup, frozen=True):
    """The flags that say where experiments run."""

    workers: Annotated[
        int | None,
        _RUNNING.option(
            min=1,
            metavar="N",
            help="Processes on this machine that run experiments. Default: one for each CPU, if "
            "the rest takes longer than 20 s in one and the extra simulate is installed.",
        ),
    ] = None
    dask: Annotated[
        str | None,
        _RUNNING.option(
            metavar="ADDRESS",
            help="Run experiments on the Dask cluster whose scheduler is there, such as "
            "tcp://10.0.0.1:8786, instead of on this machine.",
        ),
    ] = None

    def pool_options(self) -> PoolOptions:
        """Where experiments run.

        Raises:
            typer.BadParameter: Both flags were given.
        """
        if self.workers is not None and self.dask is not None:
            raise typer.BadParameter("--workers is for processes on this machine: not with --dask")
        return PoolOptions(self.workers, self.dask)


class SweepFlags(RunningFlags, frozen=True):
    """The flags that say where experiments run, and which of them need not run again."""

    resume: Annotated[
        Path | None,
        _RUNNING.option(
            dir_okay=False,
            metavar="FILE",
            help="Write each result to this file as it comes, and do not run experiments again "
            "whose result it has already, unless their input has changed.",
        ),
    ] = None

    def options(self) -> SweepOptions:
        """How the experiments run.

        Raises:
            typer.BadParameter: The flags contradict each other.
        """
        return SweepOptions(self.pool_options(), self.resume)


ReportFile: TypeAlias = Annotated[
    Path | None,
    FILES.option(
        dir_okay=False,
        metavar="FILE.html",
        help="Write a page with plots, which needs no other file and no network.",
    ),
]


class ResultFiles(FlagGroup, frozen=True):
    """The files that results are written to, beside the answer."""

    csv: Annotated[
        Path | None,
        FILES.option(
            dir_okay=False,
            metavar="FILE",
            help="Write the metrics: trace, policy, seed, metric, value.",
        ),
    ] = None
    parquet: Annotated[
        Path | None,
        FILES.option(
            dir_okay=False,
            metavar="FILE",
            help="Write metrics, series over time and reasons of failed pods as one table.",
        ),
    ] = None
    report: ReportFile = None

    def check(self) -> None:
        """Check the names and the packages before the first experiment.

        Raises:
            typer.BadParameter: The report has another name, or the folder of a file is missing.
            MissingExtra: A package is not installed.
        """
        check_report_name(self.report)
        check_folders({"--csv": self.csv, "--parquet": self.parquet, "--report": self.report})
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


def check_folders(files: Mapping[str, Path | None]) -> None:
    """Refuse files that cannot be written once hours of experiments are over.

    Args:
        files: Flag -> its file, if it is given.

    Raises:
        typer.BadParameter: The folder of a file does not exist.
    """
    for flag, file in files.items():
        if file is not None and not file.parent.is_dir():
            raise typer.BadParameter(f"{flag}: {file} (expected a file in a folder that exists)")


def run_with_progress(
    experiments: Sequence[Experiment], options: SweepOptions, console: Console
) -> Sweep:
    """Run experiments with a progress bar, and print what became of the sweep."""
    with shown_progress(console, len(experiments)) as on_result:
        sweep = run_sweep(experiments, options, on_result)
    if sweep.num_kept:
        console.print(f"results from {options.results}: {sweep.num_kept}", soft_wrap=True)
    if sweep.num_outdated:
        console.print(
            f"[yellow]run again, because their inputs have changed: {sweep.num_outdated}[/yellow]",
            soft_wrap=True,
        )
    if sweep.ended_early is not None:
        text = f"{sweep.ended_early}; {sweep.num_missing} of {len(experiments)} not run"
        print_error(console, text)
    return sweep


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
        print_error(console, error)
        raise typer.Exit(1) from error
    except BrokenPipeError:
        raise  # the reader of the answer, such as head, has enough
    except OSError as error:
        print_error(console, os_error_text(error))
        raise typer.Exit(1) from error
