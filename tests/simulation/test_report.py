"""The report of a long run says which seeds are left, for the code that runs."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.simulation.report import Batch, Report


def batch(code: str, emphasis: str, *seeds: int, failed: tuple[int, ...] = ()) -> Batch:
    return Batch(code, emphasis, seeds, failed, 1, 10, 100, 0.5 * len(seeds))


def every_life_with_files(*seeds: int) -> Batch:
    return msgspec.structs.replace(batch("new", "plain", *seeds), files_every=1)


def test_seeds_of_other_code_or_another_emphasis_are_left(tmp_path: Path) -> None:
    path = tmp_path / "report"
    Report(path).add(batch("new", "plain", 0, 1, 2))
    Report(path).add(batch("new", "gangs", 3))
    Report(path).add(batch("old", "plain", 4))
    assert Report(path).seeds_left("new", "plain", range(6)) == [3, 4, 5]
    assert Report(path).seeds_left("new", "devices", range(2)) == [0, 1]


def test_a_seed_that_was_run_without_files_is_left_for_a_run_with_files(tmp_path: Path) -> None:
    path = tmp_path / "report"
    Report(path).add(batch("new", "plain", 15, 16))
    assert Report(path).seeds_left("new", "plain", [15, 16], files_every=1) == [15]
    Report(path).add(every_life_with_files(17))
    assert Report(path).seeds_left("new", "plain", [15, 16, 17], files_every=1) == [15]
    assert Report(path).seeds_left("new", "plain", [15, 16, 17]) == [17]


def test_a_report_of_before_has_files_of_every_sixteenth_seed(tmp_path: Path) -> None:
    path = tmp_path / "report"
    line = msgspec.to_builtins(batch("new", "plain", 0))
    del line["files_every"]
    path.write_bytes(msgspec.json.encode(line) + b"\n")
    assert Report(path).batches == [batch("new", "plain", 0)]


def test_the_summary_counts_seeds_by_code_and_emphasis(tmp_path: Path) -> None:
    report = Report(tmp_path / "report")
    for each in (batch("a", "plain", 0, 1, failed=(1,)), batch("a", "plain", 2, 1, failed=(1,))):
        report.add(each)
    report.add(batch("b", "gangs", 7))
    report.add(every_life_with_files(8))
    first, second, third = report.summary()
    assert first.startswith(
        "a plain: 3 seeds, 2 of them recorded (every 16), 20 pods bound, 200 faults,"
    )
    assert first.endswith("failed: 1")
    assert second.startswith(
        "b gangs: 1 seeds, 1 of them recorded (every 16), 10 pods bound, 100 faults, 0.50"
    )
    assert second.endswith("none failed")
    assert third.startswith("new plain: 1 seeds, 1 of them recorded (every 1), ")


def test_a_file_that_is_no_report_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "report"
    path.write_text("seeds 1 to 10 passed\n", "utf-8")
    with pytest.raises(msgspec.DecodeError):
        Report(path)
