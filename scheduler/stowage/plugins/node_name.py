"""Plugin NodeName: a pod with ``spec.nodeName`` fits that node only."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stowage.api.cluster_events import ActionType, ClusterEvent, EventResource
from stowage.framework import (
    ACCEPT_ALL,
    CycleState,
    EventRegistration,
    FilterVerdict,
    NoArgs,
    PluginTraits,
    Rejection,
)
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import NodeView

REASON = "node(s) didn't match the requested node name"


class NodeName:
    """Rejects all nodes but ``spec.nodeName``, if it is set."""

    name = "NodeName"
    # The node name is not part of the pod's class, so no answer may be kept per class. A rejection
    # may be: that of a pod with a node name never is.
    traits = PluginTraits(
        filters_what_ifs=True,
        never_needs_pods=True,
        rejects_per_class=True,
        reads_only_node_demand=True,
    )

    def __init__(self, args: NoArgs) -> None:
        del args

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> FilterVerdict:
        """Unresolvable for every other node."""
        del state
        if not pod.node_name:
            return ACCEPT_ALL
        row = nodes.snapshot.row_of(pod.node_name)
        others = np.ones(len(nodes), dtype=np.bool_) if row is None else nodes.rows != row
        return FilterVerdict((Rejection(REASON, others, unresolvable=True),))

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Added nodes."""
        return (EventRegistration(ClusterEvent(EventResource.NODE, ActionType.ADD)),)
