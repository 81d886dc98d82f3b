"""The priorities of kube-scheduler 1.12 that score by cpu and memory, each a plugin of its own.

They compute whole points of 0..10 with the divisions of 1.12, and multiply them by 10: weighted
sums then order nodes, and tie, exactly as in 1.12.

Requests count as in v1.36: 100m cpu and 200Mi for each container without a request, init
containers by their peak, overhead and pod-level requests. 1.12 knows no overhead and no pod-level
requests, and its priorities leave out init containers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import numpy as np

from stowage.framework import CycleState, NoArgs, PluginTraits, Reads
from stowage.framework.scores import MAX_POINTS, POINT
from stowage.framework.utilization_shape import MAX_UTILIZATION, utilization_scores
from stowage.framework.verdict import Int64Array
from stowage.plugins.node_resources.args import RequestedToCapacityRatioPriorityArgs
from stowage.state.nodes.resource_index import CPU, MEMORY
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import NodeView

_CPU_AND_MEMORY = slice(CPU, MEMORY + 1)

Formula: TypeAlias = Callable[[Int64Array, Int64Array], Int64Array]
"""From ``int64[nodes, 2]`` requested and ``int64[nodes, 2]`` allocatable to points."""


class ResourcePriority:
    """Scores nodes by the cpu and memory that their pods would request.

    Args:
        name: The plugin's name.
        formula: The points of each node.
    """

    traits = PluginTraits(
        score_reads=Reads.USAGE, reads_only_node_demand=True, reads_only_amounts=True
    )

    def __init__(self, name: str, formula: Formula) -> None:
        self.name = name
        self._formula = formula

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Int64Array:
        """``int64[len(nodes)]``: 10 times the points of each node."""
        del state
        own = pod.pod_class
        requested = nodes.nonzero_requested + np.array(
            (own.nonzero_cpu_milli, own.nonzero_memory_bytes), dtype=np.int64
        )
        points = self._formula(requested, nodes.allocatable[:, _CPU_AND_MEMORY])
        return points * POINT


def least_requested_points(requested: Int64Array, allocatable: Int64Array) -> Int64Array:
    """Points for what stays free: ``(allocatable - requested) * 10 // allocatable``, the mean.

    0 for a resource that is over-requested or that the node does not have. The sum of cpu and
    memory is halved (``leastResourceScorer`` of 1.12).

    Args:
        requested: ``int64[nodes, 2]``, pods already placed plus this pod.
        allocatable: ``int64[nodes, 2]``.

    Returns:
        ``int64[nodes]`` in 0..10.

    Examples:
        85 of 100 cpu and 80 of 100 memory are free: 8 points each.

        >>> least_requested_points(np.array([[15, 20]]), np.array([[100, 100]])).tolist()
        [8]
    """
    free = np.maximum(allocatable - requested, 0) * MAX_POINTS
    return _half_of_sum(free // np.maximum(allocatable, 1))


def most_requested_points(requested: Int64Array, allocatable: Int64Array) -> Int64Array:
    """Points for what is taken: ``requested * 10 // allocatable``, the mean.

    0 for a resource that is over-requested or that the node does not have
    (``mostResourceScorer`` of 1.12).

    Args:
        requested: ``int64[nodes, 2]``, pods already placed plus this pod.
        allocatable: ``int64[nodes, 2]``.

    Returns:
        ``int64[nodes]`` in 0..10.

    Examples:
        >>> most_requested_points(
        ...     np.array([[3000, 5000], [4001, 5000]]), np.array([[4000, 10000], [4000, 10000]])
        ... ).tolist()
        [6, 2]
    """
    taken = np.where(requested <= allocatable, requested, 0) * MAX_POINTS
    return _half_of_sum(taken // np.maximum(allocatable, 1))


def balanced_points(requested: Int64Array, allocatable: Int64Array) -> Int64Array:
    """Points for balance: ``10 - abs(cpuFraction - memoryFraction) * 10``, truncated.

    0 where a resource is taken entirely, or where the node does not have it. The fractions are
    float64 (``balancedResourceScorer`` of 1.12).

    Args:
        requested: ``int64[nodes, 2]``, pods already placed plus this pod.
        allocatable: ``int64[nodes, 2]``.

    Returns:
        ``int64[nodes]`` in 0..10.

    Examples:
        10 of 100 cpu and 10 of 20 memory; then half of both.

        >>> balanced_points(
        ...     np.array([[10, 10], [50, 10]]), np.array([[100, 20], [100, 20]])
        ... ).tolist()
        [6, 10]
    """
    fractions = np.where(allocatable == 0, 1.0, requested / np.maximum(allocatable, 1))
    difference = np.abs(fractions[:, 0] - fractions[:, 1])
    points = ((1 - difference) * float(MAX_POINTS)).astype(np.int64)
    full = (fractions >= 1).any(axis=1)
    balanced: Int64Array = np.where(full, 0, points)
    return balanced


def requested_to_capacity_ratio_points(
    requested: Int64Array, allocatable: Int64Array, table: Int64Array
) -> Int64Array:
    """Points of the utilization by a broken line, the mean of cpu and memory.

    The utilization is ``100 - (allocatable - requested) * 100 // allocatable`` percent, thus
    rounded up, and 100 for a resource that is over-requested or that the node does not have
    (``buildRequestedToCapacityRatioScorerFunction`` of 1.12).

    Args:
        requested: ``int64[nodes, 2]``, pods already placed plus this pod.
        allocatable: ``int64[nodes, 2]``.
        table: From `utilization_scores`, in points.

    Returns:
        ``int64[nodes]`` in 0..10.

    Examples:
        75 % and 50 % of the first node, 50 % of both of the second:

        >>> falling = utilization_scores(RequestedToCapacityRatioPriorityArgs().shape, MAX_POINTS)
        >>> requested_to_capacity_ratio_points(
        ...     np.array([[3000, 5000], [3000, 5000]]),
        ...     np.array([[4000, 10000], [6000, 10000]]),
        ...     falling,
        ... ).tolist()
        [4, 5]
    """
    free = np.maximum(allocatable - requested, 0)
    utilization = MAX_UTILIZATION - free * MAX_UTILIZATION // np.maximum(allocatable, 1)
    return _half_of_sum(table[utilization])


def _half_of_sum(points: Int64Array) -> Int64Array:
    half: Int64Array = points.sum(axis=1) // 2
    return half


def least_requested_priority(args: NoArgs) -> ResourcePriority:
    """Prefers nodes with much free."""
    del args
    return ResourcePriority("LeastRequestedPriority", least_requested_points)


def most_requested_priority(args: NoArgs) -> ResourcePriority:
    """Prefers nodes with little free."""
    del args
    return ResourcePriority("MostRequestedPriority", most_requested_points)


def balanced_resource_allocation(args: NoArgs) -> ResourcePriority:
    """Prefers nodes whose cpu and memory are used in proportion."""
    del args
    return ResourcePriority("BalancedResourceAllocation", balanced_points)


def requested_to_capacity_ratio_priority(
    args: RequestedToCapacityRatioPriorityArgs,
) -> ResourcePriority:
    """Scores by a configured function of utilization."""
    table = utilization_scores(args.shape, MAX_POINTS)
    formula = partial(requested_to_capacity_ratio_points, table=table)
    return ResourcePriority("RequestedToCapacityRatioPriority", formula)
