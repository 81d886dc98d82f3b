"""NodeResourcesFit: the pod's requests must fit into what the node has left."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from stowage.api.values.resource_names import is_extended_resource_name
from stowage.framework import (
    ACCEPT_ALL,
    CycleState,
    EventRegistration,
    FilterVerdict,
    PluginTraits,
    PreFilterResult,
    Reads,
    Rejection,
)
from stowage.framework.verdict import Int64Array
from stowage.plugins.node_resources.allocation import (
    ScoredColumns,
    ScoredResources,
    request_with_defaults,
)
from stowage.plugins.node_resources.args import (
    LEAST_ALLOCATED,
    MOST_ALLOCATED,
    NodeResourcesFitArgs,
    RequestedToCapacityRatioParam,
    ScoringStrategy,
)
from stowage.plugins.node_resources.hints import FitHints
from stowage.plugins.node_resources.least_allocated import least_allocated_score
from stowage.plugins.node_resources.most_allocated import most_allocated_score
from stowage.plugins.node_resources.requested_to_capacity_ratio import (
    requested_to_capacity_ratio_score,
    utilization_scores,
)
from stowage.state.nodes.resource_index import PODS
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import NodeView, Snapshot

TOO_MANY_PODS = "Too many pods"
_PASSED = PreFilterResult()

ScoreFormula: TypeAlias = Callable[[ScoredColumns], Int64Array]


class NodeResourcesFit:
    """Filters nodes by requests and allocatable, and scores them by the configured strategy."""

    name = "NodeResourcesFit"
    traits = PluginTraits(
        filter_reads=Reads.USAGE,
        score_reads=Reads.USAGE,
        reads_only_node_demand=True,
        reads_only_amounts=True,
        filters_what_ifs=True,
        rejects_per_class=True,
    )

    def __init__(self, args: NodeResourcesFitArgs) -> None:
        self._ignored = frozenset(args.ignored_resources)
        self._ignored_groups = frozenset(args.ignored_resource_groups)
        strategy = args.scoring_strategy
        self._scored = ScoredResources(
            strategy.scored_resources, request_with_defaults, _formula(strategy), with_defaults=True
        )

    def pre_filter(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult:
        """Success for every pod: each takes at least one pod slot of its node."""
        del state, pod, snapshot
        return _PASSED

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> FilterVerdict:
        """Unschedulable where a request exceeds the free amount; unresolvable above allocatable.

        Only resources that the pod requests count: a node that is overcommitted in another
        resource passes (``fitsRequest``).
        """
        del state
        allocatable, requested = nodes.allocatable, nodes.requested
        rejections = []
        full = nodes.num_pods >= allocatable[:, PODS]
        if np.count_nonzero(full):
            rejections.append(Rejection(TOO_MANY_PODS, full))
        index_of, everywhere = nodes.snapshot.resources.index_of, None
        for resource, request in pod.pod_class.requests.items():
            if request <= 0 or self._ignores(resource):
                continue
            column = index_of(resource)
            if column is None:
                everywhere = np.ones_like(full) if everywhere is None else everywhere
                rejections.append(Rejection(f"Insufficient {resource}", everywhere, True))
                continue
            have = allocatable[:, column]
            short = have - requested[:, column] < request
            if np.count_nonzero(short):
                reason = f"Insufficient {resource}"
                rejections.append(Rejection(reason, short, unresolvable=have < request))
        return FilterVerdict(tuple(rejections)) if rejections else ACCEPT_ALL

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Int64Array:
        """``int64[len(nodes)]`` in 0..100, by the configured strategy."""
        del state
        return self._scored.scores(nodes, pod.pod_class)

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Deleted or scaled-down pods, added or larger nodes, device classes."""
        return FitHints(self._ignores).events_to_register()

    def _ignores(self, resource: str) -> bool:
        if not self._ignored and not self._ignored_groups:
            return False
        if not is_extended_resource_name(resource):
            return False
        group = resource.partition("/")[0]
        return resource in self._ignored or group in self._ignored_groups


def _formula(strategy: ScoringStrategy) -> ScoreFormula:
    if strategy.type == LEAST_ALLOCATED:
        return lambda given: least_allocated_score(
            given.requested, given.allocatable, given.weights
        )
    if strategy.type == MOST_ALLOCATED:
        return lambda given: most_allocated_score(given.requested, given.allocatable, given.weights)
    ratio = strategy.requested_to_capacity_ratio or RequestedToCapacityRatioParam()
    table = utilization_scores(ratio.shape)
    return lambda given: requested_to_capacity_ratio_score(
        given.requested, given.allocatable, given.weights, table
    )
