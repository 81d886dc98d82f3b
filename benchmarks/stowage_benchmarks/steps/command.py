"""``stowage bench steps``."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec
import typer
from rich.console import Console

Nodes: TypeAlias = Annotated[int, typer.Option("--nodes", min=100, help="Number of nodes.")]
SomeShapes: TypeAlias = Annotated[
    list[str],
    typer.Option("--shape", help="Part of the names of shapes; may be repeated. All by default."),
]
Share: TypeAlias = Annotated[
    float,
    typer.Option(
        metavar="FRACTION",
        min=0.001,
        max=1,
        help="Part of the pods, terms and so on.",
    ),
]
Runs: TypeAlias = Annotated[
    int, typer.Option(min=1, help="Runs of each shape; the one with the shortest step counts.")
]
LimitMs: TypeAlias = Annotated[
    float | None,
    typer.Option("--limit-ms", metavar="MS", min=0, help="Exit 1 if a step takes longer."),
]


def steps(
    nodes: Nodes = 5_000,
    shape: SomeShapes = [],  # noqa: B006 - typer copies the default
    share: Share = 1.0,
    runs: Runs = 1,
    limit_ms: LimitMs = None,
    json: Annotated[bool, typer.Option("--json", help="Print one line of JSON.")] = False,
) -> None:
    """Measure the longest step of the scheduling loop with objects made to be slow.

    Between two steps the scheduler writes, reads and renews its Lease. Each shape is a cluster with
    such objects. It passes through the loop, the engine and the decoding of lists without I/O, in a
    process of its own. Shows the CPU time of the longest step, and of its longest part: an event,
    one step of an attempt, or a page of a list.
    """
    from stowage_benchmarks.steps.report import StepsReport  # noqa: PLC0415 - not for --help
    from stowage_benchmarks.steps.run import measure_shapes, named_shapes  # noqa: PLC0415
    from stowage_benchmarks.steps.shapes.shape import Size  # noqa: PLC0415

    names = named_shapes(shape)
    if not names:
        raise typer.BadParameter(f"{', '.join(shape)} (expected a part of the name of a shape)")
    results = list(measure_shapes(names, Size(nodes, share), runs))
    report = StepsReport(nodes, results, limit_ms)
    if json:
        typer.echo(msgspec.json.encode(report).decode())
    else:
        report.print(Console(highlight=False))
    raise typer.Exit(int(report.has_failed))
