"""``stowage demo``."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from simcluster.harness.processes import ChildProcesses
from stowage.cli.lazy_commands import single_command_app

_MAX_PROBLEMS_SHOWN = 20


def demo(
    keep: Annotated[
        bool,
        typer.Option("--keep", help="Keep the cluster and the scheduler running until Ctrl-C."),
    ] = False,
) -> None:
    """Place sample workloads on a simulated cluster and report where they went.

    Starts a cluster of 100 nodes and a scheduler, each in its own process, applies Deployments,
    Jobs and pods through the API, and prints where pods were placed, which are pending and why, and
    how fast they were bound. Exits 0 only if every pod that fits a node was bound and no node is
    overcommitted.
    """
    # The Kubernetes client takes long to import; --help does not need it.
    from simcluster.demo.scenario import Demo, run_demo  # noqa: PLC0415

    console = Console()
    with (
        tempfile.TemporaryDirectory(prefix="stowage-demo-") as directory,
        ChildProcesses(Path(directory)) as processes,
    ):
        problems = run_demo(Demo(console, processes, Path(directory)), keep)
    for problem in problems[:_MAX_PROBLEMS_SHOWN]:
        console.print(f"[red]failed:[/red] {escape(problem)}", highlight=False, soft_wrap=True)
    if problems:
        raise typer.Exit(1)


app = single_command_app(demo)
