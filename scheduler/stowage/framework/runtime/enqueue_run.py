"""Runs PreEnqueue plugins, and collects the events that plugins register."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from stowage.api.cluster_events import ActionType, ClusterEvent, EventResource
from stowage.api.status import SUCCESS, Code, Status
from stowage.framework.extension_points import (
    EnqueueExtensions,
    EventRegistration,
    Plugin,
    PreEnqueuePlugin,
)
from stowage.framework.failure import failed
from stowage.framework.implements import implements
from stowage.framework.profile.points import ExtensionPoint, points_of
from stowage.state.pods.pod_info import PodInfo

_SUCCESS = Code.SUCCESS
_WILDCARD = EventRegistration(ClusterEvent(EventResource.WILDCARD, ActionType.ALL))
_NODE_TAINT = EventRegistration(ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_TAINT))
_REJECTING = (
    ExtensionPoint.PRE_ENQUEUE,
    ExtensionPoint.PRE_FILTER,
    ExtensionPoint.FILTER,
    ExtensionPoint.RESERVE,
    ExtensionPoint.PERMIT,
)


def can_reject(plugin: Plugin) -> bool:
    """Whether the plugin takes part at an extension point that rejects pods."""
    return not points_of(plugin).isdisjoint(_REJECTING)


def registered_events(plugins: Iterable[Plugin]) -> dict[str, tuple[EventRegistration, ...]]:
    """The registered events of each plugin that can reject pods (``buildQueueingHintMap``).

    A plugin without `events_to_register` is registered for all events. A plugin that registers
    added nodes but not changed taints is also registered for changed taints, without a hint: a node
    is often added with a taint that is removed when the node is ready.
    """
    registered = {}
    for plugin in plugins:
        if not can_reject(plugin):
            continue
        events = (
            plugin.events_to_register() if implements(plugin, EnqueueExtensions) else (_WILDCARD,)
        )
        registered[plugin.name] = _with_taints(tuple(events))
    return registered


def run_pre_enqueue_plugins(plugins: Sequence[PreEnqueuePlugin], pod: PodInfo) -> Status:
    """The first status other than Success, or Success."""
    for plugin in plugins:
        try:
            status = plugin.pre_enqueue(pod)
        except Exception as error:
            return failed(f'running PreEnqueue plugin "{plugin.name}"', plugin.name, error).status
        if status.code is not _SUCCESS:
            return status.by(plugin.name)
    return SUCCESS


def _with_taints(registered: tuple[EventRegistration, ...]) -> tuple[EventRegistration, ...]:
    if _lacks_taints(tuple(each.event for each in registered)):
        return (*registered, _NODE_TAINT)
    return registered


@lru_cache(maxsize=256)
def _lacks_taints(events: tuple[ClusterEvent, ...]) -> bool:
    """Whether added nodes are among the events, but not changed taints."""
    actions = ActionType(0)
    for event in events:
        if event.resource is EventResource.NODE:
            actions |= event.action
    return bool(actions & ActionType.ADD and not actions & ActionType.UPDATE_NODE_TAINT)
