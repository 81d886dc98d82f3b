"""Plugin NodeResourcesBalancedAllocation: prefers nodes whose resources are used in proportion."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from stowage.api.status import SKIP, SUCCESS, Status
from stowage.framework import CycleState, PluginTraits, Reads
from stowage.framework.scores import MAX_NODE_SCORE
from stowage.framework.verdict import BoolArray, Int64Array
from stowage.plugins.node_resources.allocation import ScoredColumns, ScoredResources, plain_request
from stowage.plugins.node_resources.args import NodeResourcesBalancedAllocationArgs
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import NodeView

_HALF = MAX_NODE_SCORE // 2


class BalancedAllocation:
    """Scores nodes by how much the pod changes the balance between their resources."""

    name = "NodeResourcesBalancedAllocation"
    traits = PluginTraits(
        score_reads=Reads.USAGE,
        reads_only_node_demand=True,
        reads_only_amounts=True,
        skips_per_class=True,
    )

    def __init__(self, args: NodeResourcesBalancedAllocationArgs) -> None:
        self._scored = ScoredResources(
            args.scored_resources, plain_request, _scores, with_defaults=False
        )
        if self._scored.may_count_devices:
            self.traits = replace(self.traits, reads_only_amounts=False)

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Status:
        """Skip for pods that request none of the resources: they change no balance."""
        del state, nodes
        return SUCCESS if self._scored.requests_any(pod.pod_class) else SKIP

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Int64Array:
        """``int64[len(nodes)]`` in 50..100; 75 where the pod changes nothing."""
        del state
        return self._scored.scores(nodes, pod.pod_class)


def _scores(columns: ScoredColumns) -> Int64Array:
    return balanced_allocation_score(columns.cases, columns.allocatable)


def balanced_allocation_score(cases: Int64Array, allocatable: Int64Array) -> Int64Array:
    """Score every node by how much the pod improves the balance between its resources.

    ``50 + (50 + balance(with) - balance(without)) // 2`` (``balancedResourceScorer`` of v1.36).

    Args:
        cases: ``int64[2, nodes, resources]``: requested amounts with the pod, and without it.
        allocatable: ``int64[nodes, resources]``; 0 means "do not count this resource".

    Returns:
        ``int64[nodes]`` in 50..100; 75 where the pod changes nothing.

    Examples:
        An empty node, on which the pod takes 3/4 of the cpu and 1/2 of the memory:

        >>> balanced_allocation_score(
        ...     np.array([[[3000, 5000]], [[0, 0]]]), np.array([[4000, 10000]])
        ... ).tolist()
        [68]
    """
    with_pod, without = _balance(cases, allocatable)
    gain: Int64Array = with_pod - without
    gain += _HALF
    gain >>= 1  # never negative: a deviation of numbers in 0..1 is at most a half
    gain += _HALF
    return gain


def _balance(cases: Int64Array, allocatable: Int64Array) -> Int64Array:
    """``int64[cases, nodes]``: 100 times 1 minus the standard deviation of the utilizations.

    The deviation of two resources is half their difference; that of one resource or none is 0.
    """
    fractions = np.minimum(cases / np.maximum(allocatable, 1), 1.0)
    if allocatable.shape[1] == 2:
        deviation = np.abs(fractions[..., 0] - fractions[..., 1])
        deviation *= 0.5
        if not allocatable.all():
            deviation *= (allocatable > 0).all(axis=1)
    else:
        deviation = _deviation(fractions, allocatable > 0)
    scores: Int64Array = ((1 - deviation) * float(MAX_NODE_SCORE)).astype(np.int64)
    return scores


def _deviation(fractions: NDArray[np.float64], counted: BoolArray) -> NDArray[np.float64]:
    """``float64[cases, nodes]`` of ``float64[cases, nodes, resources]``.

    The sums run over the counted resources in their order, so that they round as upstream's.
    """
    number = counted.sum(axis=1)
    total = np.zeros(fractions.shape[:2])
    squares = np.zeros(fractions.shape[:2])
    for resource in range(fractions.shape[2]):
        total += np.where(counted[:, resource], fractions[..., resource], 0.0)
    mean = total / np.maximum(number, 1)
    for resource in range(fractions.shape[2]):
        distance = np.where(counted[:, resource], fractions[..., resource] - mean, 0.0)
        squares += distance * distance
    many = np.sqrt(squares / np.maximum(number, 1))
    highest = np.where(counted, fractions, 0.0).max(axis=2, initial=0.0)
    lowest = np.where(counted, fractions, 1.0).min(axis=2, initial=1.0)
    pair = (highest - lowest) / 2
    deviation: NDArray[np.float64] = np.where(number > 2, many, np.where(number == 2, pair, 0.0))
    return deviation
