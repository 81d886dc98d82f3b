"""Plugin InterPodAffinity: its extension points."""

from __future__ import annotations

from collections.abc import Sequence

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
from stowage.plugins.inter_pod_affinity.args import InterPodAffinityArgs
from stowage.plugins.inter_pod_affinity.filter import required_terms_verdict
from stowage.plugins.inter_pod_affinity.hints import events_to_register
from stowage.plugins.inter_pod_affinity.pre_filter import (
    FilterState,
    count_required_terms,
    needed_terms,
)
from stowage.plugins.inter_pod_affinity.row_local import Repellers, required_terms_verdict_alone
from stowage.plugins.inter_pod_affinity.score import (
    ScoreState,
    affinity_score,
    normalized_between_extremes,
    shared_affinity_scores,
    sum_preferred_terms,
)
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import NodeView, Snapshot

_SKIPPED = PreFilterResult(SKIP)
_WANTED = PreFilterResult()


class InterPodAffinity:
    """Places pods near to, or away from, other pods in a topology domain."""

    name = "InterPodAffinity"
    traits = PluginTraits(
        filters_what_ifs=True,
        rejects_per_class=True,
        skips_per_class=True,
    )

    def __init__(self, args: InterPodAffinityArgs | None = None) -> None:
        self.args = args or InterPodAffinityArgs()

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Changed pods, nodes and namespaces; see `hints`."""
        return events_to_register()

    def pre_filter(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult:
        """Find the domains of matching pods; Skip if no required term applies."""
        counted = needed_terms(pod, snapshot)
        if counted is None:
            return _SKIPPED
        state.write(counted)
        return _WANTED

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> FilterVerdict:
        """Reject nodes by the required terms of the pod and of placed pods.

        Nodes of a what-if snapshot are judged by that snapshot; each node of a row-local view is
        judged with its own changes.
        """
        if nodes.changes is not None:
            repellers = state.get(Repellers)
            if repellers is None or not repellers.hold_for(pod, nodes.snapshot):
                repellers = Repellers.count(pod, nodes.snapshot)
                state.write(repellers)
            return required_terms_verdict_alone(pod, nodes, nodes.changes, repellers)
        counted = state.read(FilterState)
        if counted.snapshot is not nodes.snapshot:
            counted = count_required_terms(pod, nodes.snapshot)
        return required_terms_verdict(counted, nodes)

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Status:
        """Sum the weights per domain; Skip if no term applies."""
        summed = sum_preferred_terms(self.args, pod, nodes.snapshot)
        if summed is None:
            return SKIP
        state.write(summed)
        return SUCCESS

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Int64Array:
        """``int64[nodes]``, positive for attraction, negative for repulsion."""
        del pod
        return affinity_score(state.read(ScoreState), nodes)

    def shared_scores(
        self, state: CycleState, pod: PodInfo, nodes: NodeView
    ) -> SharedScores | Int64Array:
        """`score` by the distinct scores."""
        del pod
        return shared_affinity_scores(state.read(ScoreState), nodes)

    def normalize_score(
        self, state: CycleState, pod: PodInfo, nodes: NodeView, scores: Int64Array
    ) -> Int64Array:
        """Scale to 0..100 between the lowest and the highest score of the feasible nodes."""
        del state, pod, nodes
        return normalized_between_extremes(scores)
