"""``python -m tests.simulation``: run many seeds, or show one."""

from __future__ import annotations

import argparse
import gc
import os
import time
from collections import Counter, defaultdict
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from rich.console import Console

from tests.simulation.plan import Emphasis
from tests.simulation.run import Outcome, simulate


def main() -> int:
    """Run the seeds; return 1 if one of them failed."""
    arguments = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    arguments.add_argument("--seeds", default="0:100", help="one seed, or FROM:TO without TO")
    arguments.add_argument("--processes", type=int, default=os.cpu_count())
    arguments.add_argument("--trace", action="store_true", help="print the actions and bindings")
    arguments.add_argument(
        "--devices", action="store_true", help="give nodes devices, and pods claims for them"
    )
    arguments.add_argument("--gangs", action="store_true", help="create pod groups with members")
    options = arguments.parse_args()
    run = partial(_run_seed, Emphasis(has_devices=options.devices, has_gangs=options.gangs))
    first, _, last = options.seeds.partition(":")
    seeds = range(int(first), int(last) if last else int(first) + 1)
    console = Console(highlight=False, soft_wrap=True)
    started = time.monotonic()
    faults: Counter[str] = Counter()
    failed: list[int] = []
    slowest: defaultdict[str, float] = defaultdict(float)
    num_bound = 0
    with ProcessPoolExecutor(options.processes) as pool:
        for outcome in pool.map(run, seeds, chunksize=4):
            faults += outcome.faults
            num_bound += outcome.num_bound
            for wave, seconds in outcome.recovery_s.items():
                slowest[wave] = max(seconds, slowest[wave])
            if outcome.violations:
                failed.append(outcome.seed)
            if outcome.violations or options.trace:
                _show(console, outcome, options.trace)
    console.print(
        f"{len(seeds)} seeds in {time.monotonic() - started:.0f} s: {num_bound} pods bound, "
        f"{sum(faults.values())} faults, {len(failed)} seeds failed"
    )
    for wave, seconds in slowest.items():
        console.print(f"{wave}, the slowest probe was bound after {seconds:.1f} s")
    console.print(", ".join(f"{name} {count}" for name, count in sorted(faults.items())))
    return int(bool(failed))


def _run_seed(emphasis: Emphasis, seed: int) -> Outcome:
    """Run one seed, then free its garbage: a process runs thousands of seeds."""
    outcome = simulate(seed, emphasis)
    gc.collect(0)
    return outcome


def _show(console: Console, outcome: Outcome, with_trace: bool) -> None:
    console.print(f"seed {outcome.seed}:")
    for line in outcome.violations:
        console.print(f"  {line}")
    for line in sorted(outcome.trace) if with_trace else ():
        console.print(f"    {line}")


if __name__ == "__main__":
    raise SystemExit(main())
