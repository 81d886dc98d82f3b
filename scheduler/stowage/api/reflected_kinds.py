"""The reflected kinds: their paths, the structs they are decoded into, and their events."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import msgspec

from stowage.api.events import (
    AssignedPodGone,
    AssignedPodSeen,
    CustomObjectGone,
    CustomObjectSeen,
    DeviceObjectGone,
    DeviceObjectSeen,
    DisruptionBudgetGone,
    DisruptionBudgetSeen,
    Event,
    NamespaceGone,
    NamespaceSeen,
    NodeGone,
    NodeSeen,
    PodGroupGone,
    PodGroupSeen,
    StorageGone,
    StorageSeen,
    WorkloadGone,
    WorkloadSeen,
)
from stowage.api.objects.custom import CustomObject, parse_custom_resource
from stowage.api.objects.device import (
    DeviceClass,
    DeviceObject,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from stowage.api.objects.meta import LabelSelector
from stowage.api.objects.namespace import Namespace
from stowage.api.objects.node import Node
from stowage.api.objects.pod import Pod
from stowage.api.objects.pod_groups import COSCHEDULING_GROUPS, CoschedulingPodGroup, PodGroup
from stowage.api.objects.policy import PodDisruptionBudget, PriorityClass
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
    | DeviceObject
    | PodDisruptionBudget
    | PodGroup
    | CoschedulingPodGroup
    | CustomObject
)

T = TypeVar("T", bound=ReflectedObject)
CLAIM_TEMPLATE_RESOURCE = "resourceclaimtemplates.v1.resource.k8s.io"
PRIORITY_CLASS_RESOURCE = "priorityclasses.v1.scheduling.k8s.io"

S = TypeVar("S", bound=StorageObject)
D = TypeVar("D", bound=DeviceObject)
W = TypeVar("W", Service, ReplicationController, ReplicaSet, StatefulSet)


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
        is_optional: Whether the API server may not serve the kind; then the watch ends.
        is_empty_if_unserved: Whether there are no objects of a kind that is not served; then the
            API server is asked again later.
    """

    kind: str
    path: str
    type: type[T]
    seen: Callable[[T], Event]
    gone: Callable[[Identity], Event]
    field_selector: str = ""
    is_optional: bool = False
    is_empty_if_unserved: bool = False


def _workload_kind(
    kind: type[W], path: str, selector: Callable[[W], LabelSelector | None]
) -> ReflectedKind[W]:
    name = kind.__name__

    def seen(workload: W) -> Event:
        metadata = workload.metadata
        return WorkloadSeen(name, metadata.namespace, metadata.name, selector(workload))

    return ReflectedKind(
        kind=name,
        path=path,
        type=kind,
        seen=seen,
        gone=lambda identity: WorkloadGone(name, identity.namespace, identity.name),
    )


def _plain_selector(workload: Service | ReplicationController) -> LabelSelector | None:
    # A service without a selector selects nothing, not everything.
    labels = workload.spec.selector
    return LabelSelector(match_labels=labels) if labels else None


def _label_selector(workload: ReplicaSet | StatefulSet) -> LabelSelector | None:
    return workload.spec.selector


def _storage_kind(kind: type[S], path: str) -> ReflectedKind[S]:
    name = kind.__name__
    return ReflectedKind(
        kind=name,
        path=path,
        type=kind,
        seen=StorageSeen,
        gone=lambda identity: StorageGone(name, identity.namespace, identity.name),
    )


def _device_kind(kind: type[D], path: str) -> ReflectedKind[D]:
    name = kind.__name__
    return ReflectedKind(
        kind=name,
        path=path,
        type=kind,
        seen=DeviceObjectSeen,
        gone=lambda identity: DeviceObjectGone(name, identity.namespace, identity.name),
        is_empty_if_unserved=True,
    )


