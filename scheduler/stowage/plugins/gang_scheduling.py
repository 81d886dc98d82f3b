"""Plugin GangScheduling: a gang is queued when it is complete, and bound when enough of it fits."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stowage.api.cluster_events import ActionType, ClusterEvent, EventResource, QueueingHint
from stowage.api.objects.pod_groups import PodGroup
from stowage.api.status import SUCCESS, Code, Status, error, unresolvable
from stowage.framework import CycleState, EventRegistration, NoArgs, PluginTraits, Prospects
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import Snapshot

#: How long a member waits for its companions if its group does not say.
PERMIT_TIMEOUT_S = 300.0

_TOO_FEW = unresolvable("waiting for minCount pods from a gang to appear in scheduling queue")
_WAIT = Status(Code.WAIT, ("waiting for minCount pods from a gang to be scheduled",))
_NODE_CHANGED = ClusterEvent(
    EventResource.NODE,
    ActionType.ADD
    | ActionType.UPDATE_NODE_ALLOCATABLE
    | ActionType.UPDATE_NODE_LABEL
    | ActionType.UPDATE_NODE_TAINT,
)
_GROUP_CHANGED = ClusterEvent(EventResource.POD_GROUP, ActionType.ADD | ActionType.UPDATE_OTHER)


class GangScheduling:
    """Counts the members of a pod group before they are queued, and before they are bound.

    The engine moves gated members when their group appears or gets its last member, and members
    that wait at Permit when enough of them are scheduled.
    """

    name = "GangScheduling"
    traits = PluginTraits(pre_enqueue_per_class=True)

    def __init__(self, args: NoArgs) -> None:
        del args
        self._snapshot: Callable[[], Snapshot]

    def read_snapshots(self, snapshot: Callable[[], Snapshot]) -> None:
        """Set the function that returns the cluster as it is now."""
        self._snapshot = snapshot

    def pre_enqueue(self, pod: PodInfo) -> Status:
        """Success if the pod's group exists and, if it is a gang, has enough pods.

        A pod whose group is of a kind that is not served is no member.
        """
        if not pod.group:
            return SUCCESS
        groups = self._snapshot().pod_groups
        if not groups.honours(pod):
            return SUCCESS
        known = groups.group(pod.group_key)
        if known is None:
            name = f'waiting for pods\'s pod group "{pod.group}" to appear in scheduling queue'
            return unresolvable(name)
        min_count = known.group.min_count
        if min_count is not None and groups.members(pod.group_key).num_all < min_count:
            return _TOO_FEW
        return SUCCESS

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Changes that may let in a member that fitted but lacked companions.

        A member that did not fit is moved by the events of the plugins that rejected it.
        """
        return (
            EventRegistration(_NODE_CHANGED),
            EventRegistration(_GROUP_CHANGED, _concerns_group),
        )

    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> tuple[Status, float]:
        """Wait until enough pods of the gang are assumed or bound, this one included."""
        del node_name
        if not pod.group:
            return SUCCESS, 0.0
        groups = self._snapshot().pod_groups
        if not groups.honours(pod):
            return SUCCESS, 0.0
        known = groups.group(pod.group_key)
        if known is None:
            return error(f'podgroup "{pod.group}" not found'), 0.0
        min_count = known.group.min_count
        if min_count is None:
            return SUCCESS, 0.0
        members = groups.members(pod.group_key)
        if members.num_scheduled < min_count:
            for uid in members.unscheduled:
                state.activate(uid)
            return _WAIT, known.permit_timeout_s or PERMIT_TIMEOUT_S
        state.allow_group(pod.group_key, self.name)
        return SUCCESS, 0.0

    def least_members(self, snapshot: Snapshot, prospects: Prospects) -> int:
        """How many members have to be placed so that the last of them passes Permit."""
        known = snapshot.pod_groups.group(prospects.members[0].group_key)
        min_count = None if known is None else known.group.min_count
        return 1 if min_count is None else min_count - prospects.num_scheduled


def _concerns_group(pod: PodInfo, old: PodGroup | None, new: PodGroup | None) -> QueueingHint:
    """Queue if the group is the pod's."""
    group = new or old
    return QueueingHint.when(group is not None and group.key == pod.group_key)
