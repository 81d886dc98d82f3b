"""``python -m tests.conformance [PATH...]``: compare our decisions with recorded ones.

PATHs are recorded files or folders of them; by default the files beside this module. "agreeing"
counts attempts that agree in every field; "but for" counts attempts that differ for a known reason:
a pod with a host port was evicted from a node where another pod has the same port. kube-scheduler's
cache then takes that port for free and would put two pods on it. The exit code is 1 if an attempt
differs for another reason.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.conformance.decision_themes import ThemeReport, run_decision_theme
from tests.conformance.value_themes import VALUE_THEMES, VECTORS, read_rows, run_value_theme

_SUFFIXES = (".jsonl.gz", ".jsonl")


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare the themes, print a line for each and the first differences; return 1 if any."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument("paths", nargs="*", type=Path, default=[VECTORS], metavar="PATH")
    parser.add_argument("--differences", type=int, default=5, help="how many to show per theme")
    options = parser.parse_args(arguments)
    if missing := [str(path) for path in options.paths if not path.exists()]:
        parser.error(f"there is no {', '.join(missing)}")
    _say(f"{'theme':<22}{'cases':>7}{'attempts':>10}{'agreeing':>10}  but for")
    passed = failed = 0
    for path in _files(options.paths):
        report = run_file(path)
        _say(_line(report))
        for difference in report.differences[: options.differences]:
            _say(f"    {difference}")
        passed += report.cases - report.failed_cases
        failed += report.failed_cases
    _say(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


def run_file(path: Path) -> ThemeReport:
    """Compare a recorded file, which is named after its theme."""
    theme = path.name.split(".")[0]
    rows = read_rows(path)
    if theme not in VALUE_THEMES:
        return run_decision_theme(theme, rows)
    judged = list(run_value_theme(theme, rows))
    wrong = [difference for difference in judged if difference is not None]
    agreeing = len(judged) - len(wrong)
    report = ThemeReport(theme, len(judged), len(wrong), len(judged), agreeing)
    report.differences.extend(wrong)  # type: ignore[arg-type]
    return report


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from sorted(each for each in path.iterdir() if each.name.endswith(_SUFFIXES))
        else:
            yield path


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _line(report: ThemeReport) -> str:
    known = ", ".join(f"{reason} in {count}" for reason, count in sorted(report.explained.items()))
    return f"{report.theme:<22}{report.cases:>7}{report.attempts:>10}{report.agreeing:>10}  {known}"


if __name__ == "__main__":
    sys.exit(main())
