"""``stowage bench``."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec
import typer
from rich.console import Console

from scheduler.cli.bench.e2e_command import e2e
from scheduler.cli.bench.workloads import CORE_SIZES, WORKLOADS

app = typer.Typer(no_args_is_help=True, help="Measure what a pod costs.", rich_markup_mode="rich")
app.command()(e2e)


def _known_workload(name: str) -> str:
    if name not in WORKLOADS:
        raise typer.BadParameter(f"{name!r} is not a workload (expected {', '.join(WORKLOADS)})")
    return name


Sizes: TypeAlias = Annotated[
    list[int],
    typer.Option("--nodes", min=100, help="Nodes, and as many running pods; may be repeated."),
]
SomeWorkloads: TypeAlias = Annotated[
    list[str],
    typer.Option("--workload", help="Shape of the pods; may be repeated. All by default."),
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one line of JSON.")]


@app.callback()
def bench() -> None:
    """Measure what a pod costs."""


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


@app.command()
def cluster(
    nodes: Annotated[int, typer.Option(min=1, help="Nodes: 4 CPUs, 32Gi, 10 zones.")] = 5000,
    pods: Annotated[int, typer.Option(min=1, help="Pods that run.")] = 100_000,
    requests: Annotated[int, typer.Option(min=100, help="Requests of each kind.")] = 5000,
    json: AsJson = False,
) -> None:
    """Measure the embedded cluster itself: requests, watch events, memory.

    The cluster runs as a process of its own, without kubelet and controllers, and starts from a
    file with all of it; CPU time and memory are the server's alone.
    """
    from scheduler.cli.bench.cluster import ClusterOptions, run_cluster_bench  # noqa: PLC0415

    options = ClusterOptions(nodes, pods, requests)
    raise typer.Exit(run_cluster_bench(options, Console(highlight=False), json))
