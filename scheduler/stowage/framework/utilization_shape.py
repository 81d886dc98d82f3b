"""Functions of utilization that a configuration gives as points: their errors, and their scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from stowage.api.config.errors import ConfigError
from stowage.api.config.types import UtilizationShapePoint
from stowage.framework.scores import MAX_NODE_SCORE
from stowage.framework.verdict import Int64Array

MAX_UTILIZATION = 100
MAX_SHAPE_SCORE = 10


def utilization_scores(
    shape: Sequence[UtilizationShapePoint], highest: int = MAX_NODE_SCORE
) -> Int64Array:
    """``int64[101]``: the score, 0..highest, at each whole percentage of utilization.

    Linear between the points of `shape` and constant outside them; divisions round towards zero as
    in Go (``BuildBrokenLinearFunction``).

    Examples:
        >>> points = (UtilizationShapePoint(0, 10), UtilizationShapePoint(100, 0))
        >>> utilization_scores(points)[[0, 33, 100]].tolist()
        [100, 67, 0]
    """
    factor = highest // MAX_SHAPE_SCORE
    points = [(point.utilization, point.score * factor) for point in shape]
    return np.array(
        [_score_at(percentage, points) for percentage in range(MAX_UTILIZATION + 1)],
        dtype=np.int64,
    )


def shape_errors(shape: Sequence[UtilizationShapePoint]) -> Iterator[ConfigError]:
    """An error for each point out of bounds or out of order (``validateFunctionShape``)."""
    if not shape:
        yield ConfigError("shape", [], "at least one point")
    last = -1
    for index, point in enumerate(shape):
        path = f"shape[{index}]"
        if not 0 <= point.utilization <= MAX_UTILIZATION:
            yield ConfigError(f"{path}.utilization", point.utilization, "0 to 100")
        elif point.utilization <= last:
            expectation = f"more than {last}, the utilization of the point before"
            yield ConfigError(f"{path}.utilization", point.utilization, expectation)
        if not 0 <= point.score <= MAX_SHAPE_SCORE:
            yield ConfigError(f"{path}.score", point.score, "0 to 10")
        last = max(last, point.utilization)


def _score_at(percentage: int, points: Sequence[tuple[int, int]]) -> int:
    before: tuple[int, int] | None = None
    for utilization, score in points:
        if percentage <= utilization:
            if before is None:
                return score
            rise = (score - before[1]) * (percentage - before[0])
            run = utilization - before[0]
            return before[1] + (abs(rise) // run if rise >= 0 else -(abs(rise) // run))
        before = (utilization, score)
    return points[-1][1]
