"""``stowage bench steady``."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer
from rich.console import Console

from stowage_benchmarks.e2e.command import (
    AsJson,
    Kubeconfig,
    NumNodes,
    NumRunning,
    NumRuns,
    OtherScheduler,
    SchedulerName,
    Server,
    ServerKind,
    TimeoutS,
    check_server,
    check_workloads,
)
from stowage_benchmarks.workloads import WORKLOADS

Rates: TypeAlias = Annotated[
    list[float],
    typer.Option("--rate", min=0.1, help="Pods created a second; may be repeated."),
]
Seconds: TypeAlias = Annotated[
    float, typer.Option(metavar="SECONDS", min=1, help="How long pods are created at each rate.")
]
Workloads: TypeAlias = Annotated[
    list[str], typer.Option("--workload", help="Shape of the pods; may be repeated.")
]
HandOver: TypeAlias = Annotated[
    bool,
    typer.Option(help="Measure the hand-over from a leader to its standby, too; for Stowage only."),
]


def steady(
    command: OtherScheduler = None,
    server: Server = ServerKind.EMBEDDED,
    kubeconfig: Kubeconfig = None,
    nodes: NumNodes = [1000],  # noqa: B006 - typer copies the default
    running: NumRunning = None,
    rate: Rates = [20.0, 50.0, 200.0],  # noqa: B006 - typer copies the default
    seconds: Seconds = 20.0,
    workload: Workloads = ["basic"],  # noqa: B006 - typer copies the default
    runs: NumRuns = 1,
    scheduler_name: SchedulerName = "stowage",
    timeout_s: TimeoutS = 300.0,
    hand_over: HandOver = True,
    json: AsJson = False,
) -> None:
    """Create pods at a constant rate and measure the running scheduler.

    The scheduler starts with 20 waiting pods; first bind counts from that start, and ready from a
    second start of Stowage after the load. CPU a pod is that of the scheduler's process while pods
    are created, and until a second after the last binding, divided by the pods. Latencies are from
    sending the create request to the binding that a watch sees. Requests a pod are those that the
    API server counts, without those of the benchmark. The hand-over is from SIGTERM to the leader
    until its standby has bound a new pod. Exits 1 if a pod was not bound, was bound twice, or a
    node is overcommitted.
    """
    # The Kubernetes client takes a while to import; --help need not wait for it.
    from stowage_benchmarks.steady.plan import SteadyPlan, run_steady_plan  # noqa: PLC0415

    check_server(server, kubeconfig)
    check_workloads(workload, WORKLOADS)
    plan = SteadyPlan(
        other_command=tuple(command or ()),
        workloads=workload,
        sizes=nodes,
        running=running,
        rates=rate,
        seconds=seconds,
        num_runs=runs,
        scheduler_name=scheduler_name,
        timeout_s=timeout_s,
        hand_over=hand_over,
        kubeconfig=kubeconfig,
    )
    raise typer.Exit(run_steady_plan(plan, Console(highlight=False), json))
