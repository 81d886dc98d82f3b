"""The pods a constraint is about."""

from __future__ import annotations

from scheduler.api.selectors import NOTHING
from scheduler.plugins.pod_topology_spread.constraints import SpreadConstraint
from scheduler.state.pod_index import PodCounts
from scheduler.state.pod_info import PodInfo
from scheduler.state.snapshot import Snapshot


def matching_pods(constraint: SpreadConstraint, pod: PodInfo, snapshot: Snapshot) -> PodCounts:
    """Placed pods of the pod's namespace that match and are not being deleted.

    An empty selector counts nothing, though it matches the pod itself: ``countPodsMatchSelector``
    of v1.36 says so.
    """
    selector = constraint.selector
    if selector.matches_everything:
        selector = NOTHING
    namespaces = frozenset((pod.namespace,))
    return snapshot.pods.count_matching(selector, namespaces, skip_terminating=True)
