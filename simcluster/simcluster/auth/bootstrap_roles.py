"""The roles a new cluster has from the start, as far as anything here is bound to them."""

import copy
from typing import Any

from simcluster.auth.users import AUTHENTICATED, MASTERS, UNAUTHENTICATED
from simcluster.kinds.resources import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, Resource
from simcluster.store.registry import Registry

Json = dict[str, Any]

_DISCOVERY_URLS = (
    "/api",
    "/api/*",
    "/apis",
    "/apis/*",
    "/healthz",
    "/livez",
    "/openapi",
    "/openapi/*",
    "/readyz",
    "/version",
    "/version/",
)


def _creating(group: str, *resources: str) -> Json:
    return {"apiGroups": [group], "resources": list(resources), "verbs": ["create"]}


def _reading(group: str, *resources: str) -> Json:
    return {
        "apiGroups": [group],
        "resources": list(resources),
        "verbs": ["get", "list", "watch"],
    }


def _changing(group: str, *resources: str) -> Json:
    verbs = ["create", "delete", "deletecollection", "patch", "update"]
    return {"apiGroups": [group], "resources": list(resources), "verbs": verbs}


def _doing(verbs: str, group: str, *resources: str) -> Json:
    return {"apiGroups": [group], "resources": list(resources), "verbs": verbs.split()}


