"""``stowage tune FILE...`` and its flags."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stowage.analysis.tuning.objectives import Objective
from stowage.api.config.types import API_VERSION, KIND
from stowage.cli.flag_groups import takes_flag_groups
from stowage.cli.lazy_commands import single_command_app
from stowage.cli.simulate.command import parse_seeds
from stowage.cli.simulate.experiment_flags import RunningFlags
from stowage.cli.simulate.workload_files import read_workloads
from stowage.cli.terminal import terminal
from stowage.cli.tune.answer import search_and_answer
from stowage.cli.tune.search_flags import (
    SEARCH,
    AnswerFiles,
    SearchFlags,
    written_configuration,
)
from stowage.cli.tune.task import PRESENT, TuningTask
from stowage.cli.tune.workload_data import WorkloadData


@takes_flag_groups
def tune(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE", help="Workloads, recordings and objects, as for stowage simulate."
        ),
    ],
    objective: Annotated[
        list[Objective] | None,
        SEARCH.option(
            metavar="OBJECTIVE",
            help="What is to become less: nodes in use (packing), fragmentation, differences "
            "between nodes (balance), waiting, preemptions. May be repeated: then the search "
            "looks for the front of the best compromises. Default: packing.",
        ),
    ] = None,
    *,
    search: SearchFlags,
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
    answer: AnswerFiles,
    running: RunningFlags,
) -> None:
    """Find better weights and arguments of score plugins, by simulation.

    Tries which score plugins are worth having, with which weights, and the strategy of
    NodeResourcesFit. A trial that leaves more pods without a node than the present configuration
    does not count. Of several objectives, the compromise with the largest mean gain is written; the
    report shows the others.

    The answer is a KubeSchedulerConfiguration with a comment on what it gains on the arrivals of
    the search, and on those held back. Nothing is applied: put it into the ConfigMap yourself.

    stowage tune openb searches on a published trace of GPU pods; stowage simulate compares
    configurations that you name.
    """

    def make_task() -> TuningTask:
        default = {"apiVersion": API_VERSION, "kind": KIND}
        document = default if config is None else written_configuration(config)
        data = WorkloadData(read_workloads(files), 1 - search.held_back)
        task = TuningTask(document, data, parse_seeds(search.seeds), tuple(feature_gates or ()))
        task.policy(PRESENT).make_engine((), lambda _num_ties: 0, lambda _event: None)
        return task

    objectives = [each.value for each in objective or (Objective.PACKING,)]
    options = search.options(objectives, running)
    console = terminal(stderr=True)
    search_and_answer(make_task, options, answer, console)


app = single_command_app(tune)
