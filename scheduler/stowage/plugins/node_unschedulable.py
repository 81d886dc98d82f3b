"""Plugin NodeUnschedulable: cordoned nodes accept only pods that tolerate the taint."""

from __future__ import annotations

from collections.abc import Sequence

from stowage.api.cluster_events import ActionType, ClusterEvent, EventResource, QueueingHint
from stowage.api.objects.node import Node, Taint
from stowage.api.values.tolerations import NO_SCHEDULE, tolerated
from stowage.framework import (
    ACCEPT_ALL,
    CycleState,
    EventRegistration,
    FilterVerdict,
    NoArgs,
    PluginTraits,
    Reads,
    Rejection,
)
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import NodeView

REASON = "node(s) were unschedulable"
CORDON_TAINT = Taint("node.kubernetes.io/unschedulable", "", NO_SCHEDULE)


class NodeUnschedulable:
    """Rejects nodes with ``spec.unschedulable``."""

    name = "NodeUnschedulable"
    traits = PluginTraits(
        filter_reads=Reads.NODE, reads_only_node_demand=True, rejects_per_class=True
    )

    def __init__(self, args: NoArgs) -> None:
        del args

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> FilterVerdict:
        """Unresolvable for cordoned nodes, unless the pod tolerates the unschedulable taint."""
        del state
        cordoned = nodes.unschedulable
        if not cordoned.any() or tolerated(CORDON_TAINT, pod.spec.tolerations):
            return ACCEPT_ALL
        return FilterVerdict((Rejection(REASON, cordoned, unresolvable=True),))

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Added or uncordoned nodes, and changed tolerations of the pod itself."""
        node = ActionType.ADD | ActionType.UPDATE_NODE_TAINT
        toleration = ClusterEvent(EventResource.POD, ActionType.UPDATE_POD_TOLERATION)
        return (
            EventRegistration(
                ClusterEvent(EventResource.NODE, node), after_node_change, per_demand=True
            ),
            EventRegistration(toleration, after_toleration_change),
        )


def after_node_change(pod: PodInfo, old: Node | None, new: Node | None) -> QueueingHint:
    """``isSchedulableAfterNodeChange``: Queue if a schedulable node is new or was uncordoned."""
    del pod
    was_cordoned = old is None or old.spec.unschedulable
    return QueueingHint.when(was_cordoned and new is not None and not new.spec.unschedulable)


def after_toleration_change(pod: PodInfo, old: PodInfo | None, new: PodInfo | None) -> QueueingHint:
    """``isSchedulableAfterPodTolerationChange``: Queue if the pod tolerates cordoned nodes now."""
    del old
    own = new is not None and new.uid == pod.uid
    return QueueingHint.when(
        own and new is not None and tolerated(CORDON_TAINT, new.spec.tolerations)
    )
