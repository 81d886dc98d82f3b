"""Plugin EqualPriority: gives every node the same score.

A priority of kube-scheduler 1.12, which applied it where no other priority was configured.
"""

from __future__ import annotations

import numpy as np

from stowage.framework import CycleState, NoArgs, PluginTraits, Reads
from stowage.framework.scores import POINT
from stowage.framework.verdict import Int64Array
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import NodeView


class EqualPriority:
    """Scores every node the same."""

    name = "EqualPriority"
    traits = PluginTraits(score_reads=Reads.NODE, reads_only_node_demand=True)

    def __init__(self, args: NoArgs) -> None:
        del args

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Int64Array:
        """``int64[len(nodes)]``: 10, i.e. 1 of 10 points (``EqualPriorityMap`` of 1.12)."""
        del state, pod
        return np.full(len(nodes), POINT, dtype=np.int64)
