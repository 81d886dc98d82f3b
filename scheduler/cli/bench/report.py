"""A benchmark's result as a table."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from scheduler.cli.bench.drain_result import DrainResult

_ROWS = (
    ("bound", "bound", "pods"),
    ("binds_per_s", "binds per second, first to last", "1/s"),
    ("first_bind_s", "start of the scheduler to the first bind", "s"),
    ("last_bind_s", "start of the scheduler to the last bind", "s"),
    ("cpu_ms_per_pod", "CPU of the scheduler a pod, its start included", "ms"),
    ("cpu_ms_per_pod_after_first_bind", "the same, from the first bind on", "ms"),
    ("rss_mib", "peak resident memory of the scheduler", "MiB"),
    ("max_on_node", "most pods on one node", "pods"),
    ("nodes_used", "nodes used", "nodes"),
)


def drain_table(result: DrainResult) -> Table:
    """One row a measure."""
    title = f"{result.workload}: {result.pods} pods, {result.nodes} nodes, {result.init} running"
    table = Table("measure", "", "unit", title=title, title_justify="left")
    table.columns[1].justify = "right"
    for name, text, unit in _ROWS:
        value = getattr(result, name)
        table.add_row(text, "-" if value is None else f"{value:g}", unit)
    return table


def print_drain_result(console: Console, result: DrainResult) -> None:
    """Print the table, and below it what must not be."""
    console.print(drain_table(result))
    for problem in result.problems:
        console.print(f"[red]failed:[/red] {escape(problem)}")
