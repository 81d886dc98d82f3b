"""The results of a run by the load that has arrived."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from stowage.analysis.simulation.result import Series

LOADS = (50, 80, 90, 100, 110, 120, 130)
"""The loads, in percent, of the published tables."""
METRICS = ("alloc_pct", "frag_ratio_pct", "frag_amount_pct")
X_UNIT = "% of arrived load"
"""Of the series: what pods have requested so far, those that failed included, of all GPUs."""

_MOST = 130
_Column = NDArray[np.float64]


class Rows:
    """One row for each arrival.

    Args:
        num_gpus: The number of GPUs of all nodes.
    """

    def __init__(self, num_gpus: int) -> None:
        self._num_gpus = num_gpus
        self._rows: list[tuple[int, int, float, int]] = []

    def add(self, arrived: int, allocated: int, fragmented: float, idle: int) -> None:
        """Note the state after an arrival; all in thousandths of a GPU.

        Args:
            arrived: Requested by all pods so far, those that failed included.
            allocated: Requested by those that were placed.
            fragmented: What typical pods cannot use of `idle`.
            idle: What is free.
        """
        self._rows.append((arrived, allocated, fragmented, idle))

    def series(self) -> list[Series]:
        """The metrics by load: the mean of the rows with the load, rounded to a whole percent.

        All are percent: what is allocated of all GPUs, and what is fragmented of the idle ones and
        of all.
        """
        arrived, allocated, fragmented, idle = np.array(self._rows, dtype=np.float64).T
        load = np.rint(arrived / self._num_gpus / 10)
        amount = fragmented.round(2)
        ratio = np.where(idle > 0, 100 * fragmented / np.maximum(idle, 1), 0).round(2)
        columns = {
            "alloc_pct": (allocated / self._num_gpus / 10).round(2),
            "frag_ratio_pct": ratio,
            "frag_amount_pct": amount,
        }
        scales = {"frag_amount_pct": 100 / 1000 / self._num_gpus}
        made = []
        for name, column in columns.items():
            loads, means = _means(load, column)
            scale = scales.get(name, 1.0)
            values = [round(mean * scale, 2) for mean in means]
            made.append(Series(name, "%", loads, values, X_UNIT))
        return made


def value_at(series: Series, load: int) -> float | None:
    """The value at a load; None if no row is near."""
    return dict(zip(series.x, series.y, strict=True)).get(float(load))


def _means(load: _Column, column: _Column) -> tuple[list[float], list[float]]:
    """The mean at each load of 0 to 130; of its neighbours if no row has it."""
    loads, means = [], []
    for percent in range(_MOST + 1):
        rows = load == percent
        if not rows.any():
            rows = abs(load - percent) <= 1
        if rows.any():
            loads.append(float(percent))
            means.append(float(column[rows].mean()))
    return loads, means


def table_values(series: Sequence[Series]) -> dict[str, list[float | None]]:
    """Metric -> its values at `LOADS`."""
    return {each.name: [value_at(each, load) for load in LOADS] for each in series}
