"""What happened: cluster events that may make a pod schedulable, and the engine's inputs.

Two vocabularies live here. `ClusterEvent` is kube-scheduler's: plugins register for them and the
queue moves pods by them. `Event` is the union the engine consumes; its members are level
triggered (``...Seen`` carries the whole object, new or changed), so a relist after a gap is the
same as the changes that were missed.
"""

from __future__ import annotations

from enum import Enum, IntFlag, StrEnum
from typing import Any, TypeAlias

import msgspec

from stowage.api.instructions import PodReference, VictimsOnNode
from stowage.api.objects.namespace import Namespace
from stowage.api.objects.node import Node
from stowage.api.objects.pod import Pod
from stowage.api.objects.policy import PodDisruptionBudget
from stowage.api.objects.volume import StorageObject
from stowage.api.status import Code
from stowage.api.values.selectors import LabelSelector


class ActionType(IntFlag):
    """What was done to a resource; ``fwk.ActionType`` of v1.36."""

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


class EventResource(StrEnum):
    """Which kind of object an event is about; ``fwk.EventResource`` of v1.36.

    A plugin that registers for ``POD`` hears of assigned and of pending pods.
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
    WILDCARD = "*"


class ClusterEvent(msgspec.Struct, frozen=True):
    """A change somewhere in the cluster, as the queue and the plugins speak of it."""

    resource: EventResource
    action: ActionType
    label: str = ""

    @property
    def is_wildcard(self) -> bool:
        """Whether it stands for anything that can happen; ``ClusterEventIsWildCard``."""
        return self.resource is EventResource.WILDCARD and self.action == ActionType.ALL

    def matches(self, happened: ClusterEvent) -> bool:
        """Whether somebody registered for this event wants to hear of `happened`.

        A wildcard that happened concerns pods, whoever rejected them, and matches nobody's
        registration but a wildcard (``MatchClusterEvents`` of v1.36).
        """
        if self.is_wildcard:
            return True
        return self._covers(happened.resource) and bool(self.action & happened.action)

    def _covers(self, resource: EventResource) -> bool:
        if self.resource in (resource, EventResource.WILDCARD):
            return True
        return self.resource is EventResource.POD and resource in (
            EventResource.ASSIGNED_POD,
            EventResource.UNSCHEDULED_POD,
        )


class QueueingHint(Enum):
    """A plugin's opinion on whether an event may make a pod schedulable."""

    SKIP = "QueueSkip"
    QUEUE = "Queue"

    @classmethod
    def when(cls, helps: bool) -> QueueingHint:
        """QUEUE if the event helps, SKIP if not."""
        return cls.QUEUE if helps else cls.SKIP


class PendingPodSeen(msgspec.Struct, frozen=True, tag=True):
    """A pod of ours without a node was added or changed."""

    pod: Pod


class PendingPodGone(msgspec.Struct, frozen=True, tag=True):
    """A pod left the selection of our pending pods: deleted, or bound (by anybody)."""

    namespace: str
    name: str
    uid: str


class AssignedPodSeen(msgspec.Struct, frozen=True, tag=True):
    """A pod with a node, in no terminal phase, was added or changed."""

    pod: Pod


class AssignedPodGone(msgspec.Struct, frozen=True, tag=True):
    """A pod with a node was deleted or reached a terminal phase."""

    namespace: str
    name: str
    uid: str


class NodeSeen(msgspec.Struct, frozen=True, tag=True):
    """A node was added or changed."""

    node: Node


class NodeGone(msgspec.Struct, frozen=True, tag=True):
    """A node was deleted."""

    name: str


class NamespaceSeen(msgspec.Struct, frozen=True, tag=True):
    """A namespace was added or changed."""

    namespace: Namespace


class NamespaceGone(msgspec.Struct, frozen=True, tag=True):
    """A namespace was deleted."""

    name: str


class WorkloadSeen(msgspec.Struct, frozen=True, tag=True):
    """A Service, ReplicationController, ReplicaSet or StatefulSet was added or changed."""

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
    """A claim, a persistent volume or another object of storage was added or changed."""

    object: StorageObject


class StorageGone(msgspec.Struct, frozen=True, tag=True):
    """An object of storage was deleted; `kind` is one of `StorageObject`'s."""

    kind: str
    namespace: str
    name: str


class DisruptionBudgetSeen(msgspec.Struct, frozen=True, tag=True):
    """A PodDisruptionBudget was added or changed."""

    budget: PodDisruptionBudget


