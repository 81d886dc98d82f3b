"""NodeName: a pod that names its node may go only there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stowage.api.events import ActionType, ClusterEvent, EventResource
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
    """Refuses all nodes but ``spec.nodeName``, if that is set."""

    name = "NodeName"
    # The name is the pod's own, not its class's, so nothing may be kept for the class.
    traits = PluginTraits(filters_what_ifs=True, rejects_per_class=True)

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
        """Nodes that come."""
        return (EventRegistration(ClusterEvent(EventResource.NODE, ActionType.ADD)),)
