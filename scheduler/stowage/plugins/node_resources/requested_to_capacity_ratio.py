"""Scoring strategy RequestedToCapacityRatio: scores by a configured function of utilization."""

from __future__ import annotations

import numpy as np

from stowage.framework.utilization_shape import MAX_UTILIZATION
from stowage.framework.verdict import Int64Array


def requested_to_capacity_ratio_score(
    requested: Int64Array, allocatable: Int64Array, weights: Int64Array, table: Int64Array
) -> Int64Array:
    """Score every node by the utilization it would have.

    Per resource ``table[requested * 100 // allocatable]``, full utilization if over-requested;
    per node the weighted mean over the resources with a score above 0, rounded half up
    (``buildRequestedToCapacityRatioScorerFunction`` of v1.36).

    Args:
        requested: ``int64[nodes, resources]``, pods already placed plus this pod.
        allocatable: ``int64[nodes, resources]``; 0 means "do not count this resource".
        weights: ``int64[resources]``, from ``scoringStrategy.resources``.
        table: From `utilization_scores`.

    Returns:
        ``int64[nodes]`` in 0..100.

    Examples:
        Upstream's "nothing scheduled, resources requested, differently sized nodes" case:

        >>> from stowage.api.config.types import UtilizationShapePoint
        >>> from stowage.framework.utilization_shape import utilization_scores
        >>> falling = (UtilizationShapePoint(0, 10), UtilizationShapePoint(100, 0))
        >>> requested_to_capacity_ratio_score(
        ...     requested=np.array([[3000, 5000], [3000, 5000]]),
        ...     allocatable=np.array([[4000, 10000], [6000, 10000]]),
        ...     weights=np.array([1, 1]),
        ...     table=utilization_scores(falling),
        ... ).tolist()
        [38, 50]
    """
    utilization = requested * MAX_UTILIZATION // np.maximum(allocatable, 1)
    utilization[requested > allocatable] = MAX_UTILIZATION
    per_resource = table[np.clip(utilization, 0, MAX_UTILIZATION)]
    counted = (allocatable > 0) & (per_resource > 0)
    total = (per_resource * counted) @ weights
    total_weight = np.maximum(counted @ weights, 1)
    scores: Int64Array = (2 * total + total_weight) // (2 * total_weight)
    return scores
