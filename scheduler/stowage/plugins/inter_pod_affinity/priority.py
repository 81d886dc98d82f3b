"""Plugin InterPodAffinityPriority: the priority of kube-scheduler 1.12.

It sums the same weights as InterPodAffinity's Score, and scales them in another way.
"""

from __future__ import annotations

from stowage.api.status import SKIP, SUCCESS, Status
from stowage.framework import CycleState, PluginTraits
from stowage.framework.verdict import Int64Array
from stowage.plugins.inter_pod_affinity.args import InterPodAffinityArgs
from stowage.plugins.inter_pod_affinity.score import (
    ScoreState,
    affinity_score,
    normalized_from_zero,
    sum_preferred_terms,
)
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import NodeView


class _PriorityState(ScoreState, frozen=True):
    """The sums; a type of its own, so that a profile may have InterPodAffinity's Score as well."""


class InterPodAffinityPriority:
    """Scores nodes near to, or away from, other pods in a topology domain, from a zero baseline."""

    name = "InterPodAffinityPriority"
    traits = PluginTraits(skips_per_class=True)

    def __init__(self, args: InterPodAffinityArgs) -> None:
        self.args = args

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Status:
        """Sum the weights per domain; Skip if no term applies: all nodes would score 0."""
        summed = sum_preferred_terms(self.args, pod, nodes.snapshot)
        if summed is None:
            return SKIP
        state.write(_PriorityState(summed.weights, summed.few))
        return SUCCESS

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Int64Array:
        """``int64[nodes]``, positive for attraction, negative for repulsion."""
        del pod
        return affinity_score(state.read(_PriorityState), nodes)

    def normalize_score(
        self, state: CycleState, pod: PodInfo, nodes: NodeView, scores: Int64Array
    ) -> Int64Array:
        """Scale to whole points of 0..10, times 10; see `normalized_from_zero`."""
        del state, pod, nodes
        return normalized_from_zero(scores)
