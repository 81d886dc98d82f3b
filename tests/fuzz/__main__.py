"""``python -m tests.fuzz``: try many inputs; print their number and each finding."""

from __future__ import annotations

import argparse
import resource
import sys

from tests.fuzz.campaign import Campaign
from tests.fuzz.targets import TARGETS


def main() -> int:
    """Parse the flags and run; return 1 if there is a finding."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    parser.add_argument("--inputs", type=int, default=3_000, help="for each target")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    unknown = sorted(set(options.targets) - set(TARGETS))
    if unknown:
        parser.error(f"{unknown[0]}: expected {', '.join(TARGETS)}")
    num_findings = 0
    for name in options.targets or TARGETS:
        target = TARGETS[name]()
        campaign = Campaign(target, options.seed, _print)
        try:
            campaign.run(options.inputs)
        finally:
            target.close()
        num_findings += campaign.num_findings
        _print("\n".join(campaign.lines()))
    _print(f"seed {options.seed}, {options.inputs:,} inputs a target, {num_findings} findings")
    _print(f"CPU {sum(resource.getrusage(resource.RUSAGE_SELF)[:2]):.0f} s")
    return 1 if num_findings else 0


def _print(text: str) -> None:
    print(text, flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())
