"""A score by map and reduce: kube-scheduler 1.12's NodeAffinityPriority, written once more."""

from stowage.framework.authoring import (
    CycleState,
    Int64Array,
    NodeInfo,
    NodeView,
    PluginTraits,
    PodInfo,
    Reads,
)

MAX_POINTS = 10


class PreferredTerms:
    """Prefers nodes that meet the preferred node affinity of a pod, by the weights of its terms."""

    name = "PreferredTerms"
    traits = PluginTraits(score_reads=Reads.NODE)

    def score_node(self, pod: PodInfo, node: NodeInfo) -> int:
        """Map: the weights of the terms that the node meets; every operator counts as In."""
        affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
        preferred = affinity and affinity.preferred_during_scheduling_ignored_during_execution
        return sum(
            term.weight
            for term in preferred or ()
            if all(node.labels.get(it.key) in it.values for it in term.preference.match_expressions)
        )

    def normalize_score(
        self, state: CycleState, pod: PodInfo, nodes: NodeView, scores: Int64Array
    ) -> Int64Array:
        """Reduce: points of 0 to 10 in proportion to the highest sum; a point is worth 10."""
        highest = int(scores.max())
        return scores * MAX_POINTS // highest * 10 if highest else scores
