"""Results of ``stowage bench core`` as tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table

from stowage_benchmarks.core.run import CoreResult, MemoryResult


def core_table(results: Sequence[CoreResult]) -> Table:
    """One row per workload, one column per size with median and p99, and the growth."""
    sizes = sorted({result.nodes for result in results})
    table = Table("workload", title="CPU µs a pod through the engine: median (p99)")
    table.title_justify = "left"
    for size in sizes:
        table.add_column(f"{size:,} nodes", justify="right")
    table.add_column("growth", justify="right")
    by_key = {(result.workload, result.nodes): result for result in results}
    for workload in dict.fromkeys(result.workload for result in results):
        row = [by_key[workload, size] for size in sizes if (workload, size) in by_key]
        growth = row[-1].pod_median_us / row[0].pod_median_us
        table.add_row(workload, *(_cell(result) for result in row), f"x{growth:.1f}")
    return table


def memory_table(results: Iterable[MemoryResult]) -> Table:
    """One row per size."""
    table = Table("nodes", title="Bytes the engine keeps", title_justify="left")
    table.add_column("a node", justify="right")
    table.add_column("a running pod", justify="right")
    for result in results:
        table.add_row(
            f"{result.nodes:,}",
            f"{result.bytes_per_node:,.0f}",
            f"{result.bytes_per_running_pod:,.0f}",
        )
    return table


def print_core_results(
    console: Console, results: Sequence[CoreResult], memory: Sequence[MemoryResult]
) -> None:
    """Print the tables that have rows, and the pods that found no node."""
    console.print(core_table(results))
    if memory:
        console.print(memory_table(memory))
    for result in results:
        if result.unscheduled:
            lost = f"{result.unscheduled} of {result.pods} pods found no node"
            console.print(f"[red]failed:[/red] {result.workload}, {result.nodes} nodes: {lost}")


def _cell(result: CoreResult) -> str:
    return f"{result.pod_median_us:,.0f} ({result.pod_p99_us:,.0f})"
