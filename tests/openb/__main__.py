"""``python -m tests.openb``: runs the published experiments and compares every value."""

from __future__ import annotations

import argparse
import sys
import time

from tests.openb.published import (
    DETERMINISTIC,
    SEEDS,
    TRACES,
    differences,
    folder,
    published_trace,
    run,
)


def main() -> int:
    """Run the experiments; return 1 if a value differs, 2 without the data."""
    traces = _options().traces
    data = folder()
    if data is None:
        sys.stderr.write("no data: STOWAGE_OPENB names their folder\n")
        return 2
    wrong = 0
    for name in traces:
        trace = published_trace(data, name)
        for policy in DETERMINISTIC:
            for seed in SEEDS:
                started = time.process_time()
                found = list(differences(data, result := run(trace, policy, seed)))
                wrong += len(found)
                num = result.metrics["bound"] + result.metrics["failed"]
                cpu_s = time.process_time() - started
                cost = f"{cpu_s:.1f} s, {cpu_s / num * 1e6:.0f} us a pod"
                verdict = "; ".join(found) or "as published"
                sys.stdout.write(f"{name} {policy} {seed}: {cost}, {verdict}\n")
    return 1 if wrong else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.openb", description=__doc__)
    parser.add_argument(
        "traces",
        nargs="*",
        metavar="TRACE",
        default=TRACES,
        help=f"the experiments with these traces only; all: {', '.join(TRACES)}",
    )
    options = parser.parse_args()
    unknown = sorted(set(options.traces) - set(TRACES))
    if unknown:
        parser.error(f"{', '.join(unknown)}: expected one of {', '.join(TRACES)}")
    return options


if __name__ == "__main__":
    sys.exit(main())
