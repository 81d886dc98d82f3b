"""Prints the result of `stowage bench questions`."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from stowage_benchmarks.questions.run import Answers

FIRST_S = 10.0
FOLLOWING_S = 0.2
"""Targets for 5,000 nodes and 50,000 pods."""


def print_answers(console: Console, answers: Answers) -> None:
    """Print one row per question."""
    title = f"{answers.nodes:,} nodes, {answers.pods:,} pods"
    table = Table(
        "question",
        f"first answer, s (target {FIRST_S:g})",
        "CPU, s",
        "in the shell, s",
        f"again, s (target {FOLLOWING_S:g})",
        "CPU, s",
        title=title,
        title_justify="left",
    )
    for column in table.columns[1:]:
        column.justify = "right"
    for each in answers.costs:
        table.add_row(
            each.question,
            f"{each.first_s:.2f}",
            f"{each.first_cpu_s:.2f}",
            f"{each.new_s:.3f}",
            f"{each.following_s:.3f}",
            f"{each.following_cpu_s:.3f}",
        )
    console.print(table)
    console.print(f"load of the machine before: {answers.load_average:g}")
