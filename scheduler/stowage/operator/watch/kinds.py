"""The reflected kinds: their paths, the structs they are decoded into, and their events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeAlias, TypeVar

import msgspec

from stowage.api.events import (
    AssignedPodGone,
    AssignedPodSeen,
    DisruptionBudgetGone,
    DisruptionBudgetSeen,
    Event,
    NamespaceGone,
    NamespaceSeen,
    NodeGone,
    NodeSeen,
    StorageGone,
    StorageSeen,
    WorkloadGone,
    WorkloadSeen,
)
from stowage.api.objects.meta import LabelSelector
from stowage.api.objects.namespace import Namespace
from stowage.api.objects.node import Node
from stowage.api.objects.pod import Pod
from stowage.api.objects.policy import PodDisruptionBudget
from stowage.api.objects.volume import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    StorageObject,
    VolumeAttachment,
)
from stowage.api.objects.workloads import ReplicaSet, ReplicationController, Service, StatefulSet

ReflectedObject: TypeAlias = (
    Pod
    | Node
    | Namespace
    | Service
    | ReplicationController
    | ReplicaSet
    | StatefulSet
    | StorageObject
    | PodDisruptionBudget
)

T = TypeVar("T", bound=ReflectedObject)
S = TypeVar("S", bound=StorageObject)


class Identity(NamedTuple):
    """Identity of an object."""

    namespace: str
    name: str
    uid: str


class ReflectedKind(msgspec.Struct, Generic[T], frozen=True):
    """One kind that a reflector follows.

    Attributes:
        kind: Name of the kind.
        path: Path of the cluster-wide list.
        type: Struct to decode the objects into.
        seen: Makes the event for an object that exists.
        gone: Makes the event for an object that no longer exists.
        field_selector: Field selector of lists and watches.
    """

    kind: str
    path: str
    type: type[T]
    seen: Callable[[T], Event]
    gone: Callable[[Identity], Event]
    field_selector: str = ""


def _workload_gone(kind: str) -> Callable[[Identity], Event]:
    return lambda identity: WorkloadGone(kind, identity.namespace, identity.name)


def _plain_selector_seen(kind: str) -> Callable[[Service | ReplicationController], Event]:
    def seen(workload: Service | ReplicationController) -> Event:
        # A service without a selector selects nothing, not everything.
        labels = workload.spec.selector
        selector = LabelSelector(match_labels=labels) if labels else None
        return WorkloadSeen(kind, workload.metadata.namespace, workload.metadata.name, selector)

    return seen


def _label_selector_seen(kind: str) -> Callable[[ReplicaSet | StatefulSet], Event]:
    def seen(workload: ReplicaSet | StatefulSet) -> Event:
        metadata = workload.metadata
        return WorkloadSeen(kind, metadata.namespace, metadata.name, workload.spec.selector)

    return seen


def _storage_kind(kind: type[S], path: str) -> ReflectedKind[S]:
    name = kind.__name__
    return ReflectedKind(
        kind=name,
        path=path,
        type=kind,
        seen=StorageSeen,
        gone=lambda identity: StorageGone(name, identity.namespace, identity.name),
    )


ASSIGNED_PODS = ReflectedKind(
    kind="Pod",
    path="/api/v1/pods",
    type=Pod,
    seen=AssignedPodSeen,
    gone=lambda identity: AssignedPodGone(*identity),
    field_selector="spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed",
)
NODES = ReflectedKind(
    kind="Node",
    path="/api/v1/nodes",
    type=Node,
    seen=NodeSeen,
    gone=lambda identity: NodeGone(identity.name),
)
NAMESPACES = ReflectedKind(
    kind="Namespace",
    path="/api/v1/namespaces",
    type=Namespace,
    seen=NamespaceSeen,
    gone=lambda identity: NamespaceGone(identity.name),
)
SERVICES = ReflectedKind(
    kind="Service",
    path="/api/v1/services",
    type=Service,
    seen=_plain_selector_seen("Service"),
    gone=_workload_gone("Service"),
)
REPLICATION_CONTROLLERS = ReflectedKind(
    kind="ReplicationController",
    path="/api/v1/replicationcontrollers",
    type=ReplicationController,
    seen=_plain_selector_seen("ReplicationController"),
    gone=_workload_gone("ReplicationController"),
)
REPLICA_SETS = ReflectedKind(
    kind="ReplicaSet",
    path="/apis/apps/v1/replicasets",
    type=ReplicaSet,
    seen=_label_selector_seen("ReplicaSet"),
    gone=_workload_gone("ReplicaSet"),
)
STATEFUL_SETS = ReflectedKind(
    kind="StatefulSet",
    path="/apis/apps/v1/statefulsets",
    type=StatefulSet,
    seen=_label_selector_seen("StatefulSet"),
    gone=_workload_gone("StatefulSet"),
)
DISRUPTION_BUDGETS = ReflectedKind(
    kind="PodDisruptionBudget",
    path="/apis/policy/v1/poddisruptionbudgets",
    type=PodDisruptionBudget,
    seen=DisruptionBudgetSeen,
    gone=lambda identity: DisruptionBudgetGone(identity.namespace, identity.name),
)

STORAGE = (
    _storage_kind(PersistentVolumeClaim, "/api/v1/persistentvolumeclaims"),
    _storage_kind(PersistentVolume, "/api/v1/persistentvolumes"),
    _storage_kind(StorageClass, "/apis/storage.k8s.io/v1/storageclasses"),
    _storage_kind(CSINode, "/apis/storage.k8s.io/v1/csinodes"),
    _storage_kind(CSIDriver, "/apis/storage.k8s.io/v1/csidrivers"),
    _storage_kind(CSIStorageCapacity, "/apis/storage.k8s.io/v1/csistoragecapacities"),
    _storage_kind(VolumeAttachment, "/apis/storage.k8s.io/v1/volumeattachments"),
)

REFLECTED_KINDS = (
    NODES,
    ASSIGNED_PODS,
    NAMESPACES,
    SERVICES,
    REPLICATION_CONTROLLERS,
    REPLICA_SETS,
    STATEFUL_SETS,
    *STORAGE,
    DISRUPTION_BUDGETS,
)
