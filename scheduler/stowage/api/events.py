"""The inputs of the engine; `Event` is their union.

They are level-triggered: ``...Seen`` carries the whole object, added or updated, so a list after a
gap equals the updates that were missed. What plugins register for is in `cluster_events`.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from stowage.api.instructions import ClaimReference, PodReference, VictimsOnNode
from stowage.api.objects.device import DeviceObject, ResourceClaim
from stowage.api.objects.namespace import Namespace
from stowage.api.objects.node import Node
from stowage.api.objects.pod import Pod
from stowage.api.objects.pod_groups import CORE_GROUPS, PodGroup
from stowage.api.objects.policy import PodDisruptionBudget
from stowage.api.objects.volume import StorageObject
from stowage.api.status import Code
from stowage.api.values.selectors import LabelSelector


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


class PodGroupSeen(msgspec.Struct, frozen=True, tag=True):
    """A pod group was added or updated.

    Attributes:
        group: The group.
        source: The API group that it comes from; see `stowage.api.objects.pod_groups`.
        permit_timeout_s: How long a member waits for its companions after it was reserved; None
            for kube-scheduler's five minutes.
    """

    group: PodGroup
    source: str = CORE_GROUPS
    permit_timeout_s: int | None = None


class PodGroupsServed(msgspec.Struct, frozen=True, tag=True):
    """Whether the API server serves the kind of a source, as discovery says.

    Attributes:
        source: The API group.
        is_served: While this is False, pods that name a group of the source are ordinary pods. A
            source counts as served until the first event.
    """

    source: str
    is_served: bool


class PodGroupGone(msgspec.Struct, frozen=True, tag=True):
    """A pod group was deleted; one of the same name from another source stays."""

    namespace: str
    name: str
    source: str = CORE_GROUPS


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
    """The operator executed a ``RunPreBind``; `number` is that of the instruction."""

    uid: str
    number: int
    code: Code
    reasons: tuple[str, ...] = ()
    plugin: str = ""


class VolumesWritten(msgspec.Struct, frozen=True, tag=True):
    """The operator executed a ``BindVolumes``, or failed to.

    Attributes:
        uid: The UID of the pod.
        number: The number of the instruction.
        volumes: Name -> resource version of the written volumes.
        claims: ``namespace/name`` -> resource version of the written claims.
        error: Why not all were written; empty if they were.
    """

    uid: str
    number: int
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


class ClaimDeletionFinished(msgspec.Struct, frozen=True, tag=True):
    """The operator executed a ``DeleteClaim``, or failed to.

    Attributes:
        claim: The claim.
        error: Why the claim may still exist; empty if it does not.
    """

    claim: ClaimReference
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
    | ClaimDeletionFinished
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
