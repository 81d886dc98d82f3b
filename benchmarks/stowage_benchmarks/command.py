"""``stowage bench``."""

from __future__ import annotations

import sys
from typing import Annotated, TypeAlias

import msgspec
import typer
from rich.console import Console

from stowage.cli.plain_help import PlainCommand, PlainGroup
from stowage_benchmarks.chaos.command import chaos, chaos_cluster
from stowage_benchmarks.console.command import console
from stowage_benchmarks.e2e.command import e2e
from stowage_benchmarks.questions.command import questions
from stowage_benchmarks.simulation.command import simulate
from stowage_benchmarks.steady.command import steady
from stowage_benchmarks.steps.command import steps
from stowage_benchmarks.workloads import (
    CLAIMS,
    CORE_SIZES,
    FAILING_PREEMPTION,
    GANG_SIZES,
    MANY_TERMS,
    NETWORK_DEVICES,
    PREEMPTION,
    REQUEUE_STORM,
    WORKLOADS,
)

_CORE_WORKLOADS = (
    *WORKLOADS,
    PREEMPTION,
    FAILING_PREEMPTION,
    CLAIMS,
    NETWORK_DEVICES,
    *GANG_SIZES,
    MANY_TERMS,
    REQUEUE_STORM,
)

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Measure throughput and cost per pod.",
    rich_markup_mode=None,
    cls=PlainGroup,
)
app.command(cls=PlainCommand)(e2e)
app.command(cls=PlainCommand)(steady)
app.command(cls=PlainCommand)(steps)
app.command(cls=PlainCommand)(chaos)
app.command(cls=PlainCommand)(questions)
app.command(cls=PlainCommand)(simulate)
app.command(cls=PlainCommand)(console)
app.command(hidden=True)(chaos_cluster)


def _known_core_workload(name: str) -> str:
    if name not in _CORE_WORKLOADS:
        expected = ", ".join(_CORE_WORKLOADS)
        raise typer.BadParameter(f"{name!r} is not a workload (expected {expected})")
    return name


Sizes: TypeAlias = Annotated[
    list[int],
    typer.Option("--nodes", min=100, help="Number of nodes; may be repeated."),
]
SomeWorkloads: TypeAlias = Annotated[
    list[str],
    typer.Option("--workload", help="Shape of the pods; may be repeated. All by default."),
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one line of JSON.")]


_WITHOUT_PROC = ("core", "steps")
"""Benchmarks of this process alone, whose time the standard library knows."""


@app.callback()
def bench(context: typer.Context) -> None:
    """Measure throughput and cost per pod."""
    name = context.invoked_subcommand
    if sys.platform != "linux" and name not in _WITHOUT_PROC:
        context.fail(f"'{name}' reads CPU time and memory from /proc, which only Linux has.")


@app.command(cls=PlainCommand)
def core(
    nodes: Sizes = list(CORE_SIZES),  # noqa: B006 - typer copies the default
    pods: Annotated[int, typer.Option(min=10, help="Pods to measure per workload.")] = 300,
    workload: SomeWorkloads = list(_CORE_WORKLOADS),  # noqa: B006 - as above
    running: Annotated[
        int, typer.Option("--running", min=1, help="Pods that run on each node at the start.")
    ] = 1,
    json: AsJson = False,
) -> None:
    """Run pods through the engine alone, without I/O, and measure the CPU time of each.

    The CPU time covers a pod from its first event to its confirmed binding. Workload preemption
    fills the nodes first, so that each pod preempts others; in failing-preemption that helps none.
    Workload claims gives each node eight devices and each pod a claim for one of them; in
    network-devices, all nodes of a zone can use a device. Workloads gangs and large-gangs bind
    gangs of 8 and of 1,000 pods on empty nodes; in topology-gangs, each gang of 8 goes to one rack
    of 20 nodes. Workload many-terms binds a few pods with 8,000 affinity terms each. Workload
    requeue-storm measures the cost of changing all nodes while 10,000 pods wait.
    Exits 1 if a pod found no node, or if a storm moved a pod that it does not help or left one that
    it helps.
    """
    from stowage_benchmarks.core.suite import measure_workloads  # noqa: PLC0415 - not for --help

    report = measure_workloads([*map(_known_core_workload, workload)], nodes, pods, running)
    if json:
        typer.echo(msgspec.json.encode(report).decode())
    else:
        report.print(Console(highlight=False))
    raise typer.Exit(int(report.has_failed))


@app.command(cls=PlainCommand)
def cluster(
    nodes: Annotated[int, typer.Option(min=1, help="Nodes: 4 CPUs, 32Gi, 10 zones.")] = 5000,
    pods: Annotated[int, typer.Option(min=1, help="Running pods.")] = 100_000,
    requests: Annotated[int, typer.Option(min=100, help="Requests of each kind.")] = 5000,
    json: AsJson = False,
) -> None:
    """Measure the simulated cluster itself: requests, watch events, memory.

    The cluster runs in its own process without kubelets and controllers, and starts from a file
    with all objects; CPU time and memory are the server's alone.
    """
    from stowage_benchmarks.cluster.run import ClusterOptions, run_cluster_bench  # noqa: PLC0415

    options = ClusterOptions(nodes, pods, requests)
    raise typer.Exit(run_cluster_bench(options, Console(highlight=False), json))
