"""``stowage bench``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import msgspec
import typer
from rich.console import Console

from scheduler.cli.bench.workloads import CORE_SIZES, WORKLOADS

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
Sizes: TypeAlias = Annotated[
    list[int],
    typer.Option("--nodes", min=100, help="Nodes, and as many running pods; may be repeated."),
]
SomeWorkloads: TypeAlias = Annotated[
    list[str],
    typer.Option("--workload", help="Shape of the pods; may be repeated. All by default."),
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


@app.command()
def core(
    nodes: Sizes = list(CORE_SIZES),  # noqa: B006 - typer copies the default
    pods: Annotated[int, typer.Option(min=10, help="Pods to measure per workload.")] = 300,
    workload: SomeWorkloads = list(WORKLOADS),  # noqa: B006
    json: AsJson = False,
) -> None:
    """Run pods through the engine alone, without I/O, and measure what each costs.

    CPU time of a pod's whole way: seen, scheduled, bound, confirmed. Exits 1 if a pod found no
    node.
    """
    from scheduler.cli.bench.core import measure_core, measure_memory  # noqa: PLC0415
    from scheduler.cli.bench.core_report import print_core_results  # noqa: PLC0415

    results = [
        measure_core(_known_workload(name), size, pods) for name in workload for size in nodes
    ]
    memory = [measure_memory(size) for size in nodes]
    if json:
        report = {"core": results, "memory": memory}
        typer.echo(msgspec.json.encode(report).decode())
    else:
        print_core_results(Console(highlight=False), results, memory)
    raise typer.Exit(int(any(result.unscheduled for result in results)))
