"""Which events may make a pod schedulable that NodeResourcesFit rejected.

Follows ``noderesources/fit.go`` of kube-scheduler v1.36. As there, a node is looked at as if it
were empty. Unlike there, resources that the plugin is told to ignore are ignored here too: a node
never has one that an extender keeps, so no node that comes would be taken to help.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from stowage.api.events import ActionType, ClusterEvent, EventResource, QueueingHint
from stowage.api.objects.node import Node
from stowage.api.values.resource_names import PODS
from stowage.api.values.resources import node_allocatable
from stowage.framework.extension_points import EventRegistration
from stowage.state.pods.pod_info import PodInfo


class FitHints:
    """The hints, and what the node of the last event has for pods.

    One event is judged for many pods in a row, and reading quantities costs more than comparing
    them.

    Args:
        ignores: Whether the plugin leaves a resource to others.
    """

    def __init__(self, ignores: Callable[[str], bool]) -> None:
        self._ignores = ignores
        self._read: tuple[tuple[Node, Mapping[str, int]], ...] = ()

    def events_to_register(self) -> tuple[EventRegistration, ...]:
        """Pods that go or shrink, nodes that come or grow.

        Device classes may give extended resources another meaning; what they say is not at hand
        yet, so each of them helps.
        """
        pods = ActionType.DELETE | ActionType.UPDATE_POD_SCALE_DOWN
        nodes = ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE
        classes = ActionType.ADD | ActionType.UPDATE
        return (
            EventRegistration(
                ClusterEvent(EventResource.POD, pods), after_pod_change, per_class=True
            ),
            EventRegistration(
                ClusterEvent(EventResource.NODE, nodes), self.after_node_change, per_class=True
            ),
            EventRegistration(ClusterEvent(EventResource.DEVICE_CLASS, classes)),
        )

    def after_node_change(self, pod: PodInfo, old: Node | None, new: Node | None) -> QueueingHint:
        """``isSchedulableAfterNodeChange``: the pod fits, and the node came or has more for it.

        Raises:
            InvalidObject: A quantity of the node cannot be read.
        """
        if new is None:
            return QueueingHint.SKIP
        after = self._allocatable(new)
        if not self._fits_empty(pod, after):
            return QueueingHint.SKIP
        return QueueingHint.when(old is None or _has_more_for(pod, self._allocatable(old), after))

    def _fits_empty(self, pod: PodInfo, allocatable: Mapping[str, int]) -> bool:
        """Whether the pod would fit if it were the only one (``isFit``)."""
        if allocatable.get(PODS, 0) < 1:
            return False
        # A loop, for a generator would cost more than what it compares: this is asked of every
        # class of pods that wait.
        for name, amount in pod.pod_class.requests.items():
            if amount > allocatable.get(name, 0) and amount > 0 and not self._ignores(name):
                return False
        return True

    def _allocatable(self, node: Node) -> Mapping[str, int]:
        for known, amounts in self._read:
            if known is node:
                return amounts
        amounts = node_allocatable(node)
        self._read = ((node, amounts), *self._read[:1])
        return amounts


def after_pod_change(pod: PodInfo, old: PodInfo | None, new: PodInfo | None) -> QueueingHint:
    """``isSchedulableAfterPodEvent``: a pod on a node, or to be on one, went or shrank.

    It has to shrink in what the pod requests; the pod itself may shrink in anything.
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


def _has_more_for(pod: PodInfo, before: Mapping[str, int], after: Mapping[str, int]) -> bool:
    """Whether there is more of anything the pod takes (``haveAnyRequestedResourcesIncreased``)."""
    if after.get(PODS, 0) > before.get(PODS, 0):
        return True
    return any(
        amount > 0 and after.get(name, 0) > before.get(name, 0)
        for name, amount in pod.requests.items()
    )