_WORKLOADS = (
    (
        "apps",
        ("daemonsets", "deployments", "deployments/scale", "replicasets", "replicasets/scale"),
    ),
    ("apps", ("statefulsets", "statefulsets/scale")),
    ("batch", ("jobs",)),
    ("policy", ("poddisruptionbudgets",)),
    ("", ("configmaps", "persistentvolumeclaims", "pods", "replicationcontrollers")),
    ("", ("replicationcontrollers/scale", "serviceaccounts", "services")),
)
_STATUSES = (
    ("apps", ("daemonsets/status", "deployments/status", "replicasets/status")),
    ("apps", ("controllerrevisions", "statefulsets/status")),
    ("batch", ("jobs/status",)),
    ("policy", ("poddisruptionbudgets/status",)),
    ("", ("persistentvolumeclaims/status", "pods/log", "pods/status", "services/status")),
    ("", ("events", "namespaces", "replicationcontrollers/status")),
)
_READ = [_reading(group, *found) for group, found in (*_WORKLOADS, *_STATUSES)]
_WRITE = [
    *(_changing(group, *found) for group, found in _WORKLOADS),
    _changing("", "secrets"),
    _reading("", "secrets"),
    _changing("coordination.k8s.io", "leases"),
    _reading("coordination.k8s.io", "leases"),
    _doing("create", "", "pods/eviction", "serviceaccounts/token"),
]
_GRANT = [
    _changing("rbac.authorization.k8s.io", "rolebindings", "roles"),
    _reading("rbac.authorization.k8s.io", "rolebindings", "roles"),
    _creating("authorization.k8s.io", "localsubjectaccessreviews"),
]
_SCHEDULE = [
    *(_doing("create patch update", group, "events") for group in ("", "events.k8s.io")),
    _creating("coordination.k8s.io", "leases"),
    {
        "apiGroups": ["coordination.k8s.io"],
        "resourceNames": ["kube-scheduler"],
        "resources": ["leases"],
        "verbs": ["get", "update"],
    },
    _reading("", "namespaces", "nodes", "replicationcontrollers", "services"),
    _doing("delete get list watch", "", "pods"),
    _doing("create", "", "bindings", "pods/binding"),
    _doing("patch update", "", "pods/status"),
    _reading("apps", "replicasets", "statefulsets"),
    _reading("policy", "poddisruptionbudgets"),
    _reading("", "persistentvolumeclaims", "persistentvolumes"),
    _creating("authentication.k8s.io", "tokenreviews"),
    _creating("authorization.k8s.io", "subjectaccessreviews"),
    _reading("storage.k8s.io", "csidrivers", "csinodes", "csistoragecapacities"),
    _reading("storage.k8s.io", "volumeattachments"),
]
_BIND_VOLUMES = [
    _doing("get list patch update watch", "", "persistentvolumes"),
    _reading("storage.k8s.io", "storageclasses"),
    _doing("get list patch update watch", "", "persistentvolumeclaims"),
]
_EVERYTHING = [
    {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
    {"nonResourceURLs": ["*"], "verbs": ["*"]},
]
_PUBLIC_URLS = ("/healthz", "/livez", "/readyz", "/version", "/version/")
_ROLES: dict[str, list[Json]] = {
    "cluster-admin": _EVERYTHING,
    "system:public-info-viewer": [{"nonResourceURLs": list(_PUBLIC_URLS), "verbs": ["get"]}],
    "system:discovery": [{"nonResourceURLs": list(_DISCOVERY_URLS), "verbs": ["get"]}],
    "system:basic-user": [
        _creating("authorization.k8s.io", "selfsubjectaccessreviews", "selfsubjectrulesreviews"),
        _creating("authentication.k8s.io", "selfsubjectreviews"),
    ],
    "system:auth-delegator": [
        _creating("authentication.k8s.io", "tokenreviews"),
        _creating("authorization.k8s.io", "subjectaccessreviews"),
    ],
    "system:kube-scheduler": _SCHEDULE,
    "system:volume-scheduler": _BIND_VOLUMES,
}
_AGGREGATE = "rbac.authorization.k8s.io/aggregate-to-"
# Each is put together from the roles that carry its label, and is itself part of the next.
_AGGREGATED = {"view": _READ, "edit": _WRITE, "admin": _GRANT}
_NEXT = {"view": "edit", "edit": "admin"}
_SCHEDULER = {"kind": "User", "name": "system:kube-scheduler"}
_KNOWN = {"kind": "Group", "name": AUTHENTICATED}
_STRANGERS = {"kind": "Group", "name": UNAUTHENTICATED}
_BINDINGS: dict[str, tuple[Json, ...]] = {
    "cluster-admin": ({"kind": "Group", "name": MASTERS},),
    "system:discovery": (_KNOWN,),
    "system:basic-user": (_KNOWN,),
    "system:public-info-viewer": (_KNOWN, _STRANGERS),
    "system:kube-scheduler": (_SCHEDULER,),
    "system:volume-scheduler": (_SCHEDULER,),
}


def make_bootstrap_roles(registry: Registry) -> None:
    """Store the roles a new cluster has, and who holds them; what exists stays as it is.

    The user-facing ones (view, edit, admin) are aggregated from parts, see ``role_aggregation``.
    They cover the kinds served here, not all of Kubernetes.
    """
    for name, rules in _ROLES.items():
        _make(registry, CLUSTER_ROLES, {"metadata": {"name": name}, "rules": rules})
    for name, rules in _AGGREGATED.items():
        for role in _aggregated_role(name, rules):
            _make(registry, CLUSTER_ROLES, role)
    for name, subjects in _BINDINGS.items():
        binding = {
            "metadata": {"name": name},
            "roleRef": {"kind": "ClusterRole", "name": name},
            "subjects": list(subjects),
        }
        _make(registry, CLUSTER_ROLE_BINDINGS, binding)


def _aggregated_role(name: str, rules: list[Json]) -> tuple[Json, Json]:
    """A role that is put together, and the part of it that is its own."""
    labels = {f"{_AGGREGATE}{_NEXT[name]}": "true"} if name in _NEXT else {}
    selector = {"matchLabels": {f"{_AGGREGATE}{name}": "true"}}
    whole = {
        "metadata": {"name": name, "labels": labels},
        "aggregationRule": {"clusterRoleSelectors": [selector]},
        "rules": [],
    }
    part_name = f"system:aggregate-to-{name}"
    part = {
        "metadata": {"name": part_name, "labels": {f"{_AGGREGATE}{name}": "true"}},
        "rules": rules,
    }
    return whole, part


def _make(registry: Registry, resource: Resource, obj: Json) -> None:
    if registry.store.get(resource.stored_in, "", obj["metadata"]["name"]) is None:
        registry.create(resource, "", copy.deepcopy(obj))
