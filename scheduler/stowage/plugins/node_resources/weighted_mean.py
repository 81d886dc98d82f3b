"""Weighted mean of per-resource scores, with kube-scheduler's floors."""

from __future__ import annotations

import numpy as np

from stowage.framework.verdict import Int64Array


def weighted_mean(parts: Int64Array, allocatable: Int64Array, weights: Int64Array) -> Int64Array:
    """Average the score of each node over the resources that it has.

    ``sum(weight * (part // allocatable)) // sum(weight)``, as the last step of
    ``leastResourceScorer`` and ``mostResourceScorer`` (v1.36). 100 times an amount above 9e16 may
    have become negative, as in Go; divisions then round towards zero.

    Args:
        parts: ``int64[nodes, resources]``: 100 times what is free, or taken.
        allocatable: ``int64[nodes, resources]``; 0 means "do not count this resource".
        weights: ``int64[resources]``.

    Returns:
        ``int64[nodes]``; 0 for a node without any of the resources.

    Examples:
        >>> weighted_mean(np.array([[100, 500]]), np.array([[4, 0]]), np.array([1, 3])).tolist()
        [25]
    """
    # For few nodes argmin takes a quarter of the time of min.
    if parts.size and parts.item(int(parts.argmin())) < 0:
        counted = allocatable > 0
        total = (_divided(parts, np.maximum(allocatable, 1)) * counted) @ weights
        return _divided(total, np.maximum(counted @ weights, 1))
    if len(weights) and allocatable.all():
        mean: Int64Array = (parts // allocatable) @ weights // weights.sum()
        return mean
    counted = allocatable > 0
    total = (parts // np.maximum(allocatable, 1) * counted) @ weights
    total_weight = counted @ weights
    some: Int64Array = total // np.maximum(total_weight, 1)
    return some


def _divided(dividend: Int64Array, divisor: Int64Array) -> Int64Array:
    """The quotient, rounded towards zero."""
    quotient = dividend // divisor
    rounded: Int64Array = quotient + ((dividend < 0) & (quotient * divisor != dividend))
    return rounded
