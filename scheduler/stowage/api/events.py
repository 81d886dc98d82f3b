"""Cluster events that may make a pod schedulable, and the events that the engine handles.

`ClusterEvent` is kube-scheduler's type: plugins register cluster events, and the queue moves pods
by them. `Event` is the union of the engine's inputs. Inputs are level-triggered: ``...Seen``
carries the whole object, added or updated, so a list after a gap equals the updates that were
missed.
"""

from __future__ import annotations

from enum import Enum, IntFlag, StrEnum
from typing import Any, TypeAlias

import msgspec

from stowage.api.instructions import PodReference, VictimsOnNode
from stowage.api.objects.custom import parse_custom_resource
from stowage.api.objects.device import DeviceObject, ResourceClaim
from stowage.api.objects.namespace import Namespace
from stowage.api.objects.node import Node
from stowage.api.objects.pod import Pod
from stowage.api.objects.policy import PodDisruptionBudget
from stowage.api.objects.volume import StorageObject
from stowage.api.pod_group_events import PodGroupGone as PodGroupGone  # noqa: PLC0414 - exported
from stowage.api.pod_group_events import PodGroupSeen as PodGroupSeen  # noqa: PLC0414 - exported
from stowage.api.pod_group_events import PodGroupsServed as PodGroupsServed  # noqa: PLC0414
from stowage.api.status import Code
from stowage.api.values.selectors import LabelSelector


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


class PendingPodSeen(msgspec.Struct, frozen=True, tag=True):
    """A pending pod of one of our profiles was added or updated."""

    pod: Pod


class PendingPodGone(msgspec.Struct, frozen=True, tag=True):
    """A pod is no longer pending: it was deleted, or bound by some scheduler."""

    namespace: str
    name: str
    uid: str


class AssignedPodSeen(msgspec.Struct, frozen=True, tag=True):
    """A pod with a node, in no terminal phase, was added or updated."""

    pod: Pod


class AssignedPodGone(msgspec.Struct, frozen=True, tag=True):
    """A pod with a node was deleted or reached a terminal phase."""

    namespace: str
    name: str
    uid: str


class NodeSeen(msgspec.Struct, frozen=True, tag=True):
    """A node was added or updated."""

    node: Node


class NodeGone(msgspec.Struct, frozen=True, tag=True):
    """A node was deleted."""

    name: str


class NamespaceSeen(msgspec.Struct, frozen=True, tag=True):
    """A namespace was added or updated."""

    namespace: Namespace


class NamespaceGone(msgspec.Struct, frozen=True, tag=True):
    """A namespace was deleted."""

    name: str


class WorkloadSeen(msgspec.Struct, frozen=True, tag=True):
    """A Service, ReplicationController, ReplicaSet or StatefulSet was added or updated."""

    kind: str
    namespace: str
    name: str
    selector: LabelSelector | None


class WorkloadGone(msgspec.Struct, frozen=True, tag=True):
    """A Service, ReplicationController, ReplicaSet or StatefulSet was deleted."""

    kind: str
    namespace: str
    name: str


class StorageSeen(msgspec.Struct, frozen=True, tag=True):
    """A claim, a persistent volume or another storage object was added or updated."""

    object: StorageObject


class StorageGone(msgspec.Struct, frozen=True, tag=True):
    """A storage object was deleted; `kind` is the name of a member of `StorageObject`."""

    kind: str
    namespace: str
    name: str


class DeviceObjectSeen(msgspec.Struct, frozen=True, tag=True):
    """A resource claim, a device class or a resource slice was added or updated."""

    object: DeviceObject


class DeviceObjectGone(msgspec.Struct, frozen=True, tag=True):
    """Such an object was deleted; `kind` is the name of a member of `DeviceObject`."""

    kind: str
    namespace: str
    name: str


class DisruptionBudgetSeen(msgspec.Struct, frozen=True, tag=True):
    """A PodDisruptionBudget was added or updated."""

    budget: PodDisruptionBudget


class DisruptionBudgetGone(msgspec.Struct, frozen=True, tag=True):
    """A PodDisruptionBudget was deleted."""

    namespace: str
    name: str


class CustomObjectSeen(msgspec.Struct, frozen=True, tag=True):
    """An object of a resource that a plugin registered was added or updated."""

    resource: str
    object: dict[str, Any]


class CustomObjectGone(msgspec.Struct, frozen=True, tag=True):
    """An object of a resource that a plugin registered was deleted."""

    resource: str
    namespace: str
    name: str


class CustomResourceGone(msgspec.Struct, frozen=True, tag=True):
    """A resource that a plugin registered is not served, or no plugin registers it any more."""

    resource: str


class ObjectInvalid(msgspec.Struct, frozen=True, tag=True):
    """An object is invalid; its last valid version, if any, stays in effect.

    `scheduler_name` is that of a pending pod; empty for other objects.
    """

    kind: str
    namespace: str
    name: str
    uid: str
    field: str
    value: str
    expectation: str
    scheduler_name: str = ""


class PreBindFinished(msgspec.Struct, frozen=True, tag=True):
    """The operator ran the PreBind plugins of a pod."""

    uid: str
    code: Code
    reasons: tuple[str, ...] = ()
    plugin: str = ""


