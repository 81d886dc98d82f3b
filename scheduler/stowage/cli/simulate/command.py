"""``stowage simulate FILE...`` and its flags."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, TypeAlias

import msgspec
import typer

from stowage.analysis.simulation.timeline import Workload
from stowage.cli.ask.flags import Output, OutputFormat
from stowage.cli.ask.output import write_answer
from stowage.cli.ask.source import failures_reported
from stowage.cli.flag_groups import FlagGroup, Panel, takes_flag_groups
from stowage.cli.imports import garbage_collection_paused
from stowage.cli.lazy_commands import single_command_app
from stowage.cli.simulate.experiment_flags import (
    FILES,
    ResultFiles,
    SweepFlags,
    check_folders,
    exit_code,
    experiment_failures_reported,
    run_with_progress,
)
from stowage.cli.simulate.policies import ConfiguredPolicy, read_policies, stand_in_notes
from stowage.cli.simulate.recorded_experiment import recorded_experiment
from stowage.cli.simulate.report import (
    FailedExperiment,
    SimulationAnswer,
    make_answer,
    simulation_tables,
)
from stowage.cli.simulate.workload_files import read_workloads
from stowage.cli.terminal import terminal
from stowage.experiments.experiment import Outcome
from stowage.experiments.sweep import Sweep, SweepOptions
from stowage.experiments.workload_experiment import Fingerprints, WorkloadExperiment

_POLICIES = Panel("Policies")
_SEEDS = re.compile(r"([0-9]{1,18})(?:-([0-9]{1,18}))?")
_MAX_SEEDS = 100_000


def parse_seeds(text: str) -> list[int]:
    """The seeds of a list such as ``1,5,42-51``, ascending in each range.

    Raises:
        typer.BadParameter: It is no such list.
    """
    seeds: list[int] = []
    for part in text.split(","):
        found = _SEEDS.fullmatch(part.strip())
        if found is None:
            raise typer.BadParameter(
                f"--seeds: {part!r} (expected a seed such as 42, or a range 42-51)"
            )
        first, last = int(found[1]), int(found[2] or found[1])
        if not first <= last < first + _MAX_SEEDS:
            raise typer.BadParameter(
                f"--seeds: {part!r} (expected FIRST-LAST, at most {_MAX_SEEDS:,} seeds)"
            )
        seeds += range(first, last + 1)
    return list(dict.fromkeys(seeds))


class PolicyFlags(FlagGroup, frozen=True):
    """The flags that describe the policies."""

    config: Annotated[
        list[Path] | None,
        _POLICIES.option(
            metavar="FILE",
            help="KubeSchedulerConfiguration of one policy, named after the file, or default for "
            "kube-scheduler's default profile; may be repeated.",
            show_default="default",
        ),
    ] = None
    weights: Annotated[
        list[str] | None,
        _POLICIES.option(
            metavar="[NAME:]PLUGIN=WEIGHT,...",
            help="One more policy: the first one with other weights of score plugins, in all "
            "profiles; may be repeated.",
        ),
    ] = None
    reconfigure: Annotated[
        list[str] | None,
        _POLICIES.option(
            metavar="[NAME:]TIME=FILE",
            help="One more policy: the first one, which changes at this time of the experiment to "
            "the configuration of a file, or to other weights (TIME=PLUGIN=WEIGHT,...), as a "
            "running scheduler does; several changes with ; between them. May be repeated.",
        ),
    ] = None
    feature_gates: Annotated[
        list[str] | None,
        _POLICIES.option(
            metavar="NAME=BOOL,...",
            help="Feature gates of all policies, as for stowage run; may be repeated.",
        ),
    ] = None

    def read(self) -> list[ConfiguredPolicy]:
        """The policies.

        Raises:
            InvalidConfiguration: A policy is invalid.
        """
        return read_policies(
            self.config or (),
            self.weights or (),
            self.feature_gates or (),
            self.reconfigure or (),
        )


JsonFile: TypeAlias = Annotated[
    Path | None,
    FILES.option(
        "--json",
        dir_okay=False,
        metavar="FILE",
        help="Write the whole answer, with the series over time, to a file as well.",
    ),
]
RecordFolder: TypeAlias = Annotated[
    Path | None,
    FILES.option(
        file_okay=False,
        metavar="DIR",
        help="Record all events and decisions of the experiment in a new file of this folder, "
        "for stowage console --from and stowage replay. Only for one workload, one policy and "
        "one seed.",
    ),
]


@takes_flag_groups
def simulate(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE",
            help="Workloads: files with an object of kind Workload, or recordings (a segment, or a "
            "folder: its newest one). Other objects in files, such as those of stowage dump, are "
            "in the cluster at the start of each workload. - reads standard input.",
        ),
    ],
    *,
    policy: PolicyFlags,
    seeds: Annotated[
        str,
        typer.Option(
            metavar="SEEDS",
            help="Seeds of the arrivals and of ties between nodes, such as 42-51 or 1,2,7. Every "
            "policy meets the same arrivals with each seed.",
        ),
    ] = "42",
    output: Output = OutputFormat.TABLE,
    json_file: JsonFile = None,
    files_beside: ResultFiles,
    record: RecordFolder = None,
    running: SweepFlags,
) -> None:
    """Let policies decide about the pods of a workload in virtual time, and compare them.

    The engine is that of stowage run: queue, backoff, preemption and plugins are the real ones.
    Pods arrive, run for their time and end; nodes join, leave and fail. Nothing waits for real
    time.

    The first policy is the one that the others are compared with. Experiments run in several
    processes; the answer does not depend on their number. Ctrl-C shows what is finished. Exits
    with 1 if an experiment has no result, or a file cannot be written.

    stowage simulate openb runs the published experiment on a trace of GPU pods; stowage tune finds
    better weights.
    """
    wanted = parse_seeds(seeds)
    options = running.options()
    console = terminal(stderr=True)
    with experiment_failures_reported(console):
        files_beside.check()
        check_folders({"--json": json_file})
        with failures_reported(console), garbage_collection_paused():
            policies = policy.read()
            workloads = read_workloads(files)
        experiments = _experiments(workloads, policies, wanted, running.resume)
        if record is not None:
            experiments = [_recorded(experiments, policies[0], record, options)]
        sweep = run_with_progress(experiments, options, console)
        notes = list(stand_in_notes(workloads, policies, wanted[0]))
        answer = _answer(experiments, sweep, notes)
        write_answer(answer, output, simulation_tables)
        if json_file is not None:
            json_file.write_bytes(msgspec.json.encode(answer) + b"\n")
        files_beside.write("Simulation", _subtitle(policies, wanted), answer.results)
    raise typer.Exit(exit_code(sweep))


def _experiments(
    workloads: Sequence[Workload],
    policies: Sequence[ConfiguredPolicy],
    seeds: Sequence[int],
    resume: Path | None,
) -> list[WorkloadExperiment]:
    """All experiments; with fingerprints only if their results are kept."""
    fingerprints = Fingerprints()
    return [
        WorkloadExperiment(
            workload,
            policy,
            seed,
            fingerprints.of(workload, policy, seed) if resume is not None else "",
        )
        for workload in workloads
        for policy in policies
        for seed in seeds
    ]


def _recorded(
    experiments: Sequence[WorkloadExperiment],
    policy: ConfiguredPolicy,
    folder: Path,
    options: SweepOptions,
) -> WorkloadExperiment:
    """The experiment, with its recording.

    Raises:
        typer.BadParameter: There are several, or it may run elsewhere or not at all.
        OSError: The folder cannot be made.
    """
    if len(experiments) > 1:
        raise typer.BadParameter(
            f"--record: {len(experiments)} experiments (expected one workload, one policy and one "
            "seed)"
        )
    if options.pool.dask is not None or options.results is not None:
        raise typer.BadParameter("--record: expected no --dask and no --resume beside it")
    folder.mkdir(parents=True, exist_ok=True)
    return recorded_experiment(experiments[0], policy, folder, time.time())


def _answer(
    experiments: Sequence[WorkloadExperiment], sweep: Sweep, notes: Sequence[str]
) -> SimulationAnswer:
    by_key = {each.key: each for each in experiments}
    failures = [_failed(by_key[each.key], each) for each in sweep.failures]
    return make_answer(len(experiments), sweep.results, failures, notes)


def _failed(experiment: WorkloadExperiment, outcome: Outcome) -> FailedExperiment:
    workload, policy = experiment.workload.name, experiment.policy.name
    return FailedExperiment(workload, policy, experiment.seed, outcome.failure or "")


def _subtitle(policies: Sequence[ConfiguredPolicy], seeds: Sequence[int]) -> str:
    names = ", ".join(each.name for each in policies)
    return f"stowage simulate; policies: {names}; seeds: {', '.join(map(str, seeds))}"


app = single_command_app(simulate)
