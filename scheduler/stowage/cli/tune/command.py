"""``stowage tune`` and its flags."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from stowage.analysis.simulation.result import ExperimentFailed
from stowage.analysis.tuning.objectives import Objective
from stowage.analysis.tuning.search_space import configuration_with
from stowage.api.config.types import API_VERSION, KIND
from stowage.cli.ask.source import failures_reported
from stowage.cli.config_file import parse_configuration, parse_document, read_text
from stowage.cli.lazy_commands import single_command_app
from stowage.cli.simulate.command import parse_seeds
from stowage.cli.simulate.experiment_flags import (
    EXIT_INTERRUPTED,
    DaskAddress,
    ReportFile,
    Workers,
    check_report_name,
    experiment_failures_reported,
    pool_options,
)
from stowage.cli.simulate.workload_files import read_workloads
from stowage.cli.tune.task import PRESENT, TuningTask
from stowage.experiments.extra import import_extra
from stowage.experiments.pool import ClusterVanished
from stowage.experiments.report.page import write_report

_SEARCH = "Search"


def tune(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...", help="Workloads, recordings and objects, as for stowage simulate."
        ),
    ],
    objective: Annotated[
        list[Objective] | None,
        typer.Option(
            metavar="OBJECTIVE",
            help="What is to become less: nodes in use (packing), fragmentation, differences "
            "between nodes (balance), waiting, preemptions. May be repeated: then the search "
            "looks for the front of the best compromises. Default: packing.",
            rich_help_panel=_SEARCH,
        ),
    ] = None,
    trials: Annotated[
        int, typer.Option(min=1, help="Configurations to try.", rich_help_panel=_SEARCH)
    ] = 64,
    seeds: Annotated[
        str, typer.Option(metavar="SEEDS", help="Seeds of each trial.", rich_help_panel=_SEARCH)
    ] = "1-3",
    held_back: Annotated[
        float,
        typer.Option(
            min=0.05,
            max=0.95,
            help="Share of the time of each workload, at its end, that the search does not see. "
            "The gain is measured there again, with other seeds.",
            rich_help_panel=_SEARCH,
        ),
    ] = 0.3,
    max_weight: Annotated[
        int,
        typer.Option(
            min=1, max=100, help="Largest weight; 0 disables a plugin.", rich_help_panel=_SEARCH
        ),
    ] = 10,
    storage: Annotated[
        Path | None,
        typer.Option(
            dir_okay=False,
            metavar="FILE",
            help="Keep the trials in this file; an interrupted search goes on from it.",
            rich_help_panel=_SEARCH,
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            dir_okay=False,
            metavar="FILE",
            help="The present KubeSchedulerConfiguration; its first profile is tuned. Default: "
            "kube-scheduler's default profile.",
        ),
    ] = None,
    feature_gates: Annotated[
        list[str] | None,
        typer.Option("--feature-gates", metavar="NAME=BOOL,...", help="As for stowage simulate."),
    ] = None,
    write: Annotated[
        Path | None,
        typer.Option(
            dir_okay=False,
            metavar="FILE",
            help="Where the configuration is written. Default: standard output.",
        ),
    ] = None,
    report: ReportFile = None,
    workers: Workers = None,
    dask: DaskAddress = None,
) -> None:
    """Find better weights and arguments of score plugins, by simulation.

    Tries which score plugins are worth having, with which weights, and the strategy of
    NodeResourcesFit. A trial that leaves more pods without a node than the present configuration
    does not count. Of several objectives, the compromise with the largest mean gain is written; the
    report shows the others.

    The answer is a KubeSchedulerConfiguration with a comment on what it gains on the arrivals of
    the search, and on those held back. Nothing is applied: put it into the ConfigMap yourself.
    """
    console = Console(stderr=True, highlight=False)
    check_report_name(report)
    pool = pool_options(workers, dask)
    with experiment_failures_reported(console), _search_failures_reported(console, storage):
        import_extra("optuna", "stowage tune")
        if report is not None:
            import_extra("plotly", "--report")
        # Imported late: Optuna is slow to import, and --help does not need it.
        from stowage.cli.tune.finding import configuration_text  # noqa: PLC0415
        from stowage.cli.tune.plots import report_sections  # noqa: PLC0415
        from stowage.cli.tune.tuning import TuningOptions, tuned  # noqa: PLC0415

        with failures_reported(console):
            gates = tuple(feature_gates or ())
            task = TuningTask(
                _document(config), read_workloads(files), held_back, parse_seeds(seeds), gates
            )
            task.policy(PRESENT).make_engine((), lambda _num_ties: 0, lambda _event: None)
        objectives = [each.value for each in objective or (Objective.PACKING,)]
        options = TuningOptions(objectives, trials, max_weight, storage, pool)
        found = tuned(task, options, console)
        command = shlex.join(["stowage", *sys.argv[1:]])
        document = configuration_with(task.written, found.finding.trial.choices)
        text = configuration_text(document, found.finding, _data(task), command)
        if write is not None:
            write.write_text(text, encoding="utf-8")
        else:
            sys.stdout.write(text)
        if report is not None:
            write_report(report, "Tuning", command, report_sections(objectives, found))
    if not found.finding.is_confirmed:
        text = "the held-back arrivals do not confirm the gain"
        console.print(f"[yellow]warning:[/yellow] {text}", soft_wrap=True)


def _document(config: Path | None) -> dict[str, Any]:
    """The present configuration as it is written.

    Raises:
        InvalidConfiguration: It cannot be read, or is invalid.
    """
    if config is None:
        return {"apiVersion": API_VERSION, "kind": KIND}
    text = read_text(config, "--config")
    parse_configuration(text, "--config", str(config))
    document: dict[str, Any] = parse_document(text, "--config", str(config)).builtins
    return document


def _data(task: TuningTask) -> tuple[str, str]:
    """What the search saw, and what was held back."""
    names = ", ".join(each.name for each in task.workloads)
    share = f"{1 - task.held_back:.0%}"
    return (
        f"the first {share} of the time of {names}, seeds {_seeds(task.seeds)}",
        f"the rest of the time, seeds {_seeds(task.held_back_seeds)}",
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
        console.print(f"[red]error:[/red] {escape(f'interrupted{kept}')}", soft_wrap=True)
        raise typer.Exit(EXIT_INTERRUPTED) from interrupt
    except (ClusterVanished, ExperimentFailed) as error:
        console.print(f"[red]error:[/red] {escape(f'{error}{kept}')}", soft_wrap=True)
        raise typer.Exit(1) from error


app = single_command_app(tune)
