"""NodeResourcesBalancedAllocation: use the resources of a node in proportion."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from scheduler.api.status import SKIP, SUCCESS, Status
from scheduler.framework import CycleState, Reads
from scheduler.framework.scores import MAX_NODE_SCORE
from scheduler.framework.verdict import BoolArray, Int64Array
from scheduler.plugins.node_resources.allocation import ScoredResources, plain_request
from scheduler.plugins.node_resources.args import NodeResourcesBalancedAllocationArgs
from scheduler.state.pod_info import PodInfo
from scheduler.state.snapshot import NodeView

_HALF = MAX_NODE_SCORE // 2


class BalancedAllocation:
    """Scores nodes by how much the pod evens out, or unbalances, their utilization."""

    name = "NodeResourcesBalancedAllocation"
    score_reads = Reads.USAGE

    def __init__(self, args: NodeResourcesBalancedAllocationArgs) -> None:
        self._scored = ScoredResources(args.scored_resources, plain_request, with_defaults=False)

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Status:
        """Skip for pods that request nothing: they balance nothing."""
        del state, nodes
        return SUCCESS if self._scored.requests_any(pod.pod_class) else SKIP

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Int64Array:
        """``int64[len(nodes)]`` in 25..100; 75 where the pod changes nothing."""
        del state
        allocation = self._scored.allocation(nodes, pod.pod_class)
        return balanced_allocation_score(
            allocation.requested, allocation.taken, allocation.allocatable
        )


def balanced_allocation_score(
    requested: Int64Array, allocated: Int64Array, allocatable: Int64Array
) -> Int64Array:
    """Compare the balance with the pod to the balance without it.

    ``50 + (50 + balance(requested) - balance(allocated)) // 2`` (``balancedResourceScorer`` of
    v1.36).

    Args:
        requested: ``int64[nodes, resources]``, pods already placed plus this pod.
        allocated: ``int64[nodes, resources]``, pods already placed.
        allocatable: ``int64[nodes, resources]``; 0 means "do not count this resource".

    Returns:
        ``int64[nodes]`` in 25..100.

    Examples:
        >>> balanced_allocation_score(
        ...     np.array([[3000, 5000]]), np.array([[0, 0]]), np.array([[4000, 10000]])
        ... ).tolist()
        [68]
    """
    # Both balances in one go: for a few nodes the calls cost more than the arithmetic.
    with_pod, without = _balance(np.array((requested, allocated)), allocatable)
    gain = with_pod - without
    gain += _HALF
    gain >>= 1  # never negative: a deviation of numbers in 0..1 is at most a half
    gain += _HALF
    return gain


def _balance(requested: Int64Array, allocatable: Int64Array) -> Int64Array:
    """``int64[cases, nodes]``: 100 times 1 minus the standard deviation of the utilizations.

    With two resources the deviation is half their difference, with one or none it is 0.
    """
    if requested.shape[2] == 2 and allocatable.all():
        fractions = np.minimum(requested / allocatable, 1.0)
        deviation = np.abs((fractions[..., 0] - fractions[..., 1]) / 2)
    else:
        counted = allocatable > 0
        fractions = np.minimum(requested / np.where(counted, allocatable, 1), 1.0)
        deviation = np.array([_deviation(case, counted) for case in fractions])
    scores: Int64Array = ((1 - deviation) * float(MAX_NODE_SCORE)).astype(np.int64)
    return scores


def _deviation(fractions: NDArray[np.float64], counted: BoolArray) -> NDArray[np.float64]:
    """``float64[nodes]`` of ``float64[nodes, resources]``, over the counted resources only."""
    fractions = np.where(counted, fractions, 0.0)
    number = counted.sum(axis=1)
    total = np.zeros(len(fractions))
    for column in fractions.T:
        total += column
    mean = total / np.maximum(number, 1)
    squares = np.zeros(len(fractions))
    for column, counts in zip(fractions.T, counted.T, strict=True):
        squares += np.where(counts, (column - mean) * (column - mean), 0.0)
    many = np.sqrt(squares / np.maximum(number, 1))
    highest = np.where(counted, fractions, -np.inf).max(axis=1, initial=-np.inf)
    lowest = np.where(counted, fractions, np.inf).min(axis=1, initial=np.inf)
    pair = np.where(number == 2, highest, 0.0) - np.where(number == 2, lowest, 0.0)
    deviation: NDArray[np.float64] = np.where(number == 2, pair / 2, np.where(number > 2, many, 0))
    return deviation
