"""The report of a long run says which seeds are left, for the code that runs."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.simulation.report import Batch, Report


def batch(code: str, emphasis: str, *seeds: int, failed: tuple[int, ...] = ()) -> Batch:
    return Batch(code, emphasis, seeds, failed, 1, 10, 100, 0.5 * len(seeds))


def test_seeds_of_other_code_or_another_emphasis_are_left(tmp_path: Path) -> None:
    path = tmp_path / "report"
    Report(path).add(batch("new", "plain", 0, 1, 2))
    Report(path).add(batch("new", "gangs", 3))
    Report(path).add(batch("old", "plain", 4))
    assert Report(path).seeds_left("new", "plain", range(6)) == [3, 4, 5]
    assert Report(path).seeds_left("new", "devices", range(2)) == [0, 1]


def test_the_summary_counts_seeds_by_code_and_emphasis(tmp_path: Path) -> None:
    report = Report(tmp_path / "report")
    for each in (batch("a", "plain", 0, 1, failed=(1,)), batch("a", "plain", 2, 1, failed=(1,))):
        report.add(each)
    report.add(batch("b", "gangs", 7))
    first, second = report.summary()
    assert first.startswith("a plain: 3 seeds, 2 of them recorded, 20 pods bound, 200 faults,")
    assert first.endswith("failed: 1")
    assert second.startswith(
        "b gangs: 1 seeds, 1 of them recorded, 10 pods bound, 100 faults, 0.50"
    )
    assert second.endswith("none failed")


def test_a_file_that_is_no_report_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "report"
    path.write_text("seeds 1 to 10 passed\n", "utf-8")
    with pytest.raises(msgspec.DecodeError):
        Report(path)
