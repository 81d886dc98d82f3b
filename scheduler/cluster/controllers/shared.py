"""What all controllers share: where they write, what they look up, and how they wait."""

from collections.abc import Callable
from typing import Any

from scheduler.cluster.controllers.ownership import OwnedObjects, OwnedPods
from scheduler.cluster.controllers.pods_by_node import PodsByNode
from scheduler.cluster.controllers.recorder import EventRecorder
from scheduler.cluster.registry import Registry
from scheduler.cluster.resources import PODS, Resource
from scheduler.cluster.timers import LoopTimers, Timers

Json = dict[str, Any]


class Shared:
    """One registry, one set of timers, and indexes that are built once for all controllers.

    Args:
        registry: where everything lives.
        timers: how to wait; the event loop's where none are given.
    """

    def __init__(self, registry: Registry, timers: Timers | None = None) -> None:
        self.registry = registry
        self.timers: Timers = timers or LoopTimers()
        self.recorder = EventRecorder(registry)
        self._owned: dict[str, OwnedObjects] = {}
        self._pods: OwnedPods | None = None
        self._pods_by_node: PodsByNode | None = None
        self._unsubscribe: list[Callable[[], None]] = []

    @property
    def pods(self) -> OwnedPods:
        """Pods by their managing controller."""
        if self._pods is None:
            self._pods = OwnedPods(self.registry.store)
            self._follow(PODS, self._pods)
        return self._pods

    @property
    def pods_by_node(self) -> PodsByNode:
        """Pods by the node they are bound to."""
        if self._pods_by_node is None:
            self._pods_by_node = PodsByNode(self.registry.store)
            self._follow(PODS, self._pods_by_node)
        return self._pods_by_node

    def owned(self, resource: Resource) -> OwnedObjects:
        """Objects of a resource by their managing controller."""
        index = self._owned.get(resource.stored_in)
        if index is None:
            index = self._owned[resource.stored_in] = OwnedObjects(self.registry.store, resource)
            self._follow(resource, index)
        return index

    def _follow(self, resource: Resource, index: OwnedObjects | OwnedPods | PodsByNode) -> None:
        store = self.registry.store
        self._unsubscribe.append(store.subscribe(resource.stored_in, index.see))

    def stop(self) -> None:
        """Stop keeping the indexes up to date."""
        for unsubscribe in self._unsubscribe:
            unsubscribe()
        self._unsubscribe.clear()
