"""``stowage simulate openb`` and its flags."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stowage.cli.flag_groups import Without, takes_flag_groups
from stowage.cli.lazy_commands import single_command_app
from stowage.cli.simulate.command import parse_seeds
from stowage.cli.simulate.experiment_flags import (
    ResultFiles,
    SweepFlags,
    exit_code,
    experiment_failures_reported,
    run_with_progress,
)
from stowage.cli.simulate.openb_input import NodesFile, PodsFiles, read_experiments
from stowage.cli.simulate.openb_output import (
    csv_of,
    order_of_result,
    print_failures,
    print_means,
)
from stowage.cli.terminal import terminal


@takes_flag_groups
def simulate_openb(
    nodes: NodesFile,
    pods: PodsFiles,
    policies: Annotated[
        str,
        typer.Option(
            metavar="POLICY,...",
            help="Random, DotProd, GpuClustering, GpuPacking, BestFit, FGD, or all of them; and "
            "files with a KubeSchedulerConfiguration, named after the file.",
        ),
    ] = "all",
    seeds: Annotated[
        str,
        typer.Option(metavar="SEEDS", help="Seeds of the arrivals, such as 42-51 or 1,2,7."),
    ] = "42-51",
    csv_file: Annotated[
        Path | None,
        typer.Option(
            "--csv",
            dir_okay=False,
            metavar="FILE",
            help="Write the values of each seed: trace, policy, seed, metric, at50 ... at130.",
        ),
    ] = None,
    *,
    files: Annotated[ResultFiles, Without("csv")],
    running: SweepFlags,
) -> None:
    """Repeat a published experiment of GPU sharing on its traces, with the real engine.

    The pods arrive one by one at the empty cluster, until they have requested 130 % of its GPUs.
    Each is placed at once or has failed for good. The table has means over the seeds.

    Exits with 1 if an experiment has no result, or a file cannot be written.
    """
    wanted = parse_seeds(seeds)
    options = running.options()
    console = terminal(stderr=True)
    with experiment_failures_reported(console):
        files.check()
        experiments = read_experiments(nodes, pods, policies, wanted, console)
        sweep = run_with_progress(experiments, options, console)
        results = sorted(sweep.results, key=order_of_result)
        print_means(results)
        print_failures(sweep, console)
        if csv_file is not None:
            csv_file.write_text(csv_of(results), "utf-8")
        files.write("GPU sharing", f"stowage simulate openb; seeds: {seeds}", results)
    raise typer.Exit(exit_code(sweep))


app = single_command_app(simulate_openb)
