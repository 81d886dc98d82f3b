"""Cluster events that the queue creates, and the labels of events in metrics."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from stowage.api.cluster_events import ActionType, ClusterEvent, EventResource
from stowage.state.changes import pod_update_actions
from stowage.state.pods.pod_info import PodInfo

#: Labels of moves without a cluster event; ``framework/events.go`` of v1.36.
SCHEDULE_ATTEMPT_FAILURE = "ScheduleAttemptFailure"
BACKOFF_COMPLETE = "BackoffComplete"
POP_FROM_BACKOFF_QUEUE = "PopFromBackoffQ"
POP_COMPANION = "PodGroupPop"

UNSCHEDULED_POD_ADD = ClusterEvent(EventResource.UNSCHEDULED_POD, ActionType.ADD)
UNSCHEDULED_POD_UPDATE = ClusterEvent(EventResource.UNSCHEDULED_POD, ActionType.UPDATE)
UNSCHEDULED_POD_DELETE = ClusterEvent(EventResource.UNSCHEDULED_POD, ActionType.DELETE)
ASSIGNED_POD_DELETE = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE)
UNSCHEDULABLE_TIMEOUT = ClusterEvent(EventResource.WILDCARD, ActionType.ALL, "UnschedulableTimeout")
CONFIGURATION_CHANGED = ClusterEvent(EventResource.WILDCARD, ActionType.ALL, "ConfigurationChanged")
FORCE_ACTIVATE = ClusterEvent(EventResource.WILDCARD, ActionType.ALL, "ForceActivate")

_ACTION_NAMES = {
    ActionType.ALL: "All",
    ActionType.UPDATE_POD_OTHER: "Update",
    ActionType.UPDATE_OTHER: "Update",
}

_UPDATES: Mapping[EventResource | str, ActionType] = {
    EventResource.NODE: ActionType.UPDATE_NODE,
    EventResource.POD: ActionType.UPDATE_POD,
    EventResource.ASSIGNED_POD: ActionType.UPDATE_POD,
    EventResource.UNSCHEDULED_POD: ActionType.UPDATE_POD,
}
"""The kinds of updates of a resource that has several."""


@lru_cache(maxsize=1024)
def event_label(event: ClusterEvent) -> str:
    """The event's label in ``scheduler_queue_incoming_pods_total``, e.g. ``NodeAdd``.

    ``ClusterEvent.Label`` of v1.36. An event with several kinds of update is an ``Update``.
    """
    return event.label or f"{event.resource}{_action_name(event.action)}"


def _action_name(action: ActionType) -> str:
    if action in _ACTION_NAMES:
        return _ACTION_NAMES[action]
    if action.value.bit_count() == 1 and action.name is not None:
        return action.name.title().replace("_", "")
    return "Update"


def registration_labels(registered: ClusterEvent) -> list[str]:
    """The labels of the events that a registration matches, one for each action.

    A registration for every kind of update has one ``Update``.
    """
    updates = _UPDATES.get(registered.resource, ActionType.UPDATE_OTHER)
    actions = list(registered.action & (ActionType.ADD | ActionType.DELETE | updates))
    if registered.action & updates == updates:
        actions = [*(each for each in actions if not each.overlaps(updates)), ActionType.UPDATE]
    return [event_label(ClusterEvent(registered.resource, each)) for each in actions]


def pod_update_events(old: PodInfo, new: PodInfo) -> list[ClusterEvent]:
    """The events of a pod update, one per kind of change.

    ``framework.PodSchedulingPropertiesChange`` of v1.36. An update without a kind of its own is an
    ``UPDATE_POD_OTHER``, which matches only registrations for every update.
    """
    resource = EventResource.ASSIGNED_POD if new.node_name else EventResource.UNSCHEDULED_POD
    return [ClusterEvent(resource, action) for action in pod_update_actions(old, new)]
