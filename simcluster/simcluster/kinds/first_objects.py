"""The objects of a new cluster, as a real API server creates them."""

from collections.abc import Iterator
from importlib import resources

import yaml

from simcluster.kinds.resources import API_SERVICES, BUILT_IN, Resource
from simcluster.store.registry import Registry
from simcluster.values import Json

_FIRST_GROUP_PRIORITY = 18_000
_GROUP_PRIORITY_STEP = 100
_BY_KIND = {resource.kind: resource for resource in BUILT_IN}


def make_first_objects(registry: Registry) -> None:
    """Create missing namespaces, priority classes, the API server's Service and APIServices."""
    text = resources.files(__package__).joinpath("first_objects.yaml").read_text(encoding="utf-8")
    for body in yaml.safe_load(text.replace("NOW", f'"{registry.clock.now()}"')):
        _make(registry, _BY_KIND[body.pop("kind")], body)
    for body in _api_services(registry):
        _make(registry, API_SERVICES, body)


def _make(registry: Registry, resource: Resource, body: Json) -> None:
    namespace = body["metadata"].get("namespace", "")
    if registry.store.get(resource.stored_in, namespace, body["metadata"]["name"]) is not None:
        return
    status = body.pop("status", None)
    made = registry.create(resource, namespace, body)
    if status is not None:
        registry.replace_status(resource, made, {**made.obj, "status": status})


def _api_services(registry: Registry) -> Iterator[Json]:
    """An APIService for each group version; groups come in the order of kubectl."""
    available = {
        "type": "Available",
        "status": "True",
        "lastTransitionTime": registry.clock.now(),
        "reason": "Local",
        "message": "Local APIServices are always available",
    }
    for place, (group, version) in enumerate(registry.catalog.group_versions()):
        yield {
            "metadata": {
                "name": f"{version}.{group}",
                "labels": {"kube-aggregator.kubernetes.io/automanaged": "onstart"},
            },
            "spec": {
                "version": version,
                "versionPriority": 15 if group else 1,
                **({"group": group} if group else {}),
                "groupPriorityMinimum": _FIRST_GROUP_PRIORITY - place * _GROUP_PRIORITY_STEP,
            },
            "status": {"conditions": [available]},
        }
