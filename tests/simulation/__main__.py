"""``python -m tests.simulation``: run many seeds, or show one."""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import os
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path

from rich.console import Console

from tests.simulation.report import EMPHASES, FILES_EVERY, Batch, Report, code_version
from tests.simulation.run import Outcome, simulate

SEEDS_PER_BATCH = 20
"""How many lives one process runs: it keeps their garbage, some 10 MB each, until it ends."""

_IMPORTED_LATE = ("numpy.ma", "stowage.state.devices.expressions")
"""Modules that a life imports when it needs them. They take as long as half a life of devices: one
process imports them for all batches."""

_FORK = multiprocessing.get_context("fork")


@dataclass(slots=True)
class Ran:
    """What some seeds have shown.

    Attributes:
        shown: The failed outcomes; all of them if the trace is wanted.
        slowest: The longest wait of a probe pod in seconds, by wave.
    """

    emphasis: str
    seeds: Sequence[int]
    failed: list[int] = field(default_factory=list)
    shown: list[Outcome] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    num_bound: int = 0
    num_with_files: int = 0
    slowest: dict[str, float] = field(default_factory=dict)
    cpu_s: float = 0.0

    def add(self, outcome: Outcome, *, with_trace: bool) -> None:
        """Count one seed."""
        self.faults += outcome.faults
        self.num_bound += outcome.num_bound
        for wave, seconds in outcome.recovery_s.items():
            self.slowest[wave] = max(seconds, self.slowest.get(wave, 0.0))
        if outcome.violations:
            self.failed.append(outcome.seed)
        if outcome.violations or with_trace:
            self.shown.append(outcome)

    def batch(self, code: str, files_every: int) -> Batch:
        """The line of the report."""
        return Batch(
            code,
            self.emphasis,
            tuple(self.seeds),
            tuple(self.failed),
            self.num_with_files,
            self.num_bound,
            sum(self.faults.values()),
            round(self.cpu_s, 2),
            files_every,
        )


def main() -> int:
    """Run the seeds; return 1 if one of them failed."""
    options = _options()
    console = Console(highlight=False, soft_wrap=True)
    report = None if options.report is None else Report(options.report)
    code = "" if report is None else code_version()
    started = time.monotonic()
    whole = Ran("", ())
    with ProcessPoolExecutor(options.processes, _FORK, _start_worker) as pool:
        batches = [
            pool.submit(_run_batch, name, seeds, options.trace, options.files_every)
            for name, seeds in _batches(options, report, code)
        ]
        for done in as_completed(batches):
            ran = done.result()
            if report is not None:
                report.add(ran.batch(code, options.files_every))
            for outcome in ran.shown:
                _show(console, outcome, ran.emphasis, options.trace)
            _merge(whole, ran)
    _sum_up(console, whole, time.monotonic() - started)
    for line in () if report is None else report.summary():
        console.print(line)
    return int(bool(whole.failed))


def _sum_up(console: Console, ran: Ran, took_s: float) -> None:
    console.print(
        f"{len(ran.seeds)} lives in {took_s:.0f} s: {ran.num_bound} pods bound, "
        f"{sum(ran.faults.values())} faults, {len(ran.failed)} lives failed"
    )
    for wave, seconds in ran.slowest.items():
        console.print(f"{wave}, the slowest probe was bound after {seconds:.1f} s")
    console.print(", ".join(f"{name} {count}" for name, count in sorted(ran.faults.items())))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", default="0:100", help="one seed, or FROM:TO without TO")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--trace", action="store_true", help="print the actions and bindings")
    parser.add_argument(
        "--emphases",
        nargs="+",
        choices=list(EMPHASES),
        default=["plain"],
        help="the kinds of lives; each seed is run with each of them",
    )
    parser.add_argument(
        "--files-every",
        type=int,
        default=FILES_EVERY,
        metavar="N",
        help="record the lives of seeds that are multiples of N, and log their decisions; another "
        "N than %(default)s makes other lives of some seeds",
    )
    parser.add_argument(
        "--report",
        type=Path,
        help="a file outside the repository: seeds that it has for this commit, with files or "
        "without as now, are left out, the others are added to it",
    )
    options = parser.parse_args()
    if options.files_every < 1:
        parser.error(f"--files-every: {options.files_every} (expected 1 or more)")
    return options


def _batches(
    options: argparse.Namespace, report: Report | None, code: str
) -> list[tuple[str, list[int]]]:
    """Emphasis and seeds of each batch, those of one range of seeds together."""
    first, _, last = options.seeds.partition(":")
    end = int(last) if last else int(first) + 1
    batches = []
    for start in range(int(first), end, SEEDS_PER_BATCH):
        seeds = range(start, min(end, start + SEEDS_PER_BATCH))
        for name in options.emphases:
            left = list(seeds)
            if report is not None:
                left = report.seeds_left(code, name, seeds, options.files_every)
            if left:
                batches.append((name, left))
    return batches


def _start_worker() -> None:
    """Collect no garbage: collecting what a seed leaves takes a seventh of its time.

    Instead, the seeds of a batch are run in a process of their own, which ends without cleaning up.
    """
    for name in _IMPORTED_LATE:
        import_module(name)
    gc.disable()
    gc.freeze()


def _run_batch(emphasis: str, seeds: Sequence[int], with_trace: bool, files_every: int) -> Ran:
    receiving, sending = _FORK.Pipe(duplex=False)
    task = (sending, emphasis, seeds, with_trace, files_every)
    child = _FORK.Process(target=_send_ran, args=task)
    child.start()
    sending.close()
    try:
        ran: Ran = receiving.recv()
    except EOFError:
        raise RuntimeError(f"the process of the seeds {seeds} ({emphasis}) ended early") from None
    child.join()
    return ran


def _send_ran(
    sending: Connection, emphasis: str, seeds: Sequence[int], with_trace: bool, files_every: int
) -> None:
    started = time.process_time()
    ran = Ran(emphasis, seeds)
    for seed in seeds:
        if seed % files_every == 0:
            ran.num_with_files += 1
            with tempfile.TemporaryDirectory() as folder:
                outcome = simulate(seed, EMPHASES[emphasis], files=Path(folder))
        else:
            outcome = simulate(seed, EMPHASES[emphasis])
        ran.add(outcome, with_trace=with_trace)
    ran.cpu_s = time.process_time() - started
    sending.send(ran)


def _merge(whole: Ran, ran: Ran) -> None:
    whole.seeds = [*whole.seeds, *ran.seeds]
    whole.failed += ran.failed
    whole.faults += ran.faults
    whole.num_bound += ran.num_bound
    for wave, seconds in ran.slowest.items():
        whole.slowest[wave] = max(seconds, whole.slowest.get(wave, 0.0))


def _show(console: Console, outcome: Outcome, emphasis: str, with_trace: bool) -> None:
    console.print(f"seed {outcome.seed} ({emphasis}):")
    for line in outcome.violations:
        console.print(f"  {line}")
    for line in sorted(outcome.trace) if with_trace else ():
        console.print(f"    {line}")


if __name__ == "__main__":
    raise SystemExit(main())
