"""``stowage tune openb`` and its flags."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from stowage.analysis.simulation.openb.experiment import SCHEDULER_NAME
from stowage.analysis.tuning.objectives import OpenbObjective
from stowage.api.config.loading import ConfigError, InvalidConfiguration
from stowage.api.config.types import API_VERSION, KIND
from stowage.cli.flag_groups import takes_flag_groups
from stowage.cli.lazy_commands import single_command_app
from stowage.cli.simulate.command import parse_seeds
from stowage.cli.simulate.experiment_flags import RunningFlags
from stowage.cli.simulate.openb_input import NodesFile, PodsFiles, read_traces
from stowage.cli.simulate.openb_policies import PACKAGE
from stowage.cli.terminal import terminal
from stowage.cli.tune.answer import search_and_answer
from stowage.cli.tune.openb_data import OpenbData
from stowage.cli.tune.search_flags import (
    SEARCH,
    AnswerFiles,
    SearchFlags,
    Trials,
    TrialSeeds,
    written_configuration,
)
from stowage.cli.tune.task import PRESENT, TuningTask


class OpenbSearchFlags(SearchFlags, frozen=True):
    """The flags about the search; its data are pods, and not times."""

    trials: Trials = 32
    seeds: TrialSeeds = "42-43"
    held_back: Annotated[
        float,
        SEARCH.option(
            min=0.05,
            max=0.95,
            help="Share of the pods of each trace, at its end, that the search does not see. The "
            "gain is measured with them, and with other seeds.",
        ),
    ] = 0.3


@takes_flag_groups
def tune_openb(
    nodes: NodesFile,
    pods: PodsFiles,
    objective: Annotated[
        list[OpenbObjective] | None,
        SEARCH.option(
            metavar="OBJECTIVE",
            help="What is to become less: GPUs that are not allocated when all pods have arrived "
            "(allocation), GPUs that typical pods cannot use (fragmentation). May be repeated: "
            "then the search looks for the front. Default: allocation.",
        ),
    ] = None,
    *,
    search: OpenbSearchFlags,
    config: Annotated[
        Path | None,
        typer.Option(
            dir_okay=False,
            metavar="FILE",
            help="The present KubeSchedulerConfiguration; its first profile is tuned. Default: "
            "kube-scheduler's default profile with the plugin GpuSharing.",
        ),
    ] = None,
    files: AnswerFiles,
    running: RunningFlags,
) -> None:
    """Find better weights and arguments of score plugins for the pods of a GPU trace.

    As stowage tune, with the experiment of stowage simulate openb. NodeResourcesFit may look at
    thousandths of GPUs as well.
    """
    console = terminal(stderr=True)

    def make_task() -> TuningTask:
        document = _with_gpu_sharing() if config is None else written_configuration(config)
        data = OpenbData(read_traces(nodes, pods, console), 1 - search.held_back)
        task = TuningTask(document, data, parse_seeds(search.seeds))
        _check(task, search.held_back, is_own=config is None)
        return task

    objectives = [each.value for each in objective or (OpenbObjective.ALLOCATION,)]
    options = search.options(objectives, running)
    search_and_answer(make_task, options, files, console)


def _with_gpu_sharing() -> dict[str, Any]:
    """The default profile, and the plugin that gives GPUs to pods."""
    plugins = {"multiPoint": {"enabled": [{"name": "GpuSharing"}]}}
    profile = {"schedulerName": SCHEDULER_NAME, "plugins": plugins}
    return {"apiVersion": API_VERSION, "kind": KIND, "profiles": [profile]}


def _check(task: TuningTask, held_back: float, *, is_own: bool) -> None:
    """See errors before the first experiment.

    Raises:
        InvalidConfiguration: A plugin is missing, or its arguments are invalid.
        typer.BadParameter: A part of a trace cannot be run.
    """
    policy = task.policy(PRESENT)
    try:
        policy.make_engine({SCHEDULER_NAME}, int, lambda _event: None)
    except InvalidConfiguration as invalid:
        hint = [ConfigError("GpuSharing", "", PACKAGE)] if is_own else []
        raise InvalidConfiguration([*hint, *invalid.errors]) from invalid
    try:
        task.data.first(policy, task.seeds)
    except ValueError as error:
        raise typer.BadParameter(f"--held-back {held_back}: {error}") from error


app = single_command_app(tune_openb)
