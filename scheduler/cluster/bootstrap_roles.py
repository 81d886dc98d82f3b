"""The roles a new cluster has from the start, as far as anything here is bound to them."""

from typing import Any

from scheduler.cluster.registry import Registry
from scheduler.cluster.resources import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES
from scheduler.cluster.users import AUTHENTICATED

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


_ROLES: dict[str, list[Json]] = {
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
_OF_EVERYONE = ("system:discovery", "system:basic-user")


def make_bootstrap_roles(registry: Registry) -> None:
    """Store what every authenticated user may do, and the role of those who delegate reviews."""
    for name, rules in _ROLES.items():
        if registry.store.get(CLUSTER_ROLES.stored_in, "", name) is None:
            registry.create(CLUSTER_ROLES, "", {"metadata": {"name": name}, "rules": rules})
    for name in _OF_EVERYONE:
        binding = {
            "metadata": {"name": name},
            "roleRef": {"kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "Group", "name": AUTHENTICATED}],
        }
        if registry.store.get(CLUSTER_ROLE_BINDINGS.stored_in, "", name) is None:
            registry.create(CLUSTER_ROLE_BINDINGS, "", binding)
