"""Plugin TaintToleration: rejects or scores down nodes with taints that a pod does not tolerate.

TaintTolerationPriority is the priority of kube-scheduler 1.12: the same counts in whole points.
"""

from __future__ import annotations

from collections.abc import Sequence

from stowage.api.cluster_events import ActionType, ClusterEvent, EventResource, QueueingHint
from stowage.api.config.feature_gates import COMPARISON_GATE, DEFAULT_FEATURE_GATES, FeatureGates
from stowage.api.objects.node import Node
from stowage.api.values.tolerations import (
    DO_NOT_SCHEDULE_EFFECTS,
    PREFER_NO_SCHEDULE,
    first_untolerated_taint,
)
from stowage.framework import (
    ACCEPT_ALL,
    CycleState,
    EventRegistration,
    FilterVerdict,
    NoArgs,
    PluginTraits,
    Reads,
    Rejection,
    default_normalize_score,
)
from stowage.framework.scores import normalize_points
from stowage.framework.verdict import Int64Array
from stowage.state.nodes.node_matching import tolerated_taint_sets, untolerated_taint_counts
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import NodeView

REASON = "node(s) had untolerated taint(s)"
_PREFERENCES = frozenset({PREFER_NO_SCHEDULE})


class TaintToleration:
    """Filters by NoSchedule and NoExecute taints, scores by PreferNoSchedule taints.

    Nodes share few distinct sets of taints; each set is judged once. With the feature gate
    TaintTolerationComparisonOperators, the operators Lt and Gt of tolerations compare numbers.
    """

    name = "TaintToleration"
    traits = PluginTraits(
        filter_reads=Reads.NODE,
        score_reads=Reads.NODE,
        reads_only_node_demand=True,
        rejects_per_class=True,
    )

    def __init__(self, args: NoArgs, gates: FeatureGates = DEFAULT_FEATURE_GATES) -> None:
        del args
        self._compares = gates.enabled(COMPARISON_GATE)

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> FilterVerdict:
        """Unresolvable where a NoSchedule or NoExecute taint is not tolerated."""
        del state
        tolerated = tolerated_taint_sets(
            nodes.snapshot,
            pod.spec.tolerations,
            DO_NOT_SCHEDULE_EFFECTS,
            compares=self._compares,
        )
        if tolerated.all():
            return ACCEPT_ALL
        rejected = ~tolerated[nodes.taint_set]
        return FilterVerdict((Rejection(REASON, rejected, unresolvable=True),))

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Int64Array:
        """``int64[len(nodes)]``: number of PreferNoSchedule taints that are not tolerated."""
        del state
        counts = untolerated_taint_counts(
            nodes.snapshot, pod.spec.tolerations, _PREFERENCES, compares=self._compares
        )
        return counts[nodes.taint_set]

    def normalize_score(
        self, state: CycleState, pod: PodInfo, nodes: NodeView, scores: Int64Array
    ) -> Int64Array:
        """Scale to 0..100, reversed: the fewest untolerated taints get the highest score."""
        del state, pod, nodes
        return default_normalize_score(scores, reverse=True)

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Added nodes, changed taints of nodes, and changed tolerations of the pod itself."""
        node = ActionType.ADD | ActionType.UPDATE_NODE_TAINT
        toleration = ClusterEvent(EventResource.POD, ActionType.UPDATE_POD_TOLERATION)
        return (
            EventRegistration(
                ClusterEvent(EventResource.NODE, node), self.after_node_change, per_demand=True
            ),
            EventRegistration(toleration, after_toleration_change),
        )

    def after_node_change(self, pod: PodInfo, old: Node | None, new: Node | None) -> QueueingHint:
        """``isSchedulableAfterNodeChange``: Queue if the pod tolerates the node only now."""
        if new is None or (old is not None and self._tolerates(pod, old)):
            return QueueingHint.SKIP
        return QueueingHint.when(self._tolerates(pod, new))

    def _tolerates(self, pod: PodInfo, node: Node) -> bool:
        taints, tolerations = node.spec.taints, pod.spec.tolerations
        return first_untolerated_taint(taints, tolerations, compares=self._compares) is None


class TaintTolerationPriority:
    """Scores by PreferNoSchedule taints, in points of 1.12."""

    name = "TaintTolerationPriority"
    traits = PluginTraits(score_reads=Reads.NODE, reads_only_node_demand=True)

    def __init__(self, args: NoArgs) -> None:
        self._counting = TaintToleration(args)

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Int64Array:
        """``int64[len(nodes)]``: number of PreferNoSchedule taints that are not tolerated."""
        return self._counting.score(state, pod, nodes)

    def normalize_score(
        self, state: CycleState, pod: PodInfo, nodes: NodeView, scores: Int64Array
    ) -> Int64Array:
        """Scale to whole points, reversed: the fewest untolerated taints get the highest score."""
        del state, pod, nodes
        return normalize_points(scores, reverse=True)


def after_toleration_change(pod: PodInfo, old: PodInfo | None, new: PodInfo | None) -> QueueingHint:
    """``isSchedulableAfterPodTolerationChange``: Queue if the event is about the pod itself."""
    del old
    return QueueingHint.when(new is not None and new.uid == pod.uid)
