"""``stowage bench e2e``."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeAlias

import typer
from rich.console import Console

from stowage_benchmarks.e2e.scenarios import SCENARIOS, Size
from stowage_benchmarks.result_files import check_plot


class ServerKind(StrEnum):
    """The API server that a benchmark uses."""

    EMBEDDED = "embedded"
    KUBECONFIG = "kubeconfig"


OtherScheduler: TypeAlias = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[-- COMMAND...]",
        help="Another scheduler to measure beside this one; {kubeconfig} in it becomes a path.",
        show_default=False,
    ),
]
Server: TypeAlias = Annotated[
    ServerKind,
    typer.Option(help="embedded starts a fresh cluster for each run, without kubelets."),
]
Kubeconfig: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        exists=True,
        dir_okay=False,
        help="The API server of --server kubeconfig. Nodes and pods are created there "
        "in namespace default and deleted: use a server for tests.",
    ),
]
NumNodes: TypeAlias = Annotated[
    list[int],
    typer.Option("--nodes", min=1, help="Nodes: 4 CPUs, 32Gi, 10 zones; may be repeated."),
]
NumRunning: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--running", min=0, help="Pods that run from the start.", show_default="as many as nodes"
    ),
]
NumPods: TypeAlias = Annotated[int, typer.Option("--pods", min=2, help="Pods to bind.")]
Workloads: TypeAlias = Annotated[
    list[str],
    typer.Option("--workload", help="What to bind; may be repeated. All by default."),
]
NumRuns: TypeAlias = Annotated[int, typer.Option("--runs", min=1, help="How often each is run.")]
SchedulerName: TypeAlias = Annotated[str, typer.Option(help="The pods' spec.schedulerName.")]
TimeoutS: TypeAlias = Annotated[
    float,
    typer.Option("--timeout", min=0.0, metavar="SECONDS", help="Give a run up after this long."),
]
PlotFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        dir_okay=False,
        callback=check_plot,
        help="Draw the results too, as .svg, .png or .pdf.",
    ),
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one line of JSON.")]


def e2e(
    command: OtherScheduler = None,
    server: Server = ServerKind.EMBEDDED,
    kubeconfig: Kubeconfig = None,
    nodes: NumNodes = [1000],  # noqa: B006 - typer copies the default
    running: NumRunning = None,
    pods: NumPods = 2000,
    workload: Workloads = list(SCENARIOS),  # noqa: B006 - typer copies the default
    runs: NumRuns = 1,
    scheduler_name: SchedulerName = "stowage",
    timeout_s: TimeoutS = 300.0,
    plot: PlotFile = None,
    json: AsJson = False,
) -> None:
    """Start the scheduler on a backlog of pods and measure until all are bound.

    The table shows the best run and, in brackets, the worst. Binds per second are counted between
    the first and the last binding that a watch saw. CPU time is that of the scheduler's process,
    its start included. Scheduler and simulated cluster run in separate processes. Exits 1 if a pod
    was not bound, was bound twice, or a node is overcommitted.
    """
    # The Kubernetes client takes a while to import; --help need not wait for it.
    from stowage_benchmarks.e2e.plan import E2EPlan, run_plan  # noqa: PLC0415

    check_server(server, kubeconfig)
    check_workloads(workload, SCENARIOS)
    plan = E2EPlan(
        other_command=tuple(command or ()),
        workloads=workload,
        sizes=[Size(each, each if running is None else running, pods) for each in nodes],
        num_runs=runs,
        scheduler_name=scheduler_name,
        timeout_s=timeout_s,
        kubeconfig=kubeconfig,
    )
    raise typer.Exit(run_plan(plan, Console(highlight=False), plot, json))


def check_server(server: ServerKind, kubeconfig: Path | None) -> None:
    """Check that a kubeconfig is given if, and only if, it is used.

    Raises:
        typer.BadParameter: One flag lacks the other.
    """
    if (server is ServerKind.KUBECONFIG) != (kubeconfig is not None):
        raise typer.BadParameter("--server kubeconfig and --kubeconfig FILE belong together")


def check_workloads(names: Iterable[str], known: Iterable[str]) -> None:
    """Check the names of workloads.

    Raises:
        typer.BadParameter: One is not known.
    """
    expected = list(known)
    for name in names:
        if name not in expected:
            text = ", ".join(expected)
            raise typer.BadParameter(f"{name!r} is not a workload (expected {text})")
