"""Runs the experiments that ``stowage simulate openb`` asks for, and shows their results."""

from __future__ import annotations

import csv
import io
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import NamedTuple, NoReturn

import typer
from rich.console import Console
from rich.markup import escape

from stowage.analysis.simulation.openb.experiment import OpenbExperiment, OpenbPolicy
from stowage.analysis.simulation.openb.loads import LOADS, METRICS, table_values
from stowage.analysis.simulation.openb.policies import POLICIES
from stowage.analysis.simulation.openb.trace import InvalidTrace, OpenbTrace, read_trace
from stowage.analysis.simulation.result import ExperimentResult
from stowage.cli.ask.output import plain_table
from stowage.cli.ask.source import failures_reported
from stowage.cli.imports import garbage_collection_paused
from stowage.cli.simulate.command import parse_seeds
from stowage.cli.simulate.openb_policies import read_openb_policies
from stowage.experiments.experiment import fingerprint_of
from stowage.experiments.extra import MissingExtra
from stowage.experiments.pool import PoolOptions
from stowage.experiments.progress import shown_progress
from stowage.experiments.results_file import UnusableResults
from stowage.experiments.sweep import INTERRUPTED, Sweep, SweepOptions, run_sweep

_PREFIX = "openb_pod_list_"
_INTERRUPTED = 130
_WIDE = 160


class OpenbFlags(NamedTuple):
    """The flags of ``stowage simulate openb``."""

    nodes: Path
    pods: tuple[Path, ...]
    policies: str
    seeds: str
    csv_file: Path | None
    results: Path | None
    workers: int | None
    dask: str | None


def run_openb(flags: OpenbFlags) -> None:
    """Run the experiments, print a table of means, and write the values of each seed.

    Raises:
        typer.Exit: With 1 if an experiment has no result, 130 after Ctrl-C.
    """
    seeds = parse_seeds(flags.seeds)
    console = Console(stderr=True, highlight=False)
    with failures_reported(console), garbage_collection_paused():
        traces = _read_traces(flags, console)
        policies = read_openb_policies(flags.policies, traces)
    experiments = list(_experiments(traces, policies, seeds))
    sweep = _run(experiments, flags, console)
    by_policy = sorted(sweep.results, key=_order)
    _print_table(by_policy)
    if flags.csv_file is not None:
        try:
            flags.csv_file.write_text(csv_of(by_policy), "utf-8")
        except OSError as error:
            _fail(console, f"{flags.csv_file}: {error.strerror}")
    for failure in sweep.failures:
        _complain(console, f"{failure.key}: {failure.failure}")
    if sweep.ended_early:
        _complain(console, f"{sweep.ended_early}; {sweep.num_missing} experiments did not end")
        raise typer.Exit(_INTERRUPTED if sweep.ended_early == INTERRUPTED else 1)
    raise typer.Exit(1 if sweep.failures else 0)


def trace_name(file: Path) -> str:
    """The name of the trace of a file of pods.

    Examples:
        >>> trace_name(Path("data/openb_pod_list_multigpu30.csv"))
        'multigpu30'
    """
    return file.stem.removeprefix(_PREFIX)


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


def _read_traces(flags: OpenbFlags, console: Console) -> list[OpenbTrace]:
    try:
        nodes = (str(flags.nodes), flags.nodes.read_bytes())
        return [read_trace(trace_name(f), nodes, (str(f), f.read_bytes())) for f in flags.pods]
    except OSError as error:
        _fail(console, f"{error.filename}: {error.strerror}")
    except InvalidTrace as invalid:
        _fail(console, str(invalid))


def _experiments(
    traces: Sequence[OpenbTrace], policies: Sequence[OpenbPolicy], seeds: Sequence[int]
) -> Iterator[OpenbExperiment]:
    for trace in traces:
        read = fingerprint_of(trace)
        for policy in policies:
            for seed in seeds:
                fingerprint = fingerprint_of(read, policy.inputs, seed)
                yield OpenbExperiment(trace, policy, seed, fingerprint)


def _run(experiments: Sequence[OpenbExperiment], flags: OpenbFlags, console: Console) -> Sweep:
    options = SweepOptions(PoolOptions(flags.workers, flags.dask), flags.results)
    try:
        with shown_progress(console, len(experiments)) as advance:
            return run_sweep(experiments, options, advance)
    except (MissingExtra, UnusableResults, ValueError) as error:
        _fail(console, str(error))
    except OSError as error:
        _fail(console, f"{error.filename}: {error.strerror}")


def _order(result: ExperimentResult) -> tuple[str, int, str, int]:
    known = POLICIES.index(result.policy) if result.policy in POLICIES else len(POLICIES)
    return result.trace, known, result.policy, result.seed


def _print_table(results: Sequence[ExperimentResult]) -> None:
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
    console = Console(file=sys.stdout, highlight=False, width=_WIDE)
    if groups:
        console.print("Allocated GPUs in percent of all, by the load that has arrived:")
        console.print(table)


def _mean(values: Sequence[float]) -> str:
    return f"{fmean(values):.2f}" if values else ""


def _complain(console: Console, text: str) -> None:
    console.print(f"[red]error:[/red] {escape(text)}", soft_wrap=True)


def _fail(console: Console, text: str) -> NoReturn:
    _complain(console, text)
    raise typer.Exit(1)
