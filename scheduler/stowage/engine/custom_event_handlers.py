"""Handlers of events of the resources that plugins name: note the objects, move waiting pods."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stowage.api.cluster_events import ActionType, ClusterEvent, EventResource
from stowage.api.events import CustomObjectGone, CustomObjectSeen, CustomResourceGone
from stowage.engine.state.engine_state import EngineState
from stowage.framework import Framework


def custom_resources(frameworks: Iterable[Framework]) -> frozenset[str]:
    """The resources, other than the members of `EventResource`, that plugins registered."""
    return frozenset(
        str(registered.event.resource)
        for framework in frameworks
        for registrations in framework.events_by_plugin.values()
        for registered in registrations
        if not isinstance(registered.event.resource, EventResource)
    )


def custom_object_seen(
    state: EngineState, event: CustomObjectSeen, now: float
) -> Sequence[ClusterEvent]:
    """An object was added or updated; a list that repeats it moves no pods."""
    is_news, old = state.cache.update_custom_object(event.resource, event.object)
    if not is_news:
        return ()
    seen = ClusterEvent(event.resource, ActionType.ADD if old is None else ActionType.UPDATE)
    state.queue.move_on_event(seen, old, event.object, now)
    return state.queue.registered(seen)


def custom_object_gone(
    state: EngineState, event: CustomObjectGone, now: float
) -> Sequence[ClusterEvent]:
    """An object was deleted."""
    key = f"{event.namespace}/{event.name}" if event.namespace else event.name
    old = state.cache.remove_custom_object(event.resource, key)
    if old is None:
        return ()
    deleted = ClusterEvent(event.resource, ActionType.DELETE)
    state.queue.move_on_event(deleted, old, None, now)
    return state.queue.registered(deleted)


def custom_resource_gone(state: EngineState, event: CustomResourceGone, now: float) -> None:
    """The API server does not serve the resource any more, or no plugin registers it."""
    deleted = ClusterEvent(event.resource, ActionType.DELETE)
    for old in state.cache.remove_custom_resource(event.resource):
        state.queue.move_on_event(deleted, old, None, now)
