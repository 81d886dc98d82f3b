"""``stowage bench chaos``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import msgspec
import typer
from rich.console import Console

from stowage_benchmarks.result_files import check_file

Minutes: TypeAlias = Annotated[
    float, typer.Option(min=0.1, help="How long things go wrong, before all has to be well again.")
]
Seed: TypeAlias = Annotated[int, typer.Option(help="Seed of the fault plan and of the pods.")]
NumNodes: TypeAlias = Annotated[int, typer.Option("--nodes", min=20, help="4 CPUs each, 10 zones.")]
PodsPerS: TypeAlias = Annotated[
    float, typer.Option("--rate", min=1.0, help="Pods created per second.")
]
RecoveryLimit: TypeAlias = Annotated[
    float,
    typer.Option(
        min=0.0,
        metavar="SECONDS",
        help="Time limit for the recovery after the last fault.",
    ),
]
TakeoverAllowance: TypeAlias = Annotated[
    float,
    typer.Option(
        min=0.1,
        metavar="SECONDS",
        help="Time that a new leader may take to bind, besides lease and retry period.",
    ),
]
Claims: TypeAlias = Annotated[
    bool,
    typer.Option("--claims", help="Give some pods claims for devices, and faults to the writes."),
]
Gangs: TypeAlias = Annotated[
    bool,
    typer.Option("--gangs", help="Serve pod groups, and create some pods as members of gangs."),
]
KeepLogs: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        file_okay=False,
        help="Keep the history and the logs of all processes here.",
    ),
]
Report: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        dir_okay=False,
        callback=check_file,
        help="Write the report as JSON here: every 10 s as it is by then, and at the end. "
        "It stays if the run is interrupted.",
    ),
]
Replays: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--replay", help="Let every replica record what it does, and replay all recordings."
    ),
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def chaos(
    minutes: Minutes = 5.0,
    seed: Seed = 1,
    nodes: NumNodes = 200,
    rate: PodsPerS = 62.0,
    recovery_limit: RecoveryLimit = 60.0,
    takeover_allowance: TakeoverAllowance = 2.0,
    claims: Claims = False,
    gangs: Gangs = False,
    logs: KeepLogs = None,
    report: Report = None,
    replay: Replays = False,
    json: AsJson = False,
) -> None:
    """Inject faults into replicas and API server by a seeded plan, and report broken guarantees.

    Three replicas schedule on a cluster whose API server refuses, delays, loses and cuts answers,
    goes down, loses its watch history and is restored from backups. Leaders are killed, stopped,
    cut off in one direction, and run out of disk and memory, nodes are removed and added, and
    another scheduler binds to the same nodes. Exits 1 if a pod was bound twice, a node was
    overcommitted, a device was in two claims, a gang stayed bound in part, a replica wrote
    without the lease, a pod that fits is pending, a pod that does not fit has no reason, a leader
    was replaced too late, a cache differs from the API server, memory grew, or a replay differs
    from its recording.
    """
    # The Kubernetes client takes a while to import; --help need not wait for it.
    from simcluster.harness.failures import FAILURES, failure_line  # noqa: PLC0415
    from stowage_benchmarks.chaos.judge import ChaosOptions  # noqa: PLC0415
    from stowage_benchmarks.chaos.replicas import LeaseTimes  # noqa: PLC0415
    from stowage_benchmarks.chaos.report import print_chaos  # noqa: PLC0415
    from stowage_benchmarks.chaos.run import run_chaos  # noqa: PLC0415

    console, progress = Console(highlight=False), Console(stderr=True, highlight=False)
    times = LeaseTimes(takeover_s=takeover_allowance)
    options = ChaosOptions(
        minutes,
        seed,
        nodes,
        rate,
        recovery_limit,
        replays=replay,
        has_claims=claims,
        has_gangs=gangs,
        times=times,
    )
    try:
        result = run_chaos(options, lambda text: progress.print(text, style="dim"), logs, report)
    except FAILURES as error:
        progress.print(failure_line(error))
        raise typer.Exit(1) from error
    if json:
        typer.echo(msgspec.json.format(msgspec.json.encode(result), indent=1).decode())
    else:
        print_chaos(console, result)
    raise typer.Exit(int(bool(result.violations)))


def chaos_cluster(directory: Path, nodes: int, seed: int, gangs: Gangs = False) -> None:
    """Run the cluster of `stowage bench chaos`."""
    from stowage_benchmarks.chaos.cluster import run_chaos_cluster  # noqa: PLC0415

    run_chaos_cluster(directory, nodes, seed, gangs=gangs)
