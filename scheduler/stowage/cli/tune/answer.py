"""Searches, and writes the configuration that was found and the report."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import typer
from rich.console import Console

from stowage.analysis.simulation.result import ExperimentFailed
from stowage.analysis.tuning.search_space import configuration_with
from stowage.cli.ask.source import failures_reported
from stowage.cli.failures import print_error
from stowage.cli.simulate.experiment_flags import (
    EXIT_INTERRUPTED,
    check_folders,
    check_report_name,
    experiment_failures_reported,
)
from stowage.cli.tune.search_flags import AnswerFiles
from stowage.cli.tune.task import TuningOptions, TuningTask
from stowage.experiments.extra import import_extra
from stowage.experiments.pool import ClusterVanished
from stowage.experiments.report.page import write_report


def search_and_answer(
    make_task: Callable[[], TuningTask],
    options: TuningOptions,
    files: AnswerFiles,
    console: Console,
) -> None:
    """Search, and write what was found.

    Args:
        make_task: Reads the data, and checks the present configuration.
        options: How to search.
        files: What to write.
        console: For progress, errors and the warning that a gain is not confirmed.

    Raises:
        typer.Exit: With 1, or 130 after Ctrl-C; the reason is printed.
    """
    check_report_name(files.report)
    check_folders({"--report": files.report, "--write": files.write, "--storage": options.storage})
    with experiment_failures_reported(console), _search_failures_reported(console, options.storage):
        import_extra("optuna", "stowage tune")
        if files.report is not None:
            import_extra("plotly", "--report")
        # Optuna takes seconds to import: not for those who ask for help.
        from stowage.cli.tune.finding import configuration_text  # noqa: PLC0415
        from stowage.cli.tune.plots import report_sections  # noqa: PLC0415
        from stowage.cli.tune.tuning import tuned  # noqa: PLC0415

        with failures_reported(console):
            task = make_task()
        found = tuned(task, options, console)
        command = shlex.join(["stowage", *sys.argv[1:]])
        document = configuration_with(task.written, found.finding.trial.choices)
        text = configuration_text(document, found.finding, _data(task), command)
        if files.write is not None:
            files.write.write_text(text, encoding="utf-8")
        else:
            sys.stdout.write(text)
        if files.report is not None:
            sections = report_sections(options.objectives, found)
            write_report(files.report, "Tuning", command, sections)
    if not found.finding.is_confirmed:
        text = "the held-back arrivals do not confirm the gain"
        console.print(f"[yellow]warning:[/yellow] {text}", soft_wrap=True)


def _data(task: TuningTask) -> tuple[str, str]:
    """What the search saw, and what was held back."""
    first, held_back = task.data.parts
    return (
        f"{first}, seeds {_seeds(task.seeds)}",
        f"{held_back}, seeds {_seeds(task.held_back_seeds)}",
    )


def _seeds(seeds: Sequence[int]) -> str:
    return ", ".join(map(str, seeds))


@contextmanager
def _search_failures_reported(console: Console, storage: Path | None) -> Iterator[None]:
    """Print why a search ended early, and what is kept of it."""
    kept = f"; the trials that ended are in {storage}" if storage is not None else ""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        print_error(console, f"interrupted{kept}")
        raise typer.Exit(EXIT_INTERRUPTED) from interrupt
    except (ClusterVanished, ExperimentFailed) as error:
        print_error(console, f"{error}{kept}")
        raise typer.Exit(1) from error
