"""NodeUnschedulable: cordoned nodes take only pods that tolerate it."""

from __future__ import annotations

from collections.abc import Sequence

from scheduler.api.events import ActionType, ClusterEvent, EventResource
from scheduler.api.node import Taint
from scheduler.api.tolerations import NO_SCHEDULE, tolerated
from scheduler.framework import (
    ACCEPT_ALL,
    CycleState,
    EventRegistration,
    FilterVerdict,
    NoArgs,
    Reads,
    Rejection,
)
from scheduler.state.pod_info import PodInfo
from scheduler.state.snapshot import NodeView

REASON = "node(s) were unschedulable"
_TAINT = Taint("node.kubernetes.io/unschedulable", "", NO_SCHEDULE)


class NodeUnschedulable:
    """Refuses nodes with ``spec.unschedulable``."""

    name = "NodeUnschedulable"
    filter_reads = Reads.NODE

    def __init__(self, args: NoArgs) -> None:
        del args

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> FilterVerdict:
        """Unresolvable for cordoned nodes, unless the pod tolerates the taint they get."""
        del state
        cordoned = nodes.unschedulable
        if not cordoned.any() or tolerated(_TAINT, pod.spec.tolerations):
            return ACCEPT_ALL
        return FilterVerdict((Rejection(REASON, cordoned, unresolvable=True),))

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Nodes that come or lose taints, and the pod's own tolerations."""
        node = ActionType.ADD | ActionType.UPDATE_NODE_TAINT
        return (
            EventRegistration(ClusterEvent(EventResource.NODE, node)),
            EventRegistration(
                ClusterEvent(EventResource.UNSCHEDULED_POD, ActionType.UPDATE_POD_TOLERATION)
            ),
        )
