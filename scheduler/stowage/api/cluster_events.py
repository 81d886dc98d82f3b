"""Cluster events: the changes that plugins register for, and by which the queue moves pods."""

from __future__ import annotations

from enum import Enum, IntFlag, StrEnum

import msgspec

from stowage.api.objects.custom import parse_custom_resource


class ActionType(IntFlag):
    """The action of a cluster event; ``fwk.ActionType`` of v1.36."""

    ADD = 1 << 0
    DELETE = 1 << 1
    UPDATE_NODE_ALLOCATABLE = 1 << 2
    UPDATE_NODE_LABEL = 1 << 3
    UPDATE_NODE_TAINT = 1 << 4
    UPDATE_NODE_CONDITION = 1 << 5
    UPDATE_NODE_ANNOTATION = 1 << 6
    UPDATE_NODE_DECLARED_FEATURE = 1 << 7
    UPDATE_POD_LABEL = 1 << 8
    UPDATE_POD_SCALE_DOWN = 1 << 9
    UPDATE_POD_TOLERATION = 1 << 10
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED = 1 << 11
    UPDATE_POD_GENERATED_RESOURCE_CLAIM = 1 << 12
    UPDATE_POD_OTHER = 1 << 13
    UPDATE_OTHER = 1 << 14

    UPDATE_NODE = (
        UPDATE_NODE_ALLOCATABLE
        | UPDATE_NODE_LABEL
        | UPDATE_NODE_TAINT
        | UPDATE_NODE_CONDITION
        | UPDATE_NODE_ANNOTATION
        | UPDATE_NODE_DECLARED_FEATURE
    )
    UPDATE_POD = (
        UPDATE_POD_LABEL
        | UPDATE_POD_SCALE_DOWN
        | UPDATE_POD_TOLERATION
        | UPDATE_POD_SCHEDULING_GATES_ELIMINATED
        | UPDATE_POD_GENERATED_RESOURCE_CLAIM
        | UPDATE_POD_OTHER
    )
    UPDATE = UPDATE_NODE | UPDATE_POD | UPDATE_OTHER
    ALL = ADD | DELETE | UPDATE

    def overlaps(self, other: ActionType) -> bool:
        """Whether the two have an action in common; ``&`` makes a flag, which takes a µs."""
        return int.__and__(self, other) != 0


class EventResource(StrEnum):
    """The kinds of objects of cluster events that have names; ``fwk.EventResource`` of v1.36.

    A registration for ``POD`` matches events of assigned and of pending pods. kube-scheduler has no
    ``POD_DISRUPTION_BUDGET``.
    """

    POD = "Pod"
    ASSIGNED_POD = "AssignedPod"
    UNSCHEDULED_POD = "UnschedulablePod"
    NODE = "Node"
    NAMESPACE = "Namespace"
    PERSISTENT_VOLUME = "PersistentVolume"
    PERSISTENT_VOLUME_CLAIM = "PersistentVolumeClaim"
    CSI_NODE = "storage.k8s.io/CSINode"
    CSI_DRIVER = "storage.k8s.io/CSIDriver"
    VOLUME_ATTACHMENT = "storage.k8s.io/VolumeAttachment"
    CSI_STORAGE_CAPACITY = "storage.k8s.io/CSIStorageCapacity"
    STORAGE_CLASS = "storage.k8s.io/StorageClass"
    RESOURCE_CLAIM = "resource.k8s.io/ResourceClaim"
    RESOURCE_SLICE = "resource.k8s.io/ResourceSlice"
    DEVICE_CLASS = "resource.k8s.io/DeviceClass"
    POD_DISRUPTION_BUDGET = "policy/PodDisruptionBudget"
    POD_GROUP = "scheduling.k8s.io/PodGroup"
    WILDCARD = "*"


_EVENT_RESOURCES = frozenset(EventResource)


class ClusterEvent(msgspec.Struct, frozen=True):
    """A kind of change in the cluster, or a registration for it; ``fwk.ClusterEvent`` of v1.36.

    Attributes:
        resource: A member of `EventResource`, or any other resource as
            ``<plural>.<version>.<group>``, e.g. ``foos.v1.example.com``.
        action: The actions; a registration for several matches any of them.
        label: The label in metrics; empty for one made of the resource and the action.

    Raises:
        ValueError: The resource is neither.
    """

    resource: EventResource | str
    action: ActionType
    label: str = ""

    def __post_init__(self) -> None:
        if isinstance(self.resource, EventResource):
            return
        if self.resource in _EVENT_RESOURCES:
            msgspec.structs.force_setattr(self, "resource", EventResource(self.resource))
        else:
            parse_custom_resource(self.resource)

    @property
    def is_wildcard(self) -> bool:
        """Whether this stands for every event; ``ClusterEventIsWildCard``."""
        return self.resource is EventResource.WILDCARD and self.action == ActionType.ALL

    def matches(self, event: ClusterEvent) -> bool:
        """Whether a registration for this event matches `event`.

        A wildcard event concerns all pods, and matches no registration but a wildcard
        (``MatchClusterEvents`` of v1.36).
        """
        if self.resource is EventResource.WILDCARD:
            return self.action == ActionType.ALL or self.action.overlaps(event.action)
        return self._covers(event.resource) and self.action.overlaps(event.action)

    def _covers(self, resource: EventResource | str) -> bool:
        if self.resource == resource:
            return True
        return self.resource is EventResource.POD and resource in (
            EventResource.ASSIGNED_POD,
            EventResource.UNSCHEDULED_POD,
        )


class QueueingHint(Enum):
    """Whether an event may make a pod schedulable, according to a plugin."""

    SKIP = "QueueSkip"
    QUEUE = "Queue"

    @classmethod
    def when(cls, helps: bool) -> QueueingHint:
        """QUEUE if the event helps, SKIP if not."""
        return cls.QUEUE if helps else cls.SKIP
