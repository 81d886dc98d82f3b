"""``stowage bench``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer
from rich.console import Console

from scheduler.cli.bench.workloads import WORKLOADS

app = typer.Typer(no_args_is_help=True, help="Measure what a pod costs.", rich_markup_mode="rich")


def _known_workload(name: str) -> str:
    if name not in WORKLOADS:
        raise typer.BadParameter(f"{name!r} is not a workload (expected {', '.join(WORKLOADS)})")
    return name


NumNodes: TypeAlias = Annotated[int, typer.Option(min=1, help="Nodes: 4 CPUs, 32Gi, 10 zones.")]
NumRunning: TypeAlias = Annotated[int, typer.Option(min=0, help="Pods that run from the start.")]
NumPods: TypeAlias = Annotated[int, typer.Option(min=2, help="Pods to bind.")]
Workload: TypeAlias = Annotated[
    str,
    typer.Option(callback=_known_workload, help="Shape of the pods: " + ", ".join(WORKLOADS) + "."),
]
TimeoutS: TypeAlias = Annotated[
    float, typer.Option("--timeout", metavar="SECONDS", help="Give up after this long.")
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one line of JSON.")]
Kubeconfig: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Use this API server instead of an embedded cluster. The nodes and pods of the "
        "benchmark are created there, in namespace default, and left there.",
    ),
]


@app.callback()
def bench() -> None:
    """Measure what a pod costs."""


@app.command()
def drain(
    nodes: NumNodes = 1000,
    init: NumRunning = 1000,
    pods: NumPods = 2000,
    workload: Workload = "basic",
    timeout_s: TimeoutS = 300.0,
    json: AsJson = False,
    kubeconfig: Kubeconfig = None,
) -> None:
    """Start the scheduler on a backlog of pods and measure until all are bound.

    The scheduler, and the embedded cluster unless --kubeconfig is given, run as processes of their
    own. Exits 1 if a pod was not bound, was bound twice, or a node is overfull.
    """
    # The Kubernetes client takes a second to import; --help need not wait for it.
    from scheduler.cli.bench.drain import run_drain  # noqa: PLC0415
    from scheduler.cli.bench.drain_result import DrainOptions  # noqa: PLC0415

    options = DrainOptions(workload, nodes, init, pods, timeout_s, kubeconfig)
    raise typer.Exit(run_drain(options, Console(highlight=False), json))
