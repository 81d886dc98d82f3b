"""The kinds this cluster serves, and how each is addressed, stored and changed."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simcluster.crds.version import CustomVersion

ALL_VERBS = (
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
)

CONNECTIONS = ("attach", "exec", "portforward", "proxy")
"""Subresources that are forwarded to a kubelet, which nothing here listens like."""


@dataclass(frozen=True)
class Resource:
    """One served resource: a kind under its group, version and plural.

    Args:
        group: API group; empty for the core group.
        collection: name of the store's collection; two resources with the same one show the
            same objects (core and events.k8s.io Events).
        subresources: served below an object, such as ``status``.
        has_generation: ``metadata.generation`` counts changes of the spec.
        unconditional_update: PUT without a resourceVersion overwrites.
        create_on_update: PUT to a missing object creates it.
        orphans_by_default: deletion without a propagationPolicy leaves dependents behind.
        has_path_names: names may be anything that fits into a path, such as ``system:discovery``.
        deletion_finalizer: put on an object when its deletion begins.
        list_kind: kind of a list; ``<kind>List`` where empty.
        storage_version: group/version/kind that objects are stored as, where it is another one.
        custom: what a CustomResourceDefinition says of this version; ``None`` for what is built in.
    """

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    collection: str = ""
    has_generation: bool = False
    unconditional_update: bool = True
    create_on_update: bool = False
    orphans_by_default: bool = False
    has_path_names: bool = False
    deletion_finalizer: str = ""
    list_kind: str = ""
    storage_version: str = ""
    custom: "CustomVersion | None" = field(default=None, compare=False)

    @cached_property
    def api_version(self) -> str:
        """``v1`` or ``apps/v1``."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @cached_property
    def qualified(self) -> str:
        """``pods`` or ``deployments.apps``, as error messages name it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @cached_property
    def stored_in(self) -> str:
        """Name of the store's collection."""
        return self.collection or self.qualified

    @cached_property
    def type_prefix(self) -> bytes:
        """Opening of an encoded object: stored bodies carry no kind and no apiVersion."""
        return f'{{"kind":"{self.kind}","apiVersion":"{self.api_version}",'.encode()

    @cached_property
    def list_type_prefix(self) -> bytes:
        """Opening of an encoded list."""
        kind = self.list_kind or f"{self.kind}List"
        return f'{{"kind":"{kind}","apiVersion":"{self.api_version}","metadata":'.encode()

    @cached_property
    def has_status(self) -> bool:
        """The status is written through its own subresource only."""
        return "status" in self.subresources


