"""The results under steady load as two tables: by rate, and of the process."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from stowage_benchmarks.steady.result import SteadyResult

_BY_RATE = (
    ("cpu_ms_per_pod", "CPU a pod\nms"),
    ("requests_per_pod", "requests\na pod"),
    ("p50_ms", "p50\nms"),
    ("p90_ms", "p90\nms"),
    ("p99_ms", "p99\nms"),
    ("max_ms", "max\nms"),
)
_OF_PROCESS = (
    ("idle_cpu_ms_per_s", "idle CPU\nms/s"),
    ("ready_s", "ready\ns"),
    ("first_bind_s", "first bind\ns"),
    ("start_cpu_s", "CPU of the\nstart, s"),
    ("hand_over_s", "hand-over\ns"),
    ("rss_mib", "peak RSS\nMiB"),
)
_CASE = ("workload", "scheduler", "nodes", "running")


def print_steady_results(
    console: Console, results: Sequence[SteadyResult], calibration_ms: float
) -> None:
    """Print one row per run and rate, one row per run, and the problems below."""
    by_rate, of_process = Table(*_CASE, "rate", box=None), Table(*_CASE, box=None)
    for table, columns in ((by_rate, _BY_RATE), (of_process, _OF_PROCESS)):
        for _, heading in columns:
            table.add_column(heading, justify="right")
    for result in results:
        case = (result.workload, result.scheduler, f"{result.nodes:,}", f"{result.running:,}")
        for rate in result.rates:
            by_rate.add_row(
                *case, f"{rate.rate:g}", *(_cell(getattr(rate, name)) for name, _ in _BY_RATE)
            )
        of_process.add_row(*case, *(_cell(getattr(result, name)) for name, _ in _OF_PROCESS))
    console.print(by_rate)
    console.print(of_process)
    console.print(f"calibration: {calibration_ms:g} ms")
    for result in results:
        for problem in result.problems:
            console.print(f"[red]failed:[/red] {result.workload}: {escape(problem)}")


def _cell(value: float | None) -> str:
    return "-" if value is None else f"{value:g}"