class DisruptionBudgetGone(msgspec.Struct, frozen=True, tag=True):
    """A PodDisruptionBudget was deleted."""

    namespace: str
    name: str


class ObjectInvalid(msgspec.Struct, frozen=True, tag=True):
    """An object could not be understood; what it said before, if anything, still holds.

    `scheduler_name` is whose pod it is, where it is a pod that waits for a node; else empty.
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
    """The shell ran the PreBind plugins of a pod."""

    uid: str
    code: Code
    reasons: tuple[str, ...] = ()
    plugin: str = ""


class VolumesWritten(msgspec.Struct, frozen=True, tag=True):
    """The shell carried out a ``BindVolumes``, or could not.

    Attributes:
        uid: Of the pod.
        volumes: Resource version by name of the volumes that are given to their claims now.
        claims: Resource version by ``namespace/name`` of the claims that name the node now.
        error: Why not all were written; empty if they were.
    """

    uid: str
    volumes: dict[str, str] = msgspec.field(default_factory=dict)
    claims: dict[str, str] = msgspec.field(default_factory=dict)
    error: str = ""


class BindSucceeded(msgspec.Struct, frozen=True, tag=True):
    """The API server confirmed that the pod is bound to the node we chose."""

    uid: str
    node_name: str


class BindFailed(msgspec.Struct, frozen=True, tag=True):
    """The API server is known not to have bound the pod to the node we chose.

    A lost answer is neither this nor a success: the dispatcher reads the pod back first.
    `by_extender`: it was an extender that was to bind it, and no Bind plugin.
    """

    uid: str
    node_name: str
    message: str
    by_extender: bool = False


class WaitingPodAllowed(msgspec.Struct, frozen=True, tag=True):
    """A Permit plugin allowed a pod that waits for it."""

    uid: str
    plugin: str


class WaitingPodRejected(msgspec.Struct, frozen=True, tag=True):
    """A Permit plugin rejected a pod that waits for it."""

    uid: str
    plugin: str
    message: str


class PodsActivated(msgspec.Struct, frozen=True, tag=True):
    """A plugin wants these pods tried now, whatever they wait for."""

    uids: tuple[str, ...]


class ExtendersAnswered(msgspec.Struct, frozen=True, tag=True):
    """The extenders said what they think of a pod's nodes, or one of them failed.

    Attributes:
        uid: Of the pod.
        number: Of the consultation; an answer to an earlier one is of no use.
        passed: The nodes that no extender rejected.
        failed: Node -> why not, where removing pods may help.
        failed_and_unresolvable: Node -> why not, where it may not; counts before `failed`.
        scores: Node -> what to add to its total, weighted and scaled.
        error: Why there is no answer; empty if there is one.
    """

    uid: str
    number: int
    passed: tuple[str, ...] = ()
    failed: dict[str, str] = msgspec.field(default_factory=dict)
    failed_and_unresolvable: dict[str, str] = msgspec.field(default_factory=dict)
    scores: dict[str, int] = msgspec.field(default_factory=dict)
    error: str = ""


class VictimsReviewed(msgspec.Struct, frozen=True, tag=True):
    """The extenders said which preemptions for a pod they leave, or one of them failed.

    Attributes:
        uid: Of the preemptor.
        number: Of the consultation; an answer to an earlier one is of no use.
        candidates: By node name, what is left; the victims may be others than asked about.
        error: Why there is no answer; empty if there is one.
    """

    uid: str
    number: int
    candidates: dict[str, VictimsOnNode] = msgspec.field(default_factory=dict)
    error: str = ""


class EvictionFinished(msgspec.Struct, frozen=True, tag=True):
    """A victim is being deleted, was gone already, or could not be evicted.

    Attributes:
        preemptor_uid: Whom it was to make room for.
        victim: The pod.
        was_deleted: Whether it was this eviction that deleted it.
        error: Why it is still there; empty if it is not.
    """

    preemptor_uid: str
    victim: PodReference
    was_deleted: bool = False
    error: str = ""


class ConfigurationChanged(msgspec.Struct, frozen=True, tag=True):
    """From the next cycle on another configuration holds; the shell has found it valid.

    Attributes:
        hash: What it is called in logs, metrics and decisions.
        configuration: In the shape of its file, so that a journal of events stays plain data.
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
    | DisruptionBudgetSeen
    | DisruptionBudgetGone
    | ObjectInvalid
    | PreBindFinished
    | VolumesWritten
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
