"""``stowage simulate openb`` and its flags."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stowage.cli.lazy_commands import single_command_app


def simulate_openb(
    nodes: Annotated[
        Path, typer.Option(dir_okay=False, metavar="NODES.csv", help="The nodes of the trace.")
    ],
    pods: Annotated[
        list[Path],
        typer.Option(
            dir_okay=False,
            metavar="PODS.csv",
            help="The pods of the trace, which is named after the file; may be repeated, for "
            "several traces with the same nodes.",
        ),
    ],
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
    results: Annotated[
        Path | None,
        typer.Option(
            dir_okay=False,
            metavar="FILE",
            help="Keep each result, one line of JSON, as it comes; those that the file has already "
            "are not computed again.",
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Number of processes; 1 runs in this process. Default: one a CPU if Dask is "
            "installed, else 1.",
        ),
    ] = None,
    dask: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Run on the workers of this Dask scheduler instead."),
    ] = None,
) -> None:
    """Repeat a published experiment of GPU sharing on its traces, with the real engine.

    The pods arrive one by one at the empty cluster, until they have requested 130 % of its GPUs.
    Each is placed at once or has failed for good. The table has means over the seeds.

    Exits with 1 if an experiment has no result.
    """
    # Imported late: --help does not need numpy and the plugins.
    from stowage.cli.simulate.openb_run import OpenbFlags, run_openb  # noqa: PLC0415

    run_openb(OpenbFlags(nodes, tuple(pods), policies, seeds, csv_file, results, workers, dask))


app = single_command_app(simulate_openb)
