"""Results of ``stowage bench cluster`` as tables."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from stowage_benchmarks.cluster.result import ClusterResult, RequestCost, WatchCost

LOAD_LIMIT_S = 20
"""Limit for the start with 5,000 nodes and 100,000 pods."""
_ROWS = (
    ("load_s", f"start from a file of all of it (at most {LOAD_LIMIT_S:g})", "s"),
    ("file_mib", "its size", "MiB"),
    ("rss_mib", "resident memory with all of them", "MiB"),
    ("peak_rss_mib", "peak of it, at the end", "MiB"),
    ("list_s", "all pods in one list", "s"),
    ("list_mib", "its size", "MiB"),
    ("longest_wait_ms", "longest wait for a small answer meanwhile", "ms"),
)


def request_table(requests: tuple[RequestCost, ...]) -> Table:
    """One row per kind of request."""
    table = Table("request", "requests", "per second", "server CPU, ms each")
    for column in table.columns[1:]:
        column.justify = "right"
    for each in requests:
        table.add_row(
            each.kind, f"{each.requests:,}", f"{each.per_s:,.0f}", f"{each.server_cpu_ms:.3f}"
        )
    return table


def watch_table(watches: tuple[WatchCost, ...]) -> Table:
    """One row per kind of event."""
    table = Table(
        "events", "watchers", "to each", "per second to the slowest", "server CPU, µs an event"
    )
    for column in table.columns[1:]:
        column.justify = "right"
    for each in watches:
        table.add_row(
            each.kind,
            str(each.watchers),
            f"{each.events:,}",
            f"{each.per_s_to_slowest:,.0f}",
            f"{each.server_cpu_us:.1f}",
        )
    return table


def print_cluster_result(console: Console, result: ClusterResult) -> None:
    """Print all three tables."""
    title = f"{result.nodes:,} nodes, {result.pods:,} pods"
    table = Table("measure", "", "unit", title=title, title_justify="left")
    table.columns[1].justify = "right"
    for name, text, unit in _ROWS:
        table.add_row(text, f"{getattr(result, name):g}", unit)
    console.print(table)
    console.print(request_table(result.requests))
    console.print(watch_table(result.watches))
