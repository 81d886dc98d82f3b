"""Prints the result of `stowage bench console`."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from stowage_benchmarks.console.run import ConsoleCosts


def print_costs(console: Console, costs: ConsoleCosts) -> None:
    """Print one row per answer, and the cost of the stream."""
    table = Table(
        "answer",
        "s",
        "CPU, s",
        "KiB",
        "longest wait of another request, s",
        title=f"{costs.nodes:,} nodes, {costs.pods:,} pods",
        title_justify="left",
    )
    for column in table.columns[1:]:
        column.justify = "right"
    for each in costs.answers:
        table.add_row(
            each.answer,
            f"{each.median_s:.3f}",
            f"{each.cpu_s:.3f}",
            f"{each.kib:.1f}",
            f"{each.longest_wait_s:.3f}",
        )
    console.print(table)
    stream = costs.stream
    console.print(
        f"a decision, with {stream.pages} pages: {stream.follow_us:.0f} µs CPU to follow the "
        f"cluster, {stream.tell_us:.0f} µs to tell the pages; "
        f"{stream.bytes_a_page:.0f} bytes to each"
    )
    console.print(f"load of the machine before: {costs.load_average:g}")
