"""``stowage simulate FILE...`` and its flags."""

from __future__ import annotations

import gc
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)

from stowage.analysis.simulation.result import ExperimentFailed, ExperimentResult
from stowage.analysis.simulation.run import simulate as run_experiment
from stowage.analysis.simulation.timeline import Workload
from stowage.cli.ask.flags import Output, OutputFormat
from stowage.cli.ask.output import write_answer
from stowage.cli.ask.source import failures_reported
from stowage.cli.imports import garbage_collection_paused
from stowage.cli.lazy_commands import single_command_app
from stowage.cli.simulate.policies import ConfiguredPolicy, read_policies
from stowage.cli.simulate.report import (
    FailedExperiment,
    SimulationAnswer,
    make_answer,
    simulation_tables,
)
from stowage.cli.simulate.workload_files import read_workloads

_POLICIES = "Policies"
_SEEDS = re.compile(r"(\d+)(?:-(\d+))?")
_MAX_SEEDS = 100_000
_INTERRUPTED = 130


def parse_seeds(text: str) -> list[int]:
    """The seeds of a list such as ``1,5,42-51``, ascending in each range.

    Raises:
        typer.BadParameter: It is no such list.
    """
    seeds: list[int] = []
    for part in text.split(","):
        found = _SEEDS.fullmatch(part.strip())
        if found is None:
            raise typer.BadParameter(f"{part!r} (expected a seed such as 42, or a range 42-51)")
        first, last = int(found[1]), int(found[2] or found[1])
        if not first <= last < first + _MAX_SEEDS:
            raise typer.BadParameter(
                f"{part!r} (expected FIRST-LAST, at most {_MAX_SEEDS:,} seeds)"
            )
        seeds += range(first, last + 1)
    return list(dict.fromkeys(seeds))


def simulate(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="Workloads: files with an object of kind Workload, or recordings (a segment, or a "
            "folder: its newest one). Other objects in files, such as those of stowage dump, are "
            "in the cluster at the start of each workload. - reads standard input.",
        ),
    ],
    config: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="KubeSchedulerConfiguration of one policy, named after the file, or default for "
            "kube-scheduler's default profile; may be repeated.",
            show_default="default",
            rich_help_panel=_POLICIES,
        ),
    ] = None,
    weights: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME:]PLUGIN=WEIGHT,...",
            help="One more policy: the first one with other weights of score plugins, in all "
            "profiles; may be repeated.",
            rich_help_panel=_POLICIES,
        ),
    ] = None,
    feature_gates: Annotated[
        list[str] | None,
        typer.Option(
            "--feature-gates",
            metavar="NAME=BOOL,...",
            help="Feature gates of all policies, as for stowage run; may be repeated.",
            rich_help_panel=_POLICIES,
        ),
    ] = None,
    seeds: Annotated[
        str,
        typer.Option(
            metavar="SEEDS",
            help="Seeds of the arrivals and of ties between nodes, such as 42-51 or 1,2,7. Every "
            "policy meets the same arrivals with each seed.",
        ),
    ] = "42",
    output: Output = OutputFormat.TABLE,
    json_file: Annotated[
        Path | None,
        typer.Option(
            "--json",
            dir_okay=False,
            metavar="FILE",
            help="Write the whole answer, with the series over time, to a file as well.",
        ),
    ] = None,
) -> None:
    """Let policies decide about the pods of a workload in virtual time, and compare them.

    The engine is that of stowage run: queue, backoff, preemption and plugins are the real ones.
    Pods arrive, run for their time and end; nodes join, leave and fail. Nothing waits for real
    time.

    The first policy is the one that the others are compared with. Ctrl-C shows what is finished.
    Exits with 1 if an experiment has no result, or --json cannot be written.
    """
    wanted = parse_seeds(seeds)
    console = Console(stderr=True, highlight=False)
    with failures_reported(console), garbage_collection_paused():
        policies = read_policies(config or (), weights or (), feature_gates or ())
        workloads = read_workloads(files)
    finished = _Finished(len(workloads) * len(policies) * len(wanted))
    try:
        _run(workloads, policies, wanted, finished)
    except KeyboardInterrupt:
        finished.was_interrupted = True
    answer = finished.answer()
    is_written = json_file is None or _write(json_file, answer, console)
    write_answer(answer, output, simulation_tables)
    if finished.was_interrupted:
        raise typer.Exit(_INTERRUPTED)
    raise typer.Exit(0 if is_written and not answer.unfinished else 1)


class _Finished:
    """The experiments that have ended."""

    def __init__(self, asked: int) -> None:
        self.asked = asked
        self.results: list[ExperimentResult] = []
        self.failures: list[FailedExperiment] = []
        self.was_interrupted = False

    def answer(self) -> SimulationAnswer:
        return make_answer(self.asked, self.results, self.failures)


def _run(
    workloads: Sequence[Workload],
    policies: Sequence[ConfiguredPolicy],
    seeds: Sequence[int],
    finished: _Finished,
) -> None:
    with _progress() as progress:
        task = progress.add_task("", total=finished.asked)
        for workload in workloads:
            for policy in policies:
                for seed in seeds:
                    text = escape(f"{workload.name}, {policy.name}, seed {seed}")
                    progress.update(task, description=text)
                    try:
                        finished.results.append(run_experiment(workload, policy, seed))
                    except ExperimentFailed as failed:
                        failure = FailedExperiment(workload.name, policy.name, seed, str(failed))
                        finished.failures.append(failure)
                    progress.advance(task)
                    gc.collect()


def _progress() -> Progress:
    """A bar on a terminal; it leaves nothing behind."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not Console(stderr=True).is_terminal,
    )


def _write(file: Path, answer: SimulationAnswer, console: Console) -> bool:
    """Write the answer to a file; False, and the reason is printed, if that is impossible."""
    try:
        file.write_bytes(msgspec.json.encode(answer) + b"\n")
    except OSError as error:
        text = f"{error.filename or file}: {error.strerror or error}"
        console.print(f"[red]error:[/red] {escape(text)}", soft_wrap=True)
        return False
    return True


app = single_command_app(simulate)
