"""Runs all cases of the benchmark under steady load, one after the other, and reports them."""

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
from stowage_benchmarks.steady.report import print_steady_results
from stowage_benchmarks.steady.result import SteadyResult, SteadyRun
from stowage_benchmarks.steady.run import run_steady


@dataclass(frozen=True, slots=True)
class SteadyPlan:
    """What to measure.

    Attributes:
        other_command: Starts another scheduler to measure; empty for none.
        sizes: Numbers of nodes.
        running: Pods that run from the start; None for as many as nodes.
        num_runs: Runs per workload, size and scheduler.
        kubeconfig: Of an API server to use; None starts a simulated cluster for each run.
    """

    other_command: Sequence[str]
    workloads: Sequence[str]
    sizes: Sequence[int]
    running: int | None
    rates: Sequence[float]
    seconds: float
    num_runs: int
    scheduler_name: str
    timeout_s: float
    hand_over: bool
    kubeconfig: Path | None

    def runs(self) -> Iterator[SteadyRun]:
        """Every run; the schedulers take turns, so that both meet the same state of the machine."""
        for workload, nodes, _ in product(self.workloads, self.sizes, range(self.num_runs)):
            for contender in contenders(self.other_command):
                yield SteadyRun(
                    contender,
                    workload,
                    nodes,
                    nodes if self.running is None else self.running,
                    self.rates,
                    self.seconds,
                    self.scheduler_name,
                    self.timeout_s,
                    hand_over=self.hand_over,
                    kubeconfig=self.kubeconfig,
                )


class SteadyReport(msgspec.Struct, frozen=True):
    """The results, and the machine.

    Attributes:
        calibration_ms: CPU milliseconds of a fixed piece of work, measured before the runs.
    """

    python: str
    calibration_ms: float
    results: list[SteadyResult]


def run_steady_plan(plan: SteadyPlan, console: Console, as_json: bool) -> int:
    """Run everything and report; returns the exit status."""
    results: list[SteadyResult] = []
    calibrated_ms = calibration_ms()
    try:
        for run in plan.runs():
            if not as_json:
                console.print(f"[dim]{run.contender.name}: {run.workload}, {run.nodes} nodes[/dim]")
            results.append(run_steady(run))
    except (*FAILURES, ValueError) as error:
        console.print(failure_line(error))
        return 1
    if as_json:
        report = SteadyReport(sys.version.split()[0], calibrated_ms, results)
        console.out(msgspec.json.encode(report).decode())
    else:
        print_steady_results(console, results, calibrated_ms)
    return 1 if any(result.problems for result in results) else 0
