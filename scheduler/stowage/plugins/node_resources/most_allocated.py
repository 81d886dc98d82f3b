"""Scoring strategy MostAllocated: prefers nodes with little free."""

from __future__ import annotations

import numpy as np

from stowage.framework.scores import MAX_NODE_SCORE
from stowage.framework.verdict import Int64Array
from stowage.plugins.node_resources.weighted_mean import weighted_mean


def most_allocated_score(
    requested: Int64Array, allocatable: Int64Array, weights: Int64Array
) -> Int64Array:
    """Score every node by how much of each resource would be taken.

    Per resource ``min(requested, allocatable) * 100 // allocatable``; per node the weighted mean
    over the resources it has. Same floors as ``mostResourceScorer`` (v1.36). Requests counted with
    default amounts may exceed allocatable.

    Args:
        requested: ``int64[nodes, resources]``, pods already placed plus this pod.
        allocatable: ``int64[nodes, resources]``; 0 means "do not count this resource".
        weights: ``int64[resources]``, from ``scoringStrategy.resources``.

    Returns:
        ``int64[nodes]`` in 0..100.

    Examples:
        Upstream's "differently sized nodes" case:

        >>> most_allocated_score(
        ...     requested=np.array([[3000, 5000], [3000, 5000]]),
        ...     allocatable=np.array([[4000, 10000], [6000, 10000]]),
        ...     weights=np.array([1, 1]),
        ... ).tolist()
        [62, 50]
    """
    used = np.minimum(requested, allocatable)
    used *= MAX_NODE_SCORE
    return weighted_mean(used, allocatable, weights)