PODS = Resource(
    "",
    "v1",
    "Pod",
    "pods",
    short_names=("po",),
    categories=("all",),
    subresources=(
        "status",
        "binding",
        "eviction",
        "ephemeralcontainers",
        "resize",
        "log",
        *CONNECTIONS,
    ),
    has_generation=True,
)
NODES = Resource(
    "",
    "v1",
    "Node",
    "nodes",
    namespaced=False,
    short_names=("no",),
    subresources=("status", "proxy"),
)
NAMESPACES = Resource(
    "",
    "v1",
    "Namespace",
    "namespaces",
    namespaced=False,
    short_names=("ns",),
    subresources=("status", "finalize"),
    verbs=tuple(verb for verb in ALL_VERBS if verb != "deletecollection"),
)
CONFIG_MAPS = Resource("", "v1", "ConfigMap", "configmaps", short_names=("cm",))
SECRETS = Resource("", "v1", "Secret", "secrets")
SERVICE_ACCOUNTS = Resource(
    "", "v1", "ServiceAccount", "serviceaccounts", short_names=("sa",), subresources=("token",)
)
SERVICES = Resource(
    "",
    "v1",
    "Service",
    "services",
    short_names=("svc",),
    categories=("all",),
    subresources=("status", "proxy"),
    create_on_update=True,
)
REPLICATION_CONTROLLERS = Resource(
    "",
    "v1",
    "ReplicationController",
    "replicationcontrollers",
    short_names=("rc",),
    categories=("all",),
    subresources=("status", "scale"),
    has_generation=True,
    orphans_by_default=True,
)
PERSISTENT_VOLUMES = Resource(
    "",
    "v1",
    "PersistentVolume",
    "persistentvolumes",
    namespaced=False,
    short_names=("pv",),
    subresources=("status",),
)
PERSISTENT_VOLUME_CLAIMS = Resource(
    "",
    "v1",
    "PersistentVolumeClaim",
    "persistentvolumeclaims",
    short_names=("pvc",),
    subresources=("status",),
)
EVENTS = Resource(
    "", "v1", "Event", "events", short_names=("ev",), collection="events", create_on_update=True
)
EVENTS_V1 = Resource(
    "events.k8s.io",
    "v1",
    "Event",
    "events",
    short_names=("ev",),
    collection="events",
    create_on_update=True,
    storage_version="/v1/Event",
)
DEPLOYMENTS = Resource(
    "apps",
    "v1",
    "Deployment",
    "deployments",
    short_names=("deploy",),
    categories=("all",),
    subresources=("status", "scale"),
    has_generation=True,
)
REPLICA_SETS = Resource(
    "apps",
    "v1",
    "ReplicaSet",
    "replicasets",
    short_names=("rs",),
    categories=("all",),
    subresources=("status", "scale"),
    has_generation=True,
)
STATEFUL_SETS = Resource(
    "apps",
    "v1",
    "StatefulSet",
    "statefulsets",
    short_names=("sts",),
    categories=("all",),
    subresources=("status", "scale"),
    has_generation=True,
)
DAEMON_SETS = Resource(
    "apps",
    "v1",
    "DaemonSet",
    "daemonsets",
    short_names=("ds",),
    categories=("all",),
    subresources=("status",),
    has_generation=True,
)
CONTROLLER_REVISIONS = Resource("apps", "v1", "ControllerRevision", "controllerrevisions")
JOBS = Resource(
    "batch",
    "v1",
    "Job",
    "jobs",
    categories=("all",),
    subresources=("status",),
    has_generation=True,
    orphans_by_default=True,
)
LEASES = Resource(
    "coordination.k8s.io",
    "v1",
    "Lease",
    "leases",
    unconditional_update=False,
    create_on_update=True,
)
PRIORITY_CLASSES = Resource(
    "scheduling.k8s.io",
    "v1",
    "PriorityClass",
    "priorityclasses",
    namespaced=False,
    short_names=("pc",),
    has_generation=True,
)
POD_DISRUPTION_BUDGETS = Resource(
    "policy",
    "v1",
    "PodDisruptionBudget",
    "poddisruptionbudgets",
    short_names=("pdb",),
    subresources=("status",),
    has_generation=True,
    unconditional_update=False,
)
STORAGE_CLASSES = Resource(
    "storage.k8s.io",
    "v1",
    "StorageClass",
    "storageclasses",
    namespaced=False,
    short_names=("sc",),
)
CSI_NODES = Resource("storage.k8s.io", "v1", "CSINode", "csinodes", namespaced=False)
CSI_DRIVERS = Resource("storage.k8s.io", "v1", "CSIDriver", "csidrivers", namespaced=False)
CSI_STORAGE_CAPACITIES = Resource(
    "storage.k8s.io", "v1", "CSIStorageCapacity", "csistoragecapacities"
)
VOLUME_ATTACHMENTS = Resource(
    "storage.k8s.io",
    "v1",
    "VolumeAttachment",
    "volumeattachments",
    namespaced=False,
    subresources=("status",),
    unconditional_update=False,
)
CUSTOM_RESOURCE_DEFINITIONS = Resource(
    "apiextensions.k8s.io",
    "v1",
    "CustomResourceDefinition",
    "customresourcedefinitions",
    namespaced=False,
    short_names=("crd", "crds"),
    categories=("api-extensions",),
    subresources=("status",),
    has_generation=True,
    unconditional_update=False,
    deletion_finalizer="customresourcecleanup.apiextensions.k8s.io",
)
RBAC = "rbac.authorization.k8s.io"
ROLES = Resource(RBAC, "v1", "Role", "roles", has_path_names=True)
ROLE_BINDINGS = Resource(RBAC, "v1", "RoleBinding", "rolebindings", has_path_names=True)
CLUSTER_ROLES = Resource(
    RBAC, "v1", "ClusterRole", "clusterroles", namespaced=False, has_path_names=True
)
CLUSTER_ROLE_BINDINGS = Resource(
    RBAC, "v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False, has_path_names=True
)

RESOURCES: tuple[Resource, ...] = (
    PODS,
    NODES,
    NAMESPACES,
    CONFIG_MAPS,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    REPLICATION_CONTROLLERS,
    PERSISTENT_VOLUMES,
    PERSISTENT_VOLUME_CLAIMS,
    EVENTS,
    EVENTS_V1,
    DEPLOYMENTS,
    REPLICA_SETS,
    STATEFUL_SETS,
    DAEMON_SETS,
    CONTROLLER_REVISIONS,
    JOBS,
    LEASES,
    PRIORITY_CLASSES,
    POD_DISRUPTION_BUDGETS,
    STORAGE_CLASSES,
    CSI_NODES,
    CSI_DRIVERS,
    CSI_STORAGE_CAPACITIES,
    VOLUME_ATTACHMENTS,
    CUSTOM_RESOURCE_DEFINITIONS,
    ROLES,
    ROLE_BINDINGS,
    CLUSTER_ROLES,
    CLUSTER_ROLE_BINDINGS,
)