class VolumesWritten(msgspec.Struct, frozen=True, tag=True):
    """The operator executed a ``BindVolumes``, or failed to.

    Attributes:
        uid: The UID of the pod.
        volumes: Name -> resource version of the written volumes.
        claims: ``namespace/name`` -> resource version of the written claims.
        error: Why not all were written; empty if they were.
    """

    uid: str
    volumes: dict[str, str] = msgspec.field(default_factory=dict)
    claims: dict[str, str] = msgspec.field(default_factory=dict)
    error: str = ""


class ClaimsWritten(msgspec.Struct, frozen=True, tag=True):
    """The operator executed a ``BindClaims``, or failed to.

    Attributes:
        uid: The UID of the pod.
        number: The number of the instruction.
        claims: The claims that were written, as the API server returned them.
        extended: The claim that was created, in its last version; None if none was.
        error: Why not all were written; empty if they were.
    """

    uid: str
    number: int = 0
    claims: tuple[ResourceClaim, ...] = ()
    extended: ResourceClaim | None = None
    error: str = ""


class BindSucceeded(msgspec.Struct, frozen=True, tag=True):
    """The API server confirmed that the pod is bound to the chosen node."""

    uid: str
    node_name: str


class BindFailed(msgspec.Struct, frozen=True, tag=True):
    """The API server did not bind the pod to the chosen node.

    If the response is lost, the dispatcher reads the pod before it reports success or failure.
    `by_extender` is whether an extender instead of a Bind plugin was to bind the pod.
    """

    uid: str
    node_name: str
    message: str
    by_extender: bool = False


class WaitingPodAllowed(msgspec.Struct, frozen=True, tag=True):
    """A Permit plugin allowed a waiting pod."""

    uid: str
    plugin: str


class WaitingPodRejected(msgspec.Struct, frozen=True, tag=True):
    """A Permit plugin rejected a waiting pod."""

    uid: str
    plugin: str
    message: str


class PodsActivated(msgspec.Struct, frozen=True, tag=True):
    """A plugin activated these pods: they are scheduled without waiting for an event."""

    uids: tuple[str, ...]


class ExtendersAnswered(msgspec.Struct, frozen=True, tag=True):
    """The extenders filtered and scored the nodes of a pod, or one of them failed.

    Attributes:
        uid: The UID of the pod.
        number: The number of the consultation; answers to earlier ones are ignored.
        passed: The nodes that no extender rejected.
        failed: Node -> reason, for rejections that preemption may resolve.
        failed_and_unresolvable: Node -> reason, for other rejections; overrides `failed`.
        scores: Node -> weighted and scaled score, which is added to the node's total.
        error: The failure; empty if there is none.
    """

    uid: str
    number: int
    passed: tuple[str, ...] = ()
    failed: dict[str, str] = msgspec.field(default_factory=dict)
    failed_and_unresolvable: dict[str, str] = msgspec.field(default_factory=dict)
    scores: dict[str, int] = msgspec.field(default_factory=dict)
    error: str = ""


class VictimsReviewed(msgspec.Struct, frozen=True, tag=True):
    """The extenders processed the preemption candidates of a pod, or one of them failed.

    Attributes:
        uid: The UID of the preemptor.
        number: The number of the consultation; answers to earlier ones are ignored.
        candidates: Node -> victims, for the remaining candidates; extenders may change victims.
        error: The failure; empty if there is none.
    """

    uid: str
    number: int
    candidates: dict[str, VictimsOnNode] = msgspec.field(default_factory=dict)
    error: str = ""


class EvictionFinished(msgspec.Struct, frozen=True, tag=True):
    """A victim is terminating, was deleted before, or could not be evicted.

    Attributes:
        preemptor_uid: The UID of the preemptor.
        victim: The victim.
        was_deleted: Whether this eviction deleted the victim.
        error: The failure; empty if there is none.
    """

    preemptor_uid: str
    victim: PodReference
    was_deleted: bool = False
    error: str = ""


class ConfigurationChanged(msgspec.Struct, frozen=True, tag=True):
    """Another configuration, which the operator has validated, applies from the next cycle on.

    Attributes:
        hash: Identifies the configuration in logs, metrics and decisions.
        configuration: The configuration in the shape of its file, so that events are plain data.
    """

    hash: str
    configuration: dict[str, Any]


Event: TypeAlias = (
    PendingPodSeen
    | PendingPodGone
    | AssignedPodSeen
    | AssignedPodGone
    | NodeSeen
    | NodeGone
    | NamespaceSeen
    | NamespaceGone
    | WorkloadSeen
    | WorkloadGone
    | StorageSeen
    | StorageGone
    | DeviceObjectSeen
    | DeviceObjectGone
    | DisruptionBudgetSeen
    | DisruptionBudgetGone
    | PodGroupSeen
    | PodGroupGone
    | PodGroupsServed
    | CustomObjectSeen
    | CustomObjectGone
    | CustomResourceGone
    | ObjectInvalid
    | PreBindFinished
    | VolumesWritten
    | ClaimsWritten
    | BindSucceeded
    | BindFailed
    | WaitingPodAllowed
    | WaitingPodRejected
    | PodsActivated
    | ExtendersAnswered
    | VictimsReviewed
    | EvictionFinished
    | ConfigurationChanged
)
