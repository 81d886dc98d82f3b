"""NodeResourcesFit: the pod's requests must fit into what the node has left."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from stowage.api.config.feature_gates import DEFAULT_FEATURE_GATES, FeatureGates
from stowage.api.values.resource_names import is_extended_resource_name
from stowage.framework import (
    ACCEPT_ALL,
    CycleState,
    EventRegistration,
    FilterVerdict,
    PlacedMembers,
    PluginTraits,
    PreFilterResult,
    Prospects,
    Reads,
    Rejection,
)
from stowage.framework.utilization_shape import utilization_scores
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
from stowage.plugins.node_resources.placement_score import (
    most_allocated_placements,
    most_allocated_with,
)
from stowage.plugins.node_resources.requested_to_capacity_ratio import (
    requested_to_capacity_ratio_score,
)
from stowage.state.nodes.resource_index import PODS
from stowage.state.pods.pod_class import PodClass
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import NodeView, Snapshot

TOO_MANY_PODS = "Too many pods"
_PASSED = PreFilterResult()
_FIT_OF = {LEAST_ALLOCATED: "worst fit", MOST_ALLOCATED: "best fit"}

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
        never_needs_pods=True,
        rejects_per_class=True,
    )

    def __init__(
        self, args: NodeResourcesFitArgs, gates: FeatureGates = DEFAULT_FEATURE_GATES
    ) -> None:
        self._classes_serve = gates.enabled("DRAExtendedResource")
        self._snapshot: Callable[[], Snapshot] | None = None
        self._ignored = frozenset(args.ignored_resources)
        self._ignored_groups = frozenset(args.ignored_resource_groups)
        strategy = args.scoring_strategy
        self._strategy = strategy.type
        self._scored = ScoredResources(
            strategy.scored_resources, request_with_defaults, _formula(strategy), with_defaults=True
        )
        self._placement_resources = strategy.scored_resources
        if self._scored.may_count_devices:
            self.traits = replace(self.traits, reads_only_amounts=False)

    @property
    def title(self) -> str:
        """The name and what the strategy is called: MostAllocated is best fit."""
        return " ".join(filter(None, (self.name, _FIT_OF.get(self._strategy))))

    def read_snapshots(self, snapshot: Callable[[], Snapshot]) -> None:
        """Read device classes from here in hints."""
        self._snapshot = snapshot

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
        classes = nodes.snapshot.devices.classes
        rejections = []
        full = nodes.num_pods >= allocatable[:, PODS]
        if np.count_nonzero(full):
            rejections.append(Rejection(TOO_MANY_PODS, full))
        index_of, everywhere = nodes.snapshot.resources.index_of, None
        for resource, request in pod.pod_class.requests.items():
            if request <= 0 or self.ignores(resource):
                continue
            column = index_of(resource)
            is_served = classes.serves_any and classes.serving(resource) is not None
            if column is None and is_served:
                continue
            if column is None:
                everywhere = np.ones_like(full) if everywhere is None else everywhere
                rejections.append(Rejection(f"Insufficient {resource}", everywhere, True))
                continue
            have = allocatable[:, column]
            short = have - requested[:, column] < request
            if is_served:
                # DynamicResources decides about nodes that have none of it themselves.
                short &= have > 0
            if np.count_nonzero(short):
                reason = f"Insufficient {resource}"
                rejections.append(Rejection(reason, short, unresolvable=have < request))
        return FilterVerdict(tuple(rejections)) if rejections else ACCEPT_ALL

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Int64Array:
        """``int64[len(nodes)]`` in 0..100, by the configured strategy."""
        del state
        return self._scored.scores(nodes, pod.pod_class)

    def score_placements(
        self, snapshot: Snapshot, placements: Sequence[PlacedMembers]
    ) -> Int64Array:
        """``int64[placements]`` in 0..100: how much of each would be taken, for pod groups."""
        return most_allocated_placements(snapshot, placements, self._placement_resources)

    def highest_scores(
        self, snapshot: Snapshot, prospects: Prospects, most: Int64Array
    ) -> Int64Array | None:
        """``int64[placements]``: the scores if each placement takes `most` members."""
        return most_allocated_with(snapshot, prospects, most, self._placement_resources)

    def room(self, snapshot: Snapshot, rows: Int64Array, pod_class: PodClass) -> Int64Array:
        """``int64[nodes]``: how many more pods of a class fit on each of some nodes."""
        allocatable, requested = snapshot.allocatable[rows], snapshot.requested[rows]
        room = allocatable[:, PODS] - snapshot.num_pods[rows]
        for resource, request in pod_class.requests.items():
            if request <= 0 or self.ignores(resource) or self._is_served(resource):
                continue
            column = snapshot.resources.index_of(resource)
            if column is None:
                return np.zeros(len(rows), dtype=np.int64)
            room = np.minimum(room, (allocatable[:, column] - requested[:, column]) // request)
        room[room < 0] = 0
        return room

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Deleted or scaled-down pods, added or larger nodes, device classes."""
        hints = FitHints(self.ignores, self._is_served, classes_serve=self._classes_serve)
        return hints.events_to_register()

    def ignores(self, resource: str) -> bool:
        """Whether Filter does not look at the resource."""
        if not self._ignored and not self._ignored_groups:
            return False
        if not is_extended_resource_name(resource):
            return False
        group = resource.partition("/")[0]
        return resource in self._ignored or group in self._ignored_groups

    def _is_served(self, resource: str) -> bool:
        """Whether a device class serves the resource now."""
        if self._snapshot is None:
            return False
        return self._snapshot().devices.classes.serving(resource) is not None


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
