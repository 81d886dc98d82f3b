"""Plugin NodePorts: two pods on one node cannot use the same host port."""

from __future__ import annotations

from collections.abc import Sequence

from stowage.api.cluster_events import ActionType, ClusterEvent, EventResource, QueueingHint
from stowage.api.status import SKIP
from stowage.framework import (
    ACCEPT_ALL,
    CycleState,
    EventRegistration,
    FilterVerdict,
    NoArgs,
    PluginTraits,
    PreFilterResult,
    Reads,
    Rejection,
)
from stowage.state.nodes.host_ports import ports_conflict
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import NodeView, Snapshot

REASON = "node(s) didn't have free ports for the requested pod ports"
_SKIPPED = PreFilterResult(SKIP)
_WANTED = PreFilterResult()


class NodePorts:
    """Rejects nodes where a host port of the pod is in use."""

    name = "NodePorts"
    traits = PluginTraits(
        filter_reads=Reads.USAGE,
        reads_only_node_demand=True,
        filters_what_ifs=True,
        never_needs_pods=True,
        rejects_per_class=True,
        skips_per_class=True,
    )

    def __init__(self, args: NoArgs) -> None:
        del args

    def pre_filter(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult:
        """Skip for pods without host ports."""
        del state, snapshot
        return _WANTED if pod.pod_class.host_ports else _SKIPPED

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> FilterVerdict:
        """Unschedulable where a pod uses the protocol and port on the same IP, or on any IP."""
        del state
        taken = nodes.ports_in_conflict(pod.pod_class.host_ports)
        if not taken.any():
            return ACCEPT_ALL
        return FilterVerdict((Rejection(REASON, taken),))

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Deleted pods and added nodes."""
        return (
            EventRegistration(
                ClusterEvent(EventResource.POD, ActionType.DELETE),
                after_pod_deleted,
                per_demand=True,
            ),
            EventRegistration(ClusterEvent(EventResource.NODE, ActionType.ADD)),
        )


def after_pod_deleted(pod: PodInfo, old: PodInfo | None, new: PodInfo | None) -> QueueingHint:
    """``isSchedulableAfterPodDeleted``: Queue if the deleted pod's host ports conflict.

    The deleted pod must have been placed or nominated.
    """
    del new
    if old is None or not (old.node_name or old.nominated_node_name):
        return QueueingHint.SKIP
    wanted, freed = pod.pod_class.host_ports, old.pod_class.host_ports
    return QueueingHint.when(any(ports_conflict(one, other) for one in wanted for other in freed))
