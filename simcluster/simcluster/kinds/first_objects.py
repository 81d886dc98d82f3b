"""What a new cluster holds before anybody has written to it, as a real API server makes it."""

from typing import Any

from simcluster.kinds.resources import (
    API_SERVICES,
    NAMESPACES,
    PRIORITY_CLASSES,
    SERVICE_CIDRS,
    SERVICES,
    Resource,
)
from simcluster.store.registry import Registry

Json = dict[str, Any]

NAMESPACE_NAMES = ("default", "kube-system", "kube-public", "kube-node-lease")
_MOVABLE = (
    "Used for system critical pods that must run in the cluster, but can be moved to another node "
    "if necessary."
)
_UNMOVABLE = "Used for system critical pods that must not be moved from their current node."
_SYSTEM_CLASSES = (
    ("system-cluster-critical", 2_000_000_000, _MOVABLE),
    ("system-node-critical", 2_000_001_000, _UNMOVABLE),
)
_SERVICE_CIDR = "10.96.0.0/16"
_SERVICE_ADDRESS = "10.96.0.1"
_FIRST_GROUP_PRIORITY = 18_000
_GROUP_PRIORITY_STEP = 100


def make_first_objects(registry: Registry) -> None:
    """Make what is missing: namespaces, the system's priority classes, and the API's own face."""
    for name in NAMESPACE_NAMES:
        _make(registry, NAMESPACES, {"metadata": {"name": name}})
    for name, value, description in _SYSTEM_CLASSES:
        body = {"metadata": {"name": name}, "value": value, "description": description}
        _make(registry, PRIORITY_CLASSES, body)
    now = registry.clock.now()
    _make(registry, SERVICE_CIDRS, _service_cidr(now))
    _make(registry, SERVICES, _service(), "default")
    for place, (group, version) in enumerate(registry.catalog.group_versions()):
        _make(registry, API_SERVICES, _api_service(group, version, place, now))


def _make(registry: Registry, resource: Resource, body: Json, namespace: str = "") -> None:
    if registry.store.get(resource.stored_in, namespace, body["metadata"]["name"]) is not None:
        return
    status = body.pop("status", None)
    made = registry.create(resource, namespace, body)
    if status is not None:
        registry.replace_status(resource, made, {**made.obj, "status": status})


def _service_cidr(now: str) -> Json:
    ready = {
        "type": "Ready",
        "status": "True",
        "lastTransitionTime": now,
        "reason": "",
        "message": "Kubernetes default Service CIDR is ready",
    }
    return {
        "metadata": {"name": "kubernetes"},
        "spec": {"cidrs": [_SERVICE_CIDR]},
        "status": {"conditions": [ready]},
    }


def _service() -> Json:
    port = {"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}
    return {
        "metadata": {
            "name": "kubernetes",
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {"clusterIP": _SERVICE_ADDRESS, "ports": [port], "type": "ClusterIP"},
    }


def _api_service(group: str, version: str, place: int, now: str) -> Json:
    """A group version that this very server answers for; groups come in the order of kubectl."""
    available = {
        "type": "Available",
        "status": "True",
        "lastTransitionTime": now,
        "reason": "Local",
        "message": "Local APIServices are always available",
    }
    spec: Json = {"version": version, "versionPriority": 15 if group else 1}
    if group:
        spec["group"] = group
    spec["groupPriorityMinimum"] = _FIRST_GROUP_PRIORITY - place * _GROUP_PRIORITY_STEP
    return {
        "metadata": {
            "name": f"{version}.{group}",
            "labels": {"kube-aggregator.kubernetes.io/automanaged": "onstart"},
        },
        "spec": spec,
        "status": {"conditions": [available]},
    }
