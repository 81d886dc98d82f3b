"""Results as CSV and Parquet hold every number."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from pyarrow import parquet

from stowage.experiments.exports import METRIC_COLUMNS, write_csv, write_parquet
from stowage.experiments.extra import MissingExtra
from tests.unit.experiments.experiments import make_result

RESULTS = [
    make_result("a,b", 1, bound=0.1, failed_pods=2.0),
    make_result("c", 2, reasons={"0/3 nodes are available": 4}),
]


def test_csv_has_a_row_for_each_metric_with_all_digits(tmp_path: Path) -> None:
    file = tmp_path / "results.csv"
    write_csv(file, RESULTS)
    with file.open(newline="") as lines:
        head, *rows = csv.reader(lines)
    assert tuple(head) == METRIC_COLUMNS
    assert rows == [
        ["t", "a,b", "1", "bound", "0.1"],
        ["t", "a,b", "1", "failed_pods", "2.0"],
        ["t", "c", "2", "bound", "1.0"],
    ]


def test_parquet_has_metrics_series_and_reasons(tmp_path: Path) -> None:
    file = tmp_path / "results.parquet"
    write_parquet(file, RESULTS)
    rows = [tuple(row.values()) for row in parquet.read_table(file).to_pylist()]
    assert rows == [
        ("t", "a,b", 1, "metric", "bound", None, None, 0.1),
        ("t", "a,b", 1, "metric", "failed_pods", None, None, 2.0),
        ("t", "a,b", 1, "series", "pending", "pods", 0.0, 0.0),
        ("t", "a,b", 1, "series", "pending", "pods", 10.0, 1.0),
        ("t", "c", 2, "metric", "bound", None, None, 1.0),
        ("t", "c", 2, "series", "pending", "pods", 0.0, 0.0),
        ("t", "c", 2, "series", "pending", "pods", 10.0, 2.0),
        ("t", "c", 2, "failed", "0/3 nodes are available", "pods", None, 4.0),
    ]


def test_without_pyarrow_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stowage.experiments.extra.find_spec", lambda _module: None)
    with pytest.raises(MissingExtra, match=r"--parquet needs the package pyarrow.*extra simulate"):
        write_parquet(tmp_path / "results.parquet", RESULTS)
