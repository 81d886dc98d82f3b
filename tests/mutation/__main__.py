"""``python -m tests.mutation``: judge a sample of mutants; print the survivors and the figures.

Results and the record of coverage are kept in a folder and used again: an interrupted run resumes,
and a larger sample extends a smaller one. Delete the folder after the tests changed much.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from tests.mutation import equivalents
from tests.mutation.coverage_map import CoverageMap, CoverageRecorder
from tests.mutation.judging import Judge
from tests.mutation.mutants import Mutant
from tests.mutation.report import Report, rows_by
from tests.mutation.results import Outcome, Result, Results
from tests.mutation.sampling import every_mutant, sample
from tests.mutation.short_waits import ShortWaits
from tests.mutation.suites import PYTEST_FLAGS, SUITES, SameExamples

FIGURES = Path(__file__).with_name("figures.json")
_ALIVE = (Outcome.SURVIVED, Outcome.NOT_COVERED)


def main() -> int:
    """Record coverage if there is no record, judge what has no result, print the report."""
    options = _options()
    options.folder.mkdir(exist_ok=True)
    recorded = options.folder / "coverage.jsonl"
    if options.record is not None:
        return _pytest(options.record or SUITES, CoverageRecorder(recorded))
    if not recorded.exists():
        # In a process of its own: what the tests leave behind must not be in the forked ones.
        recording = [sys.executable, "-m", __package__, "--record", "--folder", str(options.folder)]
        subprocess.run(recording, check=False)  # exits 1 if a test fails, which then judges nothing
    results = Results(options.folder / "results.jsonl")
    every = every_mutant(options.folder / "mutants.json")
    chosen = sample(every, options.sample, options.seed)[options.skip :]
    chosen = [each for each in chosen if each.file.startswith(tuple(options.only))]
    equivalent = _equivalents(chosen, results)
    again = options.again
    waiting = [each for each in chosen if _is_to_be_judged(each, results, equivalent, again=again)]
    if waiting and not options.report:
        known = CoverageMap.read(recorded)
        judge = Judge(waiting, known, results, workers=options.workers, budget_s=options.budget_s)
        if code := _pytest(known.files_of(waiting) or SUITES, judge):
            return code
    judged = [result for each in chosen if (result := results.get(each)) is not None]
    found = _report(judged, options.seed, len(every))
    print("\n".join(found.lines()))  # noqa: T201
    if options.write is not None:
        options.write.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    return 0


def _report(results: Sequence[Result], seed: int, num_mutants: int) -> Report:
    equivalent = equivalents.keys_of(equivalents.read(), results)
    return Report(
        datetime.now(UTC).date().isoformat(),
        seed,
        num_mutants,
        rows_by(lambda each: each.package, results, equivalent),
        rows_by(lambda each: each.operator, results, equivalent),
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--sample", type=int, default=2_000, help="how many mutants to draw")
    parser.add_argument("--skip", type=int, default=0, help="leave out that many drawn first")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=1, help="processes at a time")
    parser.add_argument("--budget-s", type=float, default=30.0, help="recorded CPU time of tests")
    parser.add_argument("--only", nargs="+", default=[""], metavar="PATH", help="files or folders")
    parser.add_argument("--again", action="store_true", help="judge survivors again")
    parser.add_argument("--record", nargs="*", metavar="TESTS", help="record coverage, all or some")
    parser.add_argument("--report", action="store_true", help="report what is known; judge nothing")
    parser.add_argument(
        "--write",
        nargs="?",
        type=Path,
        const=FIGURES,
        metavar="FILE",
        help=f"write the figures to {FIGURES.name}, or to a file",
    )
    parser.add_argument("--folder", type=Path, default=Path(".mutation"))
    return parser.parse_args()


def _equivalents(mutants: Sequence[Mutant], results: Results) -> frozenset[str]:
    """The keys of the mutants that are listed as equivalent, as far as their change is known."""
    known = [result for each in mutants if (result := results.get(each)) is not None]
    return equivalents.keys_of(equivalents.read(), known)


def _is_to_be_judged(
    mutant: Mutant, results: Results, equivalent: frozenset[str], *, again: bool
) -> bool:
    result = results.get(mutant)
    if result is None:
        return True
    return again and result.outcome in _ALIVE and mutant.key not in equivalent


def _pytest(tests: Sequence[str], plugin: object) -> int:
    return int(pytest.main([*PYTEST_FLAGS, *tests], plugins=[SameExamples(), ShortWaits(), plugin]))


if __name__ == "__main__":
    sys.exit(main())
