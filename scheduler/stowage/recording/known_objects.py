"""The objects that the recorded events have shown: what a checkpoint holds.

Whether the API server serves a source of pod groups is known like an object of that name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from stowage.api.events import (
    AssignedPodGone,
    AssignedPodSeen,
    ConfigurationChanged,
    CustomObjectGone,
    CustomObjectSeen,
    CustomResourceGone,
    DeviceObjectGone,
    DeviceObjectSeen,
    DisruptionBudgetGone,
    DisruptionBudgetSeen,
    Event,
    NamespaceGone,
    NamespaceSeen,
    NodeGone,
    NodeSeen,
    PendingPodGone,
    PendingPodSeen,
    PodGroupGone,
    PodGroupSeen,
    PodGroupsServed,
    StorageGone,
    StorageSeen,
    WorkloadGone,
    WorkloadSeen,
)
from stowage.api.objects.pod import Pod
from stowage.api.pod_lists import ends, replaces

_Key: TypeAlias = tuple[str, str]
"""The kind, and ``namespace/name`` or the name."""


class KnownObjects:
    """Keeps the last event of each object, event by event.

    Attributes:
        configuration: The last change of the configuration; None before the first.
    """

    def __init__(self) -> None:
        self.configuration: ConfigurationChanged | None = None
        self._by_kind: dict[str, dict[str, Event]] = {}
        self._pods: dict[str, PendingPodSeen | AssignedPodSeen] = {}

    def follow(self, event: Event) -> bool:
        """Apply an event; whether it is about an object."""
        kind = type(event)
        if kind in _SEEN:
            name, key = _SEEN[kind](event)
            self._by_kind.setdefault(name, {})[key] = event
        elif kind in _GONE:
            name, key = _GONE[kind](event)
            self._by_kind.get(name, {}).pop(key, None)
        elif isinstance(event, CustomResourceGone):
            self._by_kind.pop(event.resource, None)
        elif isinstance(event, PendingPodSeen | AssignedPodSeen):
            self._pod_seen(event)
        elif isinstance(event, PendingPodGone | AssignedPodGone):
            self._pod_gone(event)
        else:
            if isinstance(event, ConfigurationChanged):
                self.configuration = event
            return False
        return True

    def events(self) -> Iterator[Event]:
        """The events of a first list: everything that pods depend on, then the pods."""
        for found in self._by_kind.values():
            yield from found.values()
        pods = self._pods.values()
        yield from (each for each in pods if isinstance(each, AssignedPodSeen))
        yield from (each for each in pods if isinstance(each, PendingPodSeen))

    def _pod_seen(self, event: PendingPodSeen | AssignedPodSeen) -> None:
        key = event.pod.metadata.namespaced_name
        if replaces(self._pod(key), event):
            self._pods[key] = event

    def _pod_gone(self, event: PendingPodGone | AssignedPodGone) -> None:
        key = f"{event.namespace}/{event.name}"
        if ends(self._pod(key), event):
            del self._pods[key]

    def _pod(self, key: str) -> Pod | None:
        known = self._pods.get(key)
        return None if known is None else known.pod


def _of(obj: Any) -> _Key:
    return type(obj).__name__, obj.metadata.namespaced_name


def _key(namespace: str, name: str) -> str:
    return f"{namespace}/{name}" if namespace else name


def _named(event: WorkloadSeen | WorkloadGone | StorageGone | DeviceObjectGone) -> _Key:
    return event.kind, _key(event.namespace, event.name)


def _custom(event: CustomObjectSeen) -> _Key:
    metadata = event.object["metadata"]
    return event.resource, _key(metadata.get("namespace", ""), metadata["name"])


_SEEN: Mapping[type[Any], Callable[[Any], _Key]] = {
    NodeSeen: lambda event: _of(event.node),
    NamespaceSeen: lambda event: _of(event.namespace),
    StorageSeen: lambda event: _of(event.object),
    DeviceObjectSeen: lambda event: _of(event.object),
    DisruptionBudgetSeen: lambda event: _of(event.budget),
    WorkloadSeen: _named,
    PodGroupSeen: lambda event: (event.source, event.group.metadata.namespaced_name),
    PodGroupsServed: lambda event: (PodGroupsServed.__name__, event.source),
    CustomObjectSeen: _custom,
}
_GONE: Mapping[type[Any], Callable[[Any], _Key]] = {
    NodeGone: lambda event: ("Node", event.name),
    NamespaceGone: lambda event: ("Namespace", event.name),
    StorageGone: _named,
    DeviceObjectGone: _named,
    DisruptionBudgetGone: lambda event: (
        "PodDisruptionBudget",
        _key(event.namespace, event.name),
    ),
    WorkloadGone: _named,
    PodGroupGone: lambda event: (event.source, _key(event.namespace, event.name)),
    CustomObjectGone: lambda event: (event.resource, _key(event.namespace, event.name)),
}
