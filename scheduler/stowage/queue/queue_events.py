"""The events the queue itself makes, and how events are named in metrics."""

from __future__ import annotations

from functools import lru_cache

from stowage.api.events import ActionType, ClusterEvent, EventResource
from stowage.state.changes import pod_update_actions
from stowage.state.pods.pod_info import PodInfo

#: Labels of moves that no cluster event caused; as in ``framework/events.go`` of v1.36.
SCHEDULE_ATTEMPT_FAILURE = "ScheduleAttemptFailure"
BACKOFF_COMPLETE = "BackoffComplete"
POP_FROM_BACKOFF_QUEUE = "PopFromBackoffQ"

UNSCHEDULED_POD_ADD = ClusterEvent(EventResource.UNSCHEDULED_POD, ActionType.ADD)
UNSCHEDULED_POD_UPDATE = ClusterEvent(EventResource.UNSCHEDULED_POD, ActionType.UPDATE)
UNSCHEDULED_POD_DELETE = ClusterEvent(EventResource.UNSCHEDULED_POD, ActionType.DELETE)
UNSCHEDULABLE_TIMEOUT = ClusterEvent(EventResource.WILDCARD, ActionType.ALL, "UnschedulableTimeout")
CONFIGURATION_CHANGED = ClusterEvent(EventResource.WILDCARD, ActionType.ALL, "ConfigurationChanged")
FORCE_ACTIVATE = ClusterEvent(EventResource.WILDCARD, ActionType.ALL, "ForceActivate")

_ACTION_NAMES = {
    ActionType.ALL: "All",
    ActionType.UPDATE_POD_OTHER: "Update",
    ActionType.UPDATE_OTHER: "Update",
}


@lru_cache(maxsize=1024)
def event_label(event: ClusterEvent) -> str:
    """The event's name in ``scheduler_queue_incoming_pods_total``, e.g. ``NodeAdd``.

    ``ClusterEvent.Label`` of v1.36; several kinds of update in one event are just ``Update``.
    """
    return event.label or f"{event.resource.value}{_action_name(event.action)}"


def _action_name(action: ActionType) -> str:
    if action in _ACTION_NAMES:
        return _ACTION_NAMES[action]
    if action.value.bit_count() == 1 and action.name is not None:
        return action.name.title().replace("_", "")
    return "Update"


def pod_update_events(old: PodInfo, new: PodInfo) -> list[ClusterEvent]:
    """What an update of a pod amounts to: one event per kind of change.

    ``framework.PodSchedulingPropertiesChange`` of v1.36. An update of nothing that has a name of
    its own is an ``UPDATE_POD_OTHER``, of which only those hear who registered for any update.
    """
    resource = EventResource.ASSIGNED_POD if new.node_name else EventResource.UNSCHEDULED_POD
    return [ClusterEvent(resource, action) for action in pod_update_actions(old, new)]
