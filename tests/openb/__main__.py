"""Runs all published experiments and compares every value."""

from __future__ import annotations

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
    """Exits with 1 if a value differs, 2 without the data."""
    data = folder()
    if data is None:
        sys.stderr.write("no data: STOWAGE_OPENB names their folder\n")
        return 2
    wrong = 0
    for name in sys.argv[1:] or TRACES:
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


if __name__ == "__main__":
    sys.exit(main())
