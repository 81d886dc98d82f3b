"""The objects of a cluster as a series of events shows them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from msgspec.structs import replace

from stowage.analysis.cluster_objects import POD, ClusterObjects
from stowage.api.decoding.decode import convert_object
from stowage.api.decoding.errors import InvalidObject
from stowage.api.events import (
    AssignedPodGone,
    AssignedPodSeen,
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
from stowage.api.objects.meta import ObjectMeta
from stowage.api.objects.namespace import Namespace
from stowage.api.objects.node import Node
from stowage.api.objects.pod_groups import (
    CORE_GROUPS,
    CoschedulingPodGroup,
    CoschedulingSpec,
    PodGroup,
)
from stowage.api.objects.policy import PodDisruptionBudget
from stowage.api.objects.workloads import (
    LabelSelectingSpec,
    ReplicaSet,
    ReplicationController,
    SelectingSpec,
    Service,
    StatefulSet,
)
from stowage.api.pod_lists import ends, replaces
from stowage.api.reflected_kinds import READ_BY_ADMISSION

_SELECTED_BY_LABELS: Mapping[str, type[ReplicaSet | StatefulSet]] = {
    "ReplicaSet": ReplicaSet,
    "StatefulSet": StatefulSet,
}
_SELECTED_BY_EQUALITY: Mapping[str, type[Service | ReplicationController]] = {
    "Service": Service,
    "ReplicationController": ReplicationController,
}
_Workload: TypeAlias = ReplicaSet | StatefulSet | Service | ReplicationController


class FollowedObjects:
    """Keeps the objects up to date, event by event.

    Args:
        objects: The objects to keep up to date; None for none yet.

    Attributes:
        objects: The objects as of the last event; without those of custom resources,
            of which only those that the admission of pods reads are known here.
    """

    def __init__(self, objects: ClusterObjects | None = None) -> None:
        self.objects = ClusterObjects() if objects is None else objects
        self._by_type: Mapping[type[Any], Callable[[Any], object]] = {
            PendingPodSeen: self._pod_seen,
            PendingPodGone: self._pod_gone,
            AssignedPodSeen: self._pod_seen,
            AssignedPodGone: self._pod_gone,
            NodeSeen: lambda event: self.objects.add(event.node),
            NodeGone: lambda event: self.objects.remove(Node.__name__, event.name),
            NamespaceSeen: lambda event: self.objects.add(event.namespace),
            NamespaceGone: lambda event: self.objects.remove(Namespace.__name__, event.name),
            WorkloadSeen: lambda event: self.objects.add(_workload(event)),
            WorkloadGone: lambda event: self.objects.remove(event.kind, _key(event)),
            DeviceObjectSeen: lambda event: self.objects.add(event.object),
            DeviceObjectGone: lambda event: self.objects.remove(event.kind, _key(event)),
            StorageSeen: lambda event: self.objects.add(event.object),
            StorageGone: lambda event: self.objects.remove(event.kind, _key(event)),
            DisruptionBudgetSeen: lambda event: self.objects.add(event.budget),
            DisruptionBudgetGone: lambda event: self.objects.remove(
                PodDisruptionBudget.__name__, _key(event)
            ),
            PodGroupSeen: lambda event: self.objects.add(_pod_group(event)),
            PodGroupGone: lambda event: self.objects.remove(
                _group_kind(event.source).__name__, _key(event)
            ),
            CustomObjectSeen: self._custom_object_seen,
            CustomObjectGone: self._custom_object_gone,
            CustomResourceGone: self._custom_resource_gone,
            PodGroupsServed: self._pod_groups_served,
        }

    def follow(self, event: Event) -> None:
        """Apply an event; events without an object change nothing."""
        apply = self._by_type.get(type(event))
        if apply is not None:
            apply(event)

    def place(self, key: str, node_name: str) -> None:
        """Give a pod its node before the watch shows it."""
        pod = self.objects.pod(key)
        if pod is not None:
            self.objects.add(replace(pod, spec=replace(pod.spec, node_name=node_name)))

    def _pod_seen(self, event: PendingPodSeen | AssignedPodSeen) -> None:
        if replaces(self.objects.pod(event.pod.metadata.namespaced_name), event):
            self.objects.add(event.pod)

    def _pod_gone(self, event: PendingPodGone | AssignedPodGone) -> None:
        if ends(self.objects.pod(_key(event)), event):
            self.objects.remove(POD, _key(event))

    def _custom_object_seen(self, event: CustomObjectSeen) -> None:
        kind = READ_BY_ADMISSION.get(event.resource)
        if kind is None:
            return
        try:
            self.objects.add(convert_object(kind, event.object))
        except InvalidObject as invalid:
            self.objects.invalid.append(invalid)

    def _custom_object_gone(self, event: CustomObjectGone) -> None:
        kind = READ_BY_ADMISSION.get(event.resource)
        if kind is not None:
            self.objects.remove(kind.__name__, _key(event))

    def _custom_resource_gone(self, event: CustomResourceGone) -> None:
        kind = READ_BY_ADMISSION.get(event.resource)
        if kind is not None:
            self.objects.by_kind.pop(kind.__name__, None)

    def _pod_groups_served(self, event: PodGroupsServed) -> None:
        unserved = self.objects.unserved_groups
        if event.is_served:
            unserved.discard(event.source)
        else:
            unserved.add(event.source)


def _workload(event: WorkloadSeen) -> _Workload:
    """The workload of an event, as far as scheduling reads it."""
    metadata = ObjectMeta(namespace=event.namespace, name=event.name)
    if event.kind in _SELECTED_BY_LABELS:
        return _SELECTED_BY_LABELS[event.kind](metadata, LabelSelectingSpec(event.selector))
    labels = {} if event.selector is None else event.selector.match_labels
    return _SELECTED_BY_EQUALITY[event.kind](metadata, SelectingSpec(labels))


def _group_kind(source: str) -> type[PodGroup | CoschedulingPodGroup]:
    return PodGroup if source == CORE_GROUPS else CoschedulingPodGroup


def _pod_group(event: PodGroupSeen) -> PodGroup | CoschedulingPodGroup:
    """The group of an event, as its source has it."""
    group = event.group
    if _group_kind(event.source) is PodGroup:
        return group
    spec = CoschedulingSpec(group.min_count or 0, event.permit_timeout_s)
    return CoschedulingPodGroup(group.metadata, spec)


def _key(
    event: PendingPodGone
    | AssignedPodGone
    | StorageGone
    | DeviceObjectGone
    | WorkloadGone
    | DisruptionBudgetGone
    | PodGroupGone
    | CustomObjectGone,
) -> str:
    return f"{event.namespace}/{event.name}" if event.namespace else event.name
