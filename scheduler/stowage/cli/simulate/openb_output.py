"""Shows the results of ``stowage simulate openb``."""

from __future__ import annotations

import csv
import io
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import fmean

from rich.console import Console

from stowage.analysis.simulation.openb.loads import LOADS, METRICS, table_values
from stowage.analysis.simulation.openb.policies import POLICIES
from stowage.analysis.simulation.result import ExperimentResult
from stowage.cli.ask.output import plain_table
from stowage.cli.failures import print_error
from stowage.cli.terminal import terminal
from stowage.experiments.sweep import Sweep

_WIDE = 160


def order_of_result(result: ExperimentResult) -> tuple[str, int, str, int]:
    """Sorts by trace, by policy as published, and by seed."""
    known = POLICIES.index(result.policy) if result.policy in POLICIES else len(POLICIES)
    return result.trace, known, result.policy, result.seed


def csv_of(results: Iterable[ExperimentResult]) -> str:
    """The values of each seed, three lines a result."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["trace", "policy", "seed", "metric", *(f"at{load}" for load in LOADS)])
    for result in results:
        values = table_values(result.series)
        for metric in METRICS:
            cells = ["" if each is None else f"{each:.2f}" for each in values[metric]]
            writer.writerow([result.trace, result.policy, result.seed, metric, *cells])
    return text.getvalue()


def print_means(results: Sequence[ExperimentResult]) -> None:
    """Print the mean of the allocated share of GPUs, in percent, over the seeds."""
    groups: dict[tuple[str, str], list[ExperimentResult]] = defaultdict(list)
    for result in results:
        groups[result.trace, result.policy].append(result)
    table = plain_table("trace", "policy", "seeds", *(f"{load} %" for load in LOADS), "failed pods")
    for (trace, policy), group in groups.items():
        columns = zip(*(table_values(each.series)["alloc_pct"] for each in group), strict=True)
        means = [_mean([value for value in column if value is not None]) for column in columns]
        failed = fmean(each.metrics["failed"] for each in group)
        table.add_row(trace, policy, str(len(group)), *means, f"{failed:.0f}")
    # As wide as the table: a redirected table has no cut names.
    console = terminal(file=sys.stdout, width=_WIDE)
    if groups:
        console.print("Allocated GPUs in percent of all, by the load that has arrived:")
        console.print(table)


def print_failures(sweep: Sweep, console: Console) -> None:
    """Print why experiments have no result."""
    for failure in sweep.failures:
        print_error(console, f"{failure.key}: {failure.failure}")


def _mean(values: Sequence[float]) -> str:
    return f"{fmean(values):.2f}" if values else ""
