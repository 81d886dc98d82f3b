"""``stowage bench console``."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer
from rich.console import Console


def console(
    nodes: Annotated[int, typer.Option(min=10, help="Nodes: 4 CPUs, 32Gi, 10 zones.")] = 5000,
    pods: Annotated[int, typer.Option(min=100, help="Running pods.")] = 50_000,
    rounds: Annotated[int, typer.Option(min=1, help="Times that each question is repeated.")] = 5,
    pages: Annotated[int, typer.Option(min=0, help="Open pages that read the stream.")] = 20,
    decisions: Annotated[int, typer.Option(min=100, help="Decisions of the stream.")] = 10_000,
    json: Annotated[bool, typer.Option("--json", help="Print one line of JSON.")] = False,
) -> None:
    """Measure the answers of stowage console about a large cluster, and its stream.

    The answers are those of a running console, measured from outside: time, CPU time of its
    processes, compressed bytes, and how long another request waits meanwhile. The stream is
    measured in this process: CPU time of following a decision, with the pages that are told.
    """
    from simcluster.harness.failures import FAILURES, failure_line  # noqa: PLC0415
    from stowage_benchmarks.console.report import print_costs  # noqa: PLC0415
    from stowage_benchmarks.console.run import ConsoleOptions, run_console  # noqa: PLC0415

    progress = Console(stderr=True, highlight=False)
    try:
        result = run_console(
            ConsoleOptions(nodes, pods, rounds, pages, decisions),
            lambda text: progress.print(text, style="dim"),
        )
    except FAILURES as error:
        progress.print(failure_line(error))
        raise typer.Exit(1) from error
    if json:
        typer.echo(msgspec.json.encode(result).decode())
    else:
        print_costs(Console(highlight=False), result)
