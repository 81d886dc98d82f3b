"""``stowage bench simulate``."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer
from rich.console import Console


def simulate(
    nodes: Annotated[int, typer.Option(min=1, help="Nodes: 16 CPUs, 64Gi, 3 zones.")] = 1200,
    pods: Annotated[int, typer.Option(min=10, help="Pods that arrive: 2 CPUs, 4Gi.")] = 50_000,
    json: Annotated[bool, typer.Option("--json", help="Print one line of JSON.")] = False,
) -> None:
    """Measure how many pods a simulation places a second of CPU time, and its memory.

    Pods without constraints arrive at random times and end after random times, so that two thirds
    of the CPUs are requested on average; the default profile decides. All of it runs in this
    process, on one core. Exits 1 if a pod found no node.
    """
    from stowage_benchmarks.simulation.run import measure_simulation  # noqa: PLC0415

    cost = measure_simulation(nodes, pods)
    if json:
        typer.echo(msgspec.json.encode(cost).decode())
    else:
        Console(highlight=False).print(cost.text)
    raise typer.Exit(0 if cost.bound == cost.pods else 1)
