"""Discovery documents: which groups, versions and kinds are served, and how to check their fields.

The OpenAPI documents only say that every kind takes ``fieldValidation``; kubectl asks for that
before it leaves validation to the server.
"""

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from scheduler.cluster.resources import RESOURCES, Resource

Json = dict[str, Any]

VERSION: Json = {
    "major": "1",
    "minor": "36",
    "gitVersion": "v1.36.0+stowage",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "2026-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "linux/amd64",
}
_REVIEWS = (
    ("authentication.k8s.io", "TokenReview", "tokenreviews"),
    ("authentication.k8s.io", "SelfSubjectReview", "selfsubjectreviews"),
    ("authorization.k8s.io", "SubjectAccessReview", "subjectaccessreviews"),
    ("authorization.k8s.io", "SelfSubjectAccessReview", "selfsubjectaccessreviews"),
    ("authorization.k8s.io", "SelfSubjectRulesReview", "selfsubjectrulesreviews"),
)
_SUBRESOURCE_KINDS = {
    "binding": ("", "v1", "Binding", ["create"]),
    "eviction": ("policy", "v1", "Eviction", ["create"]),
    "scale": ("autoscaling", "v1", "Scale", ["get", "patch", "update"]),
    "token": ("authentication.k8s.io", "v1", "TokenRequest", ["create"]),
    "log": ("", "", "", ["get"]),
    "finalize": ("", "", "", ["update"]),
}


@cache
def group_versions() -> tuple[tuple[str, str], ...]:
    """Every served (group, version), the core group first."""
    served = dict.fromkeys((resource.group, resource.version) for resource in RESOURCES)
    served.update(dict.fromkeys((group, "v1") for group, _, _ in _REVIEWS))
    return tuple(served)


def _joined(group: str, version: str) -> str:
    return f"{group}/{version}" if group else version


def api_versions() -> Json:
    """``GET /api``."""
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": ""}],
    }


def api_group_list() -> Json:
    """``GET /apis``."""
    groups = [_described_group(group) for group, _ in group_versions() if group]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def api_group(group: str) -> Json | None:
    """``GET /apis/{group}``; ``None`` if it is not served."""
    if not any(name == group for name, _ in group_versions()):
        return None
    return {"kind": "APIGroup", "apiVersion": "v1", **_described_group(group)}


def _described_group(group: str) -> Json:
    versions = [
        {"groupVersion": _joined(group, version), "version": version}
        for name, version in group_versions()
        if name == group
    ]
    return {"name": group, "versions": versions, "preferredVersion": versions[0]}


def api_resource_list(group: str, version: str) -> Json | None:
    """``GET /api/v1`` or ``GET /apis/{group}/{version}``; ``None`` if it is not served."""
    if (group, version) not in group_versions():
        return None
    listed: list[Json] = []
    for resource in _resources_of(group, version):
        listed.append(_described(resource))
        listed += _described_subresources(resource)
    listed += _described_reviews(group)
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": _joined(group, version),
        "resources": listed,
    }


def _resources_of(group: str, version: str) -> Iterator[Resource]:
    return (found for found in RESOURCES if (found.group, found.version) == (group, version))


def _described(resource: Resource) -> Json:
    described: Json = {
        "name": resource.plural,
        "singularName": resource.kind.lower(),
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        described["shortNames"] = list(resource.short_names)
    if resource.categories:
        described["categories"] = list(resource.categories)
    return described


def _described_subresources(resource: Resource) -> Iterator[Json]:
    for subresource in resource.subresources:
        group, version, kind, verbs = _SUBRESOURCE_KINDS.get(
            subresource, ("", "", "", ["get", "patch", "update"])
        )
        described: Json = {
            "name": f"{resource.plural}/{subresource}",
            "singularName": "",
            "namespaced": resource.namespaced,
            "kind": kind or resource.kind,
            "verbs": list(verbs),
        }
        if group:
            described |= {"group": group, "version": version}
        yield described


def _described_reviews(group: str) -> Iterator[Json]:
    for review_group, kind, plural in _REVIEWS:
        if review_group == group:
            yield {
                "name": plural,
                "singularName": kind.lower(),
                "namespaced": False,
                "kind": kind,
                "verbs": ["create"],
            }
    if not group:
        yield {
            "name": "bindings",
            "singularName": "binding",
            "namespaced": True,
            "kind": "Binding",
            "verbs": ["create"],
        }


def openapi_index() -> Json:
    """``GET /openapi/v3``."""
    paths = {}
    for group, version in group_versions():
        key = f"apis/{group}/{version}" if group else f"api/{version}"
        paths[key] = {"serverRelativeURL": f"/openapi/v3/{key}?hash=stowage"}
    return {"paths": paths}


def openapi_document(group: str, version: str) -> Json | None:
    """``GET /openapi/v3/apis/{group}/{version}``; ``None`` if it is not served."""
    if (group, version) not in group_versions():
        return None
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": VERSION["gitVersion"]},
        "paths": dict(_openapi_paths(_resources_of(group, version))),
    }


def _openapi_paths(resources: Iterable[Resource]) -> Iterator[tuple[str, Json]]:
    for resource in resources:
        root = f"/apis/{resource.api_version}" if resource.group else "/api/v1"
        scope = "/namespaces/{namespace}" if resource.namespaced else ""
        operation: Json = {
            "parameters": [
                {"name": "fieldValidation", "in": "query", "schema": {"type": "string"}},
                {"name": "dryRun", "in": "query", "schema": {"type": "string"}},
            ],
            "responses": {"200": {"description": "OK"}},
            "x-kubernetes-group-version-kind": {
                "group": resource.group,
                "version": resource.version,
                "kind": resource.kind,
            },
        }
        collection = f"{root}{scope}/{resource.plural}"
        yield collection, {"post": {**operation, "x-kubernetes-action": "post"}}
        yield f"{collection}/{{name}}", {"patch": {**operation, "x-kubernetes-action": "patch"}}
