"""Plugin SchedulingGates: keeps pods with scheduling gates out of the active queue."""

from __future__ import annotations

from collections.abc import Sequence

from stowage.api.cluster_events import ActionType, ClusterEvent, EventResource, QueueingHint
from stowage.api.status import SUCCESS, Status, unresolvable
from stowage.framework import EventRegistration, NoArgs, PluginTraits
from stowage.state.pods.pod_info import PodInfo


class SchedulingGates:
    """Rejects pods whose ``spec.schedulingGates`` is not empty."""

    name = "SchedulingGates"
    traits = PluginTraits(pre_enqueue_per_class=True)

    def __init__(self, args: NoArgs) -> None:
        del args

    def pre_enqueue(self, pod: PodInfo) -> Status:
        """Success once no gate is left."""
        gates = pod.pod_class.scheduling_gates
        if not gates:
            return SUCCESS
        return unresolvable(f"waiting for scheduling gates: [{' '.join(gates)}]")

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Removal of the pod's last scheduling gate."""
        action = ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED
        return (EventRegistration(ClusterEvent(EventResource.POD, action), after_last_gate),)


def after_last_gate(pod: PodInfo, old: PodInfo | None, new: PodInfo | None) -> QueueingHint:
    """Queue if the event is about the pod itself."""
    del old
    return QueueingHint.when(new is not None and new.uid == pod.uid)
