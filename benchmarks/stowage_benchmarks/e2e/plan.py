"""Runs all cases of the end-to-end benchmark, one after the other, and reports them."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import msgspec
from rich.console import Console

from simcluster.harness.failures import FAILURES, failure_line
from stowage_benchmarks.calibration import calibration_ms
from stowage_benchmarks.contender import contenders
from stowage_benchmarks.e2e.report import PlotLibraryMissingError, plot_results, print_results
from stowage_benchmarks.e2e.result import Drain, E2EResult
from stowage_benchmarks.e2e.run import run_once
from stowage_benchmarks.e2e.scenarios import SCENARIOS, Size


@dataclass(frozen=True, slots=True)
class E2EPlan:
    """What to measure.

    Attributes:
        other_command: Starts another scheduler to measure; empty for none.
        num_runs: Runs per workload, size and scheduler.
        kubeconfig: Of an API server to use; None starts a simulated cluster for each run.
    """

    other_command: Sequence[str]
    workloads: Sequence[str]
    sizes: Sequence[Size]
    num_runs: int
    scheduler_name: str
    timeout_s: float
    kubeconfig: Path | None

    def drains(self) -> Iterator[Drain]:
        """Every run; runs of one case follow each other."""
        for workload, size in product(self.workloads, self.sizes):
            for contender, _ in product(contenders(self.other_command), range(self.num_runs)):
                yield Drain(
                    contender,
                    workload,
                    SCENARIOS[workload].fitting(size),
                    self.scheduler_name,
                    self.timeout_s,
                    self.kubeconfig,
                )


class E2EReport(msgspec.Struct, frozen=True):
    """The results, and the machine.

    Attributes:
        calibration_ms: CPU milliseconds of a fixed piece of work, measured before the runs.
    """

    python: str
    calibration_ms: float
    results: list[E2EResult]


def run_plan(plan: E2EPlan, console: Console, plot: Path | None, as_json: bool) -> int:
    """Run everything and report; returns the exit status."""
    results: list[E2EResult] = []
    calibrated_ms = calibration_ms()
    try:
        for drain in plan.drains():
            if not as_json:
                console.print(
                    f"[dim]{drain.contender.name}: {drain.workload}, {drain.size.nodes} nodes[/dim]"
                )
            results.append(run_once(drain))
        if plot is not None:
            plot_results(results, plot)
    except (*FAILURES, PlotLibraryMissingError, ValueError) as error:
        console.print(failure_line(error))
        return 1
    if as_json:
        report = E2EReport(sys.version.split()[0], calibrated_ms, results)
        console.out(msgspec.json.encode(report).decode())
    else:
        print_results(console, results)
    return 1 if any(result.problems for result in results) else 0
