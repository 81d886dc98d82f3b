"""The roles a new cluster has from the start, as far as anything here is bound to them."""

from typing import Any

from scheduler.cluster.registry import Registry
from scheduler.cluster.resources import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES
from scheduler.cluster.users import AUTHENTICATED, MASTERS, UNAUTHENTICATED

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
}
_BINDINGS: dict[str, tuple[str, ...]] = {
    "cluster-admin": (MASTERS,),
    "system:discovery": (AUTHENTICATED,),
    "system:basic-user": (AUTHENTICATED,),
    "system:public-info-viewer": (AUTHENTICATED, UNAUTHENTICATED),
}


def make_bootstrap_roles(registry: Registry) -> None:
    """Store what every authenticated user may do, and the role of those who delegate reviews."""
    for name, rules in _ROLES.items():
        registry.create(CLUSTER_ROLES, "", {"metadata": {"name": name}, "rules": rules})
    for name, groups in _BINDINGS.items():
        binding = {
            "metadata": {"name": name},
            "roleRef": {"kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "Group", "name": group} for group in groups],
        }
        registry.create(CLUSTER_ROLE_BINDINGS, "", binding)
