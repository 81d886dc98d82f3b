"""Plugin PodTopologySpread: its extension points."""

from __future__ import annotations

from collections.abc import Sequence

from stowage.api.config.feature_gates import (
    COMPARISON_GATE,
    DEFAULT_FEATURE_GATES,
    LABEL_KEYS_GATE,
    FeatureGates,
)
from stowage.api.status import SKIP, SUCCESS, Status
from stowage.framework import (
    CycleState,
    EventRegistration,
    FilterVerdict,
    PluginTraits,
    PreFilterResult,
)
from stowage.framework.shared_scores import SharedScores
from stowage.framework.verdict import Int64Array
from stowage.plugins.pod_topology_spread.args import (
    DO_NOT_SCHEDULE,
    SCHEDULE_ANYWAY,
    PodTopologySpreadArgs,
)
from stowage.plugins.pod_topology_spread.constraints import ConstraintsOf
from stowage.plugins.pod_topology_spread.eligibility import EligibleNodes
from stowage.plugins.pod_topology_spread.filter import FilterState, spread_verdict
from stowage.plugins.pod_topology_spread.hints import events_to_register
from stowage.plugins.pod_topology_spread.score import (
    ScoreState,
    normalized_reversed,
    prepare_score,
    shared_spread_scores,
    spread_score,
)
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import NodeView, Snapshot

_SKIPPED = PreFilterResult(SKIP)
_WANTED = PreFilterResult()


class PodTopologySpread:
    """Keeps the pods of a workload spread over the values of node labels."""

    name = "PodTopologySpread"
    traits = PluginTraits(
        filters_what_ifs=True,
        rejects_per_class=True,
        skips_per_class=True,
    )

    def __init__(
        self,
        args: PodTopologySpreadArgs | None = None,
        gates: FeatureGates = DEFAULT_FEATURE_GATES,
    ) -> None:
        self.args = args or PodTopologySpreadArgs()
        reads_label_keys = gates.enabled(LABEL_KEYS_GATE)
        self._constraints_of = ConstraintsOf(self.args, reads_label_keys=reads_label_keys)
        self._eligible = EligibleNodes(compares=gates.enabled(COMPARISON_GATE))

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Changed pods and nodes; see `hints`."""
        return events_to_register(self._constraints_of)

    def pre_filter(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult:
        """Find the hard constraints; Skip if there are none."""
        constraints = self._constraints_of.of(pod, DO_NOT_SCHEDULE, snapshot.workloads)
        if not constraints:
            return _SKIPPED
        state.write(FilterState(constraints))
        return _WANTED

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> FilterVerdict:
        """Reject nodes without a topology key or with too many matching pods in their domain."""
        return spread_verdict(state.read(FilterState), self._eligible, pod, nodes)

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Status:
        """Find the soft constraints and the nodes to score; Skip without constraints.

        Nodes that lack a topology key are scored only under the built-in default constraints, so
        that hostnames count in clusters without zones.
        """
        constraints = self._constraints_of.of(pod, SCHEDULE_ANYWAY, nodes.snapshot.workloads)
        if not constraints:
            return SKIP
        all_keys = bool(pod.spec.topology_spread_constraints) or not self.args.is_system
        state.write(prepare_score(constraints, all_keys, nodes))
        return SUCCESS

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Int64Array:
        """``int64[nodes]``: grows with the matching pods in the node's domains."""
        return spread_score(state.read(ScoreState), self._eligible, pod, nodes)

    def shared_scores(
        self, state: CycleState, pod: PodInfo, nodes: NodeView
    ) -> SharedScores | Int64Array:
        """`score` by the distinct scores."""
        return shared_spread_scores(state.read(ScoreState), self._eligible, pod, nodes)

    def normalize_score(
        self, state: CycleState, pod: PodInfo, nodes: NodeView, scores: Int64Array
    ) -> Int64Array:
        """Reverse, so that domains with the fewest matching pods get the highest score."""
        del pod, nodes
        return normalized_reversed(scores, state.read(ScoreState).ignored)
