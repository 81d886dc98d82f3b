"""``stowage bench questions``."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer
from rich.console import Console


def questions(
    nodes: Annotated[int, typer.Option(min=10, help="Nodes: 4 CPUs, 32Gi, 10 zones.")] = 5000,
    pods: Annotated[int, typer.Option(min=10, help="Running pods.")] = 50_000,
    rounds: Annotated[int, typer.Option(min=1, help="Times that each question is repeated.")] = 5,
    json: Annotated[bool, typer.Option("--json", help="Print one line of JSON.")] = False,
) -> None:
    """Measure the answers of explain, what-if, capacity and compact about a large cluster.

    The first answer is that of a new process, which lists the cluster. The others are those of
    stowage shell, which has the cluster in memory: to a new question, and to the same one again.
    All are measured from outside: time, and CPU time of the process and its children.
    """
    from simcluster.harness.failures import FAILURES, failure_line  # noqa: PLC0415
    from stowage_benchmarks.questions.report import print_answers  # noqa: PLC0415
    from stowage_benchmarks.questions.run import QuestionOptions, run_questions  # noqa: PLC0415

    progress = Console(stderr=True, highlight=False)
    try:
        result = run_questions(
            QuestionOptions(nodes, pods, rounds), lambda text: progress.print(text, style="dim")
        )
    except FAILURES as error:
        progress.print(failure_line(error))
        raise typer.Exit(1) from error
    if json:
        typer.echo(msgspec.json.encode(result).decode())
    else:
        print_answers(Console(highlight=False), result)
