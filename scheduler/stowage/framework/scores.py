"""Normalisation and checks of scores, with kube-scheduler's rounding."""

from __future__ import annotations

from typing import Any

import numpy as np

from stowage.framework.verdict import BoolArray, Int64Array

MAX_NODE_SCORE = 100
MAX_POINTS = 10
"""The highest score of a priority of kube-scheduler 1.12, which knows whole points of 0..10."""
POINT = MAX_NODE_SCORE // MAX_POINTS
"""The score of one point. Weighted sums of multiples of it order nodes, and tie, as in 1.12."""


def default_normalize_score(scores: Int64Array, *, reverse: bool = False) -> Int64Array:
    """Scale scores to 0..100 in proportion to the highest one.

    ``score * 100 // highest``, and ``100`` minus that if `reverse`; if all are 0 they stay 0, or
    become 100 if `reverse`. Same as ``helper.DefaultNormalizeScore`` (v1.36).

    Args:
        scores: ``int64[nodes]``, not negative.
        reverse: Whether a low raw score is good.

    Returns:
        ``int64[nodes]`` in 0..100.

    Examples:
        >>> default_normalize_score(np.array([1, 2, 3, 4])).tolist()
        [25, 50, 75, 100]
        >>> default_normalize_score(np.array([1, 2, 3, 4]), reverse=True).tolist()
        [75, 50, 25, 0]
        >>> default_normalize_score(np.array([0, 0]), reverse=True).tolist()
        [100, 100]
    """
    highest = int(scores.max(initial=0))
    if highest == 0:
        return np.full_like(scores, MAX_NODE_SCORE) if reverse else scores
    normalized: Int64Array = scores * MAX_NODE_SCORE // highest
    return MAX_NODE_SCORE - normalized if reverse else normalized


def normalize_points(scores: Int64Array, *, reverse: bool = False) -> Int64Array:
    """Scale scores to whole points in proportion to the highest one, each worth `POINT`.

    ``score * 10 // highest`` points, and ``10`` minus that if `reverse`; if all are 0 they stay 0,
    or become 10 points if `reverse` (``NormalizeReduce`` of 1.12).

    Args:
        scores: ``int64[nodes]``, not negative.
        reverse: Whether a low raw score is good.

    Returns:
        ``int64[nodes]``, multiples of `POINT` in 0..100.

    Examples:
        >>> normalize_points(np.array([1, 2, 3, 4])).tolist()
        [20, 50, 70, 100]
        >>> normalize_points(np.array([1, 2, 3, 4]), reverse=True).tolist()
        [80, 50, 30, 0]
        >>> normalize_points(np.array([0, 0]), reverse=True).tolist()
        [100, 100]
    """
    highest = int(scores.max(initial=0))
    points = scores if highest == 0 else scores * MAX_POINTS // highest
    return (MAX_POINTS - points if reverse else points) * POINT


def narrowest_type(highest: int) -> np.dtype[np.signedinteger[Any]]:
    """The narrowest integer type from ``int16`` on that holds `highest`; at most ``int64``.

    Adding and comparing ``int16`` takes a quarter of the time of ``int64``.

    Examples:
        >>> [str(narrowest_type(highest)) for highest in (2**15 - 1, 2**15, 2**31, 2**70)]
        ['int16', 'int32', 'int64', 'int64']
    """
    for kind in (np.int16, np.int32):
        if highest <= np.iinfo(kind).max:
            return np.dtype(kind)
    return np.dtype(np.int64)


def out_of_range(scores: Int64Array) -> BoolArray:
    """``bool[nodes]``: scores that are not in 0..100."""
    # Negative numbers are huge as unsigned ones, so one comparison checks both bounds.
    outside: BoolArray = scores.view(np.uint64) > MAX_NODE_SCORE
    return outside


def any_out_of_range(scores: Int64Array) -> bool:
    """Whether any score is not in 0..100."""
    return bool(scores.view(np.uint64).max(initial=0) > MAX_NODE_SCORE)


def uniform_score(scores: Int64Array) -> int | None:
    """The score that all nodes share, or None if they differ; 0 if there is no node."""
    if not len(scores):
        return 0
    first = int(scores[0])
    return first if bool((scores == first).all()) else None
