"""Asks a plugin for its queueing hint."""

from __future__ import annotations

from typing import Any

from stowage.api.cluster_events import ActionType, EventResource, QueueingHint
from stowage.api.objects.node import Node
from stowage.framework.extension_points import EnqueueExtensions
from stowage.state.pods.pod_info import PodClasses, PodInfo, make_pod_info
from tests.support.builders import make_pod

CLASSES = PodClasses()
A = ActionType
R = EventResource


def info(name: str = "p", **fields: Any) -> PodInfo:
    """A pod as plugins see it."""
    return make_pod_info(make_pod(name, **fields), CLASSES)


def ask(
    plugin: EnqueueExtensions,
    action: ActionType,
    pod: PodInfo,
    old: Node | PodInfo | None = None,
    new: Node | PodInfo | None = None,
) -> QueueingHint:
    """The plugin's hint for an event; the plugin must have registered for it."""
    is_node = isinstance(new if old is None else old, Node)
    resource = R.NODE if is_node else R.POD
    (registration,) = (
        each
        for each in plugin.events_to_register()
        if each.event.resource is resource and each.event.action & action
    )
    return QueueingHint.QUEUE if registration.hint is None else registration.hint(pod, old, new)
