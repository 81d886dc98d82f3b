"""Scoring strategy LeastAllocated: prefers nodes with much free."""

from __future__ import annotations

import numpy as np

from stowage.framework.scores import MAX_NODE_SCORE
from stowage.framework.verdict import Int64Array
from stowage.plugins.node_resources.weighted_mean import weighted_mean


def least_allocated_score(
    requested: Int64Array, allocatable: Int64Array, weights: Int64Array
) -> Int64Array:
    """Score every node by how much of each resource would stay free.

    Per resource ``(allocatable - requested) * 100 // allocatable``; per node the weighted mean
    over the resources it has. Same floors as ``leastResourceScorer`` (v1.36).

    Args:
        requested: ``int64[nodes, resources]``, pods already placed plus this pod.
        allocatable: ``int64[nodes, resources]``; 0 means "do not count this resource".
        weights: ``int64[resources]``, from ``scoringStrategy.resources``.

    Returns:
        ``int64[nodes]`` in 0..100. An over-requested resource scores 0 but keeps its weight.

    Examples:
        Upstream's "differently sized nodes" case:

        >>> least_allocated_score(
        ...     requested=np.array([[3000, 5000], [3000, 5000]]),
        ...     allocatable=np.array([[4000, 10000], [6000, 10000]]),
        ...     weights=np.array([1, 1]),
        ... ).tolist()
        [37, 50]
    """
    free = np.maximum(allocatable - requested, 0)
    free *= MAX_NODE_SCORE
    return weighted_mean(free, allocatable, weights)
