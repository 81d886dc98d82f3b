"""Queueing hints of NodeResourcesFit: events that may make a pod it rejected schedulable.

Follows ``noderesources/fit.go`` of v1.36, which judges a node as if it were empty, and leaves to
DynamicResources what a device class serves where the node has none of it. Unlike upstream, the
hints skip the resources that the plugin ignores: an extender manages those and no node lists them,
so a pod that requests one would never be requeued for an added node.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from stowage.api.cluster_events import ActionType, ClusterEvent, EventResource, QueueingHint
from stowage.api.objects.device import DeviceClass
from stowage.api.objects.node import Node
from stowage.api.values.resource_names import PODS
from stowage.api.values.resources import node_allocatable
from stowage.framework.extension_points import EventRegistration
from stowage.state.devices.classes import IMPLICIT_PREFIX
from stowage.state.pods.pod_info import PodInfo


class FitHints:
    """The hints, with the allocatable amounts of the last two nodes they read.

    The queue asks about one event for many pods in a row, and parsing quantities costs more than
    comparing them.

    Args:
        ignores: Whether the plugin ignores a resource.
        is_served: Whether a device class serves a resource.
        classes_serve: Whether device classes may serve resources.
    """

    def __init__(
        self,
        ignores: Callable[[str], bool],
        is_served: Callable[[str], bool],
        *,
        classes_serve: bool = True,
    ) -> None:
        self._classes_serve = classes_serve
        self._ignores = ignores
        self._is_served = is_served
        self._read: tuple[tuple[Node, Mapping[str, int]], ...] = ()

    def events_to_register(self) -> tuple[EventRegistration, ...]:
        """Deleted or scaled-down pods, added or larger nodes, device classes."""
        pods = ActionType.DELETE | ActionType.UPDATE_POD_SCALE_DOWN
        nodes = ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE
        classes = ActionType.ADD | ActionType.UPDATE
        own = (
            EventRegistration(
                ClusterEvent(EventResource.POD, pods), after_pod_change, per_demand=True
            ),
            EventRegistration(
                ClusterEvent(EventResource.NODE, nodes), self.after_node_change, per_demand=True
            ),
        )
        if not self._classes_serve:
            return own
        served = ClusterEvent(EventResource.DEVICE_CLASS, classes)
        return (*own, EventRegistration(served, after_class_change, per_demand=True))

    def after_node_change(self, pod: PodInfo, old: Node | None, new: Node | None) -> QueueingHint:
        """``isSchedulableAfterNodeChange``: Queue if the pod fits a node that is new or larger.

        Raises:
            InvalidObject: A quantity of the node cannot be read.
        """
        if new is None:
            return QueueingHint.SKIP
        after = self._allocatable(new)
        if not self._fits_empty(pod, after):
            return QueueingHint.SKIP
        return QueueingHint.when(
            old is None
            or _has_more_for(pod, self._allocatable(old), after)
            or self._needs_devices(pod, after)
        )

    def _fits_empty(self, pod: PodInfo, allocatable: Mapping[str, int]) -> bool:
        """Whether the pod would fit the node if the node were empty (``isFit``)."""
        if allocatable.get(PODS, 0) < 1:
            return False
        # A loop is faster than a generator; the queue asks this for every class of waiting pods.
        for name, amount in pod.pod_class.requests.items():
            has = allocatable.get(name, 0)
            if amount <= has or amount <= 0 or self._ignores(name):
                continue
            if has > 0 or not self._is_served(name):
                return False
        return True

    def _needs_devices(self, pod: PodInfo, allocatable: Mapping[str, int]) -> bool:
        """Whether devices have to serve a request, because the node has none of the resource."""
        return any(
            amount > 0 and allocatable.get(name, 0) <= 0 and self._is_served(name)
            for name, amount in pod.pod_class.requests.items()
        )

    def _allocatable(self, node: Node) -> Mapping[str, int]:
        for known, amounts in self._read:
            if known is node:
                return amounts
        amounts = node_allocatable(node)
        self._read = ((node, amounts), *self._read[:1])
        return amounts


def after_pod_change(pod: PodInfo, old: PodInfo | None, new: PodInfo | None) -> QueueingHint:
    """``isSchedulableAfterPodEvent``: Queue if resources that the pod requests became free.

    That is, a placed or nominated pod was deleted, a placed pod scaled down a resource that the
    pod requests, or the pod itself was scaled down.
    """
    if old is None:
        return QueueingHint.SKIP
    if new is None:
        return QueueingHint.when(bool(old.node_name or old.nominated_node_name))
    if new.uid == pod.uid:
        return QueueingHint.QUEUE
    if not new.node_name:
        return QueueingHint.SKIP
    before, after = old.requests, new.requests
    return QueueingHint.when(
        any(
            amount > 0 and before.get(name, 0) > after.get(name, 0)
            for name, amount in pod.requests.items()
        )
    )


def after_class_change(pod: PodInfo, old: DeviceClass | None, new: DeviceClass) -> QueueingHint:
    """``isSchedulableAfterDeviceClassEvent``: Queue if the class serves a requested resource now.

    A request of 0 counts, too.
    """
    served = {new.spec.extended_resource_name}
    if old is None:
        served.add(f"{IMPLICIT_PREFIX}{new.metadata.name}")
    elif old.spec.extended_resource_name in served:
        return QueueingHint.SKIP
    return QueueingHint.when(any(name in pod.requests for name in served if name))


def _has_more_for(pod: PodInfo, before: Mapping[str, int], after: Mapping[str, int]) -> bool:
    """Whether any resource of the pod increased (``haveAnyRequestedResourcesIncreased``)."""
    if after.get(PODS, 0) > before.get(PODS, 0):
        return True
    return any(
        amount > 0 and after.get(name, 0) > before.get(name, 0)
        for name, amount in pod.requests.items()
    )
