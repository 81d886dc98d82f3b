"""The kinds this cluster serves, and how each is addressed, stored and changed."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from importlib import resources
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simcluster.crds.version import CustomVersion

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
CONNECTIONS = ("attach", "exec", "portforward", "proxy")
"""Subresources that an API server forwards to a kubelet; the simulated ones do not listen."""
RBAC = "rbac.authorization.k8s.io"


@dataclass(frozen=True)
class Resource:
    """One served resource: a kind under its group, version and plural.

    Args:
        group: API group; empty for the core group.
        collection: name of the store's collection; two resources with the same collection show the
            same objects (core and events.k8s.io Events).
        subresources: served below an object, such as ``status``.
        has_generation: ``metadata.generation`` counts changes of the spec.
        unconditional_update: PUT without a resourceVersion overwrites.
        create_on_update: PUT to a missing object creates it.
        orphans_by_default: deletion without a propagationPolicy leaves dependents behind.
        has_path_names: names may be anything that fits into a path, such as ``system:discovery``.
        deletion_finalizer: put on an object when its deletion begins.
        list_kind: kind of a list; ``<kind>List`` where empty.
        storage_version: group/version/kind that objects are stored as, if it is another one.
        custom: this version in its CustomResourceDefinition; ``None`` for a built-in kind.
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


_CATEGORIES = ("all", "api-extensions")
_UNUSUAL: dict[str, dict[str, Any]] = {
    "namespaces": {"verbs": tuple(verb for verb in ALL_VERBS if verb != "deletecollection")},
    "componentstatuses": {"verbs": ("get", "list")},
    "events.events.k8s.io": {"collection": "events", "storage_version": "/v1/Event"},
    "customresourcedefinitions.apiextensions.k8s.io": {
        "deletion_finalizer": "customresourcecleanup.apiextensions.k8s.io"
    },
}


def _listed_in(name: str) -> Iterator[Resource]:
    """The resources of a table."""
    table = resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
    for line in table.splitlines():
        if line and not line.startswith("#"):
            columns = [() if cell == "-" else tuple(cell.split(",")) for cell in line.split()]
            (group_version,), (kind,), (plural,), short_names, subresources, flags = columns
            group, _, version = group_version.rpartition("/")
            yield Resource(
                group,
                version,
                kind,
                plural,
                namespaced="cluster" not in flags,
                short_names=short_names,
                categories=tuple(flag for flag in flags if flag in _CATEGORIES),
                subresources=subresources,
                has_generation="generation" in flags,
                unconditional_update="conditional" not in flags,
                create_on_update="creates" in flags,
                orphans_by_default="orphans" in flags,
                has_path_names="paths" in flags,
                **_UNUSUAL.get(f"{plural}.{group}" if group else plural, {}),
            )


BUILT_IN = tuple(_listed_in("built_in.txt"))
POD_GROUP_KINDS = tuple(_listed_in("pod_groups.txt"))
"""Alpha kinds, which are served on demand only."""
_NAMED = {found.qualified: found for found in (*BUILT_IN, *POD_GROUP_KINDS)}

PODS = _NAMED["pods"]
NODES = _NAMED["nodes"]
NAMESPACES = _NAMED["namespaces"]
CONFIG_MAPS = _NAMED["configmaps"]
SERVICE_ACCOUNTS = _NAMED["serviceaccounts"]
SERVICES = _NAMED["services"]
REPLICATION_CONTROLLERS = _NAMED["replicationcontrollers"]
PERSISTENT_VOLUMES = _NAMED["persistentvolumes"]
PERSISTENT_VOLUME_CLAIMS = _NAMED["persistentvolumeclaims"]
EVENTS = _NAMED["events"]
SCALES = Resource("autoscaling", "v1", "Scale", "scales")
"""What scale subresources answer; not served by itself."""
EVENTS_V1 = _NAMED["events.events.k8s.io"]
DEPLOYMENTS = _NAMED["deployments.apps"]
REPLICA_SETS = _NAMED["replicasets.apps"]
STATEFUL_SETS = _NAMED["statefulsets.apps"]
DAEMON_SETS = _NAMED["daemonsets.apps"]
CONTROLLER_REVISIONS = _NAMED["controllerrevisions.apps"]
JOBS = _NAMED["jobs.batch"]
LEASES = _NAMED["leases.coordination.k8s.io"]
LIMIT_RANGES = _NAMED["limitranges"]
RESOURCE_QUOTAS = _NAMED["resourcequotas"]
RUNTIME_CLASSES = _NAMED["runtimeclasses.node.k8s.io"]
PRIORITY_CLASSES = _NAMED["priorityclasses.scheduling.k8s.io"]
WORKLOADS = _NAMED["workloads.scheduling.k8s.io"]
POD_GROUPS = _NAMED["podgroups.scheduling.k8s.io"]
POD_DISRUPTION_BUDGETS = _NAMED["poddisruptionbudgets.policy"]
STORAGE_CLASSES = _NAMED["storageclasses.storage.k8s.io"]
CSI_NODES = _NAMED["csinodes.storage.k8s.io"]
CSI_DRIVERS = _NAMED["csidrivers.storage.k8s.io"]
CSI_STORAGE_CAPACITIES = _NAMED["csistoragecapacities.storage.k8s.io"]
VOLUME_ATTACHMENTS = _NAMED["volumeattachments.storage.k8s.io"]
RESOURCE_CLAIMS = _NAMED["resourceclaims.resource.k8s.io"]
RESOURCE_CLAIM_TEMPLATES = _NAMED["resourceclaimtemplates.resource.k8s.io"]
RESOURCE_SLICES = _NAMED["resourceslices.resource.k8s.io"]
CUSTOM_RESOURCE_DEFINITIONS = _NAMED["customresourcedefinitions.apiextensions.k8s.io"]
ROLES = _NAMED["roles.rbac.authorization.k8s.io"]
ROLE_BINDINGS = _NAMED["rolebindings.rbac.authorization.k8s.io"]
CLUSTER_ROLES = _NAMED["clusterroles.rbac.authorization.k8s.io"]
CLUSTER_ROLE_BINDINGS = _NAMED["clusterrolebindings.rbac.authorization.k8s.io"]
API_SERVICES = _NAMED["apiservices.apiregistration.k8s.io"]
CERTIFICATE_SIGNING_REQUESTS = _NAMED["certificatesigningrequests.certificates.k8s.io"]
