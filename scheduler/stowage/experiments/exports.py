"""Writes results as CSV and Parquet: tables that other programs read."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from stowage.analysis.simulation.result import ExperimentResult
from stowage.experiments.extra import import_extra

METRIC_COLUMNS = ("trace", "policy", "seed", "metric", "value")
POINT_COLUMNS = ("trace", "policy", "seed", "kind", "name", "unit", "x", "value")


def write_csv(path: Path, results: Iterable[ExperimentResult]) -> None:
    """Write the metrics: a row each with trace, policy, seed, metric and value.

    Raises:
        OSError: The file cannot be written.
    """
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(METRIC_COLUMNS)
        for result in results:
            for name, value in result.metrics.items():
                writer.writerow((result.trace, result.policy, result.seed, name, repr(value)))


def write_parquet(path: Path, results: Sequence[ExperimentResult]) -> None:
    """Write everything there is: metrics, series and failed pods, a row a number.

    The column ``kind`` says which: ``metric``, ``series`` (with ``x`` and ``unit``), or ``failed``
    (``name`` is the reason, ``value`` the number of pods).

    Raises:
        MissingExtra: pyarrow is not installed.
        OSError: The file cannot be written.
    """
    arrow = import_extra("pyarrow", "--parquet")
    parquet = import_extra("pyarrow.parquet", "--parquet")
    types = (*(arrow.string(), arrow.string(), arrow.int64()), *(arrow.string(),) * 3)
    schema = arrow.schema(zip(POINT_COLUMNS, (*types, *(arrow.float64(),) * 2), strict=True))
    with parquet.ParquetWriter(path, schema) as writer:
        for result in results:
            rows = [(result.trace, result.policy, result.seed, *point) for point in _points(result)]
            columns = list(zip(*rows, strict=True)) or [()] * len(POINT_COLUMNS)
            writer.write_table(arrow.table(list(map(list, columns)), schema=schema))


def _points(result: ExperimentResult) -> Iterable[tuple[Any, ...]]:
    """The numbers of a result: kind, name, unit, x, value."""
    for name, value in result.metrics.items():
        yield "metric", name, None, None, value
    for series in result.series:
        for x, y in zip(series.x, series.y, strict=True):
            yield "series", series.name, series.unit, x, y
    for reason, count in result.failed.items():
        yield "failed", reason, "pods", None, float(count)
