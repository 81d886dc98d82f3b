"""The registry, the indexes, the event recorder and the timers that all controllers share."""

from collections.abc import Callable

from simcluster.controllers.indexes import OwnedObjects, PodsByClaim, PodsByNode
from simcluster.controllers.ownership import OwnedPods
from simcluster.controllers.recorder import EventRecorder
from simcluster.kinds.resources import PODS, Resource
from simcluster.store.registry import Registry
from simcluster.store.store import Change
from simcluster.timers import LoopTimers, Timers


class Shared:
    """One registry, one set of timers, and indexes that are built once for all controllers.

    Args:
        registry: the objects of the cluster.
        timers: those of the event loop if ``None``; tests pass their own.

    Attributes:
        recorder: writes Events.
        pods: pods by their managing controller.
        pods_by_node: pods by the node they are bound to.
        pods_by_claim: pods by the claims they use.
    """

    def __init__(self, registry: Registry, timers: Timers | None = None) -> None:
        self.registry = registry
        self.timers: Timers = timers or LoopTimers()
        self.recorder = EventRecorder(registry)
        self.pods = OwnedPods()
        self.pods_by_node = PodsByNode()
        self.pods_by_claim = PodsByClaim()
        self._owned: dict[str, OwnedObjects] = {}
        self._unsubscribe: list[Callable[[], None]] = []

    def index_pods(self) -> None:
        """Build the indexes of pods and keep them up to date."""
        for pod in self.registry.store.collection(PODS.stored_in):
            self.pods.add(pod)
            self.pods_by_node.add(pod)
            self.pods_by_claim.add(pod)
        for index in (self.pods, self.pods_by_node, self.pods_by_claim):
            self._follow(PODS, index.see)

    def owned(self, resource: Resource) -> OwnedObjects:
        """Objects of a resource by their managing controller."""
        index = self._owned.get(resource.stored_in)
        if index is None:
            index = self._owned[resource.stored_in] = OwnedObjects(
                self.registry.store, resource.stored_in
            )
            self._follow(resource, index.see)
        return index

    def _follow(self, resource: Resource, see: Callable[[Change], None]) -> None:
        self._unsubscribe.append(self.registry.store.subscribe(resource.stored_in, see))

    def stop(self) -> None:
        """Stop keeping the indexes up to date."""
        for unsubscribe in self._unsubscribe:
            unsubscribe()
        self._unsubscribe.clear()
