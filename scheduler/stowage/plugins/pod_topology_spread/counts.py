"""Counts of the pods that match a constraint."""

from __future__ import annotations

from stowage.api.values.selectors import NOTHING
from stowage.framework.verdict import Int64Array
from stowage.plugins.pod_topology_spread.constraints import SpreadConstraint
from stowage.state.pods.pod_index import PodCounts
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import Snapshot
from stowage.state.what_if.row_changes import RowChanges


def matching_pods(constraint: SpreadConstraint, pod: PodInfo, snapshot: Snapshot) -> PodCounts:
    """Counts of placed pods in the pod's namespace that match and are not terminating.

    As in ``countPodsMatchSelector`` of v1.36, an empty selector counts no pods.
    """
    selector = constraint.selector
    if selector.matches_everything:
        selector = NOTHING
    namespaces = frozenset((pod.namespace,))
    return snapshot.pods.count_matching(selector, namespaces, skip_terminating=True)


def change_of(constraint: SpreadConstraint, pod: PodInfo, changes: RowChanges) -> Int64Array:
    """``int64[nodes]``: the change in matching pods on each node of a row-local view.

    As in ``updateWithPod`` of v1.36, terminating pods count and an empty selector matches.
    """
    namespaces = frozenset((pod.namespace,))
    return changes.count_matching(constraint.selector, namespaces, skip_terminating=False)