def custom_kind(resource: str) -> ReflectedKind[CustomObject]:
    """The kind to follow for a resource in the notation of `parse_custom_resource`."""
    return ReflectedKind(
        kind=resource,
        path=parse_custom_resource(resource).path,
        type=CustomObject,
        seen=lambda found: CustomObjectSeen(resource, found.content),
        gone=lambda identity: CustomObjectGone(resource, identity.namespace, identity.name),
        is_optional=True,
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
SERVICES = _workload_kind(Service, "/api/v1/services", _plain_selector)
REPLICATION_CONTROLLERS = _workload_kind(
    ReplicationController, "/api/v1/replicationcontrollers", _plain_selector
)
REPLICA_SETS = _workload_kind(ReplicaSet, "/apis/apps/v1/replicasets", _label_selector)
STATEFUL_SETS = _workload_kind(StatefulSet, "/apis/apps/v1/statefulsets", _label_selector)
DISRUPTION_BUDGETS = ReflectedKind(
    kind="PodDisruptionBudget",
    path="/apis/policy/v1/poddisruptionbudgets",
    type=PodDisruptionBudget,
    seen=DisruptionBudgetSeen,
    gone=lambda identity: DisruptionBudgetGone(identity.namespace, identity.name),
)
POD_GROUPS = ReflectedKind(
    kind="PodGroup",
    path="/apis/scheduling.k8s.io/v1alpha2/podgroups",
    type=PodGroup,
    seen=PodGroupSeen,
    gone=lambda identity: PodGroupGone(identity.namespace, identity.name),
    is_optional=True,
)
COSCHEDULING_POD_GROUPS = ReflectedKind(
    kind="CoschedulingPodGroup",
    path="/apis/scheduling.x-k8s.io/v1alpha1/podgroups",
    type=CoschedulingPodGroup,
    seen=lambda group: PodGroupSeen(
        group.translated(), COSCHEDULING_GROUPS, group.permit_timeout_s
    ),
    gone=lambda identity: PodGroupGone(identity.namespace, identity.name, COSCHEDULING_GROUPS),
    is_optional=True,
)
POD_GROUP_SOURCES = (POD_GROUPS, COSCHEDULING_POD_GROUPS)
"""The sources of pod groups; many API servers serve neither."""


def group_source(kind: ReflectedKind[Any]) -> str:
    """The API group of a source of pod groups, as `PodGroupsServed` names it."""
    return kind.path.split("/")[2]


STORAGE = (
    _storage_kind(PersistentVolumeClaim, "/api/v1/persistentvolumeclaims"),
    _storage_kind(PersistentVolume, "/api/v1/persistentvolumes"),
    _storage_kind(StorageClass, "/apis/storage.k8s.io/v1/storageclasses"),
    _storage_kind(CSINode, "/apis/storage.k8s.io/v1/csinodes"),
    _storage_kind(CSIDriver, "/apis/storage.k8s.io/v1/csidrivers"),
    _storage_kind(CSIStorageCapacity, "/apis/storage.k8s.io/v1/csistoragecapacities"),
    _storage_kind(VolumeAttachment, "/apis/storage.k8s.io/v1/volumeattachments"),
)

DEVICES = (
    _device_kind(DeviceClass, "/apis/resource.k8s.io/v1/deviceclasses"),
    _device_kind(ResourceClaim, "/apis/resource.k8s.io/v1/resourceclaims"),
    _device_kind(ResourceSlice, "/apis/resource.k8s.io/v1/resourceslices"),
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
    *DEVICES,
    DISRUPTION_BUDGETS,
)

READ_BY_ADMISSION: Mapping[str, type[ResourceClaimTemplate | PriorityClass]] = {
    CLAIM_TEMPLATE_RESOURCE: ResourceClaimTemplate,
    PRIORITY_CLASS_RESOURCE: PriorityClass,
}
"""Resource -> struct, for questions about new pods; scheduling reads none of them."""

FOR_NEW_PODS = tuple(
    msgspec.structs.replace(custom_kind(resource), kind=struct.__name__)
    for resource, struct in READ_BY_ADMISSION.items()
)
"""The kinds of `READ_BY_ADMISSION`."""
