"""``stowage capacity``: counts how many more pods like one fit into a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stowage.cli.ask.flags import ClusterFlags, Output, OutputFormat
from stowage.cli.flag_groups import takes_flag_groups
from stowage.cli.imports import fast_imports
from stowage.cli.lazy_commands import single_command_app


@takes_flag_groups
def capacity_command(
    filename: Annotated[
        list[Path],
        typer.Option(
            "--filename",
            "-f",
            metavar="FILE",
            help="Manifest of the pod, or of a workload with such pods; - reads standard input. "
            "May be repeated, for what the pod needs.",
        ),
    ],
    max_limit: Annotated[
        int, typer.Option("--max-limit", min=1, help="Stop at this number of pods, or of groups.")
    ] = 1_000_000,
    group_by: Annotated[
        str, typer.Option(metavar="LABEL", help="Label that groups the nodes.")
    ] = "topology.kubernetes.io/zone",
    output: Output = OutputFormat.TABLE,
    *,
    cluster: ClusterFlags,
) -> None:
    """Count how many more pods like one fit, and name what limits them on which nodes.

    If the pods of the manifest name a PodGroup: how many more whole groups fit. The pods come
    beside what runs; none is preempted. The cluster is only read.
    """
    # Imported late: --help does not need numpy and the plugins.
    with fast_imports():
        from stowage.cli.ask.answers import answer_capacity  # noqa: PLC0415

    answer_capacity(cluster, filename, max_limit, group_by, output)


app = single_command_app(capacity_command)
