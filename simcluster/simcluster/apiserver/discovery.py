"""Discovery documents: which groups, versions and kinds are served, in both of their shapes."""

import base64
import hashlib
from collections.abc import Iterator
from typing import Any, NamedTuple

from simcluster.kinds.catalog import Catalog
from simcluster.kinds.resources import Resource

Json = dict[str, Any]

VERSION: Json = {
    "major": "1",
    "minor": "36",
    "emulationMajor": "1",
    "emulationMinor": "36",
    "minCompatibilityMajor": "1",
    "minCompatibilityMinor": "35",
    "gitVersion": "v1.36.0+stowage",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "2026-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "linux/amd64",
}
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_CUSTOM_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")


class _Review(NamedTuple):
    group: str
    kind: str
    plural: str
    namespaced: bool = False


_REVIEWS = (
    _Review("", "Binding", "bindings", True),
    _Review("authentication.k8s.io", "SelfSubjectReview", "selfsubjectreviews"),
    _Review("authentication.k8s.io", "TokenReview", "tokenreviews"),
    _Review("authorization.k8s.io", "LocalSubjectAccessReview", "localsubjectaccessreviews", True),
    _Review("authorization.k8s.io", "SelfSubjectAccessReview", "selfsubjectaccessreviews"),
    _Review("authorization.k8s.io", "SelfSubjectRulesReview", "selfsubjectrulesreviews"),
    _Review("authorization.k8s.io", "SubjectAccessReview", "subjectaccessreviews"),
)


class _Subresource(NamedTuple):
    """The kind a subresource takes and answers; empty where it is the object's own."""

    group: str
    version: str
    kind: str
    verbs: tuple[str, ...]


_PROXIED = ("create", "delete", "get", "patch", "update")
_OWN_KIND = _Subresource("", "", "", ("get", "patch", "update"))
_SUBRESOURCES = {
    "attach": _Subresource("", "", "PodAttachOptions", ("create", "get")),
    "binding": _Subresource("", "", "Binding", ("create",)),
    "ephemeralcontainers": _OWN_KIND,
    "eviction": _Subresource("policy", "v1", "Eviction", ("create",)),
    "exec": _Subresource("", "", "PodExecOptions", ("create", "get")),
    "finalize": _Subresource("", "", "", ("update",)),
    "log": _Subresource("", "", "", ("get",)),
    "portforward": _Subresource("", "", "PodPortForwardOptions", ("create", "get")),
    "scale": _Subresource("autoscaling", "v1", "Scale", ("get", "patch", "update")),
    "token": _Subresource("authentication.k8s.io", "v1", "TokenRequest", ("create",)),
}


def _joined(group: str, version: str) -> str:
    return f"{group}/{version}" if group else version


def api_versions(address: str) -> Json:
    """``GET /api``; ``address`` is the server's ``host:port``."""
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    }


def api_group_list(catalog: Catalog) -> Json:
    """``GET /apis``."""
    groups = dict.fromkeys(group for group, _ in catalog.group_versions() if group)
    described = [_described_group(catalog, group) for group in groups]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": described}


def api_group(catalog: Catalog, group: str) -> Json | None:
    """``GET /apis/{group}``; ``None`` if it is not served."""
    if not any(name == group for name, _ in catalog.group_versions()):
        return None
    return {"kind": "APIGroup", "apiVersion": "v1", **_described_group(catalog, group)}


def _described_group(catalog: Catalog, group: str) -> Json:
    versions = [
        {"groupVersion": _joined(group, version), "version": version}
        for name, version in catalog.group_versions()
        if name == group
    ]
    return {"name": group, "versions": versions, "preferredVersion": versions[0]}


def api_resource_list(catalog: Catalog, group: str, version: str) -> Json | None:
    """``GET /api/v1`` or ``GET /apis/{group}/{version}``; ``None`` if it is not served."""
    if (group, version) not in catalog.group_versions():
        return None
    listed = [_described_review(found) for found in _reviews_of(group, version)]
    for resource in _resources_of(catalog, group, version):
        listed.append(_described(resource))
        listed += _described_subresources(resource)
    document = {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": _joined(group, version),
        "resources": sorted(listed, key=lambda found: found["name"].split("/")),
    }
    if not group:
        del document["apiVersion"]
    return document


def _reviews_of(group: str, version: str) -> list[_Review]:
    return [found for found in _REVIEWS if (found.group, "v1") == (group, version)]


def _resources_of(catalog: Catalog, group: str, version: str) -> list[Resource]:
    found = [each for each in catalog if (each.group, each.version) == (group, version)]
    return sorted(found, key=lambda resource: resource.plural)


def _verbs(resource: Resource) -> list[str]:
    return list(_CUSTOM_VERBS if resource.custom else resource.verbs)


def _described_review(review: _Review) -> Json:
    return {
        "name": review.plural,
        "singularName": review.kind.lower(),
        "namespaced": review.namespaced,
        "kind": review.kind,
        "verbs": ["create"],
    }


def _described(resource: Resource) -> Json:
    described: Json = {
        "name": resource.plural,
        "singularName": resource.singular or resource.kind.lower(),
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": _verbs(resource),
    }
    if resource.short_names:
        described["shortNames"] = list(resource.short_names)
    if resource.categories:
        described["categories"] = list(resource.categories)
    if "create" in resource.verbs:
        described["storageVersionHash"] = storage_version_hash(resource)
    return described


def storage_version_hash(resource: Resource) -> str:
    """Eight bytes of the SHA-256 of ``group/version/kind`` as stored, in base64."""
    own = f"{resource.group}/{resource.version}/{resource.kind}"
    digest = hashlib.sha256((resource.storage_version or own).encode()).digest()
    return base64.b64encode(digest[:8]).decode()


def _subresource(resource: Resource, name: str) -> _Subresource:
    if name == "proxy":
        return _Subresource("", "", f"{resource.kind}ProxyOptions", _PROXIED)
    return _SUBRESOURCES.get(name, _OWN_KIND)


def _described_subresources(resource: Resource) -> Iterator[Json]:
    for name in resource.subresources:
        group, version, kind, verbs = _subresource(resource, name)
        described: Json = {
            "name": f"{resource.plural}/{name}",
            "singularName": "",
            "namespaced": resource.namespaced,
        }
        if group:
            described |= {"group": group, "version": version}
        yield {**described, "kind": kind or resource.kind, "verbs": list(verbs)}


def aggregated(catalog: Catalog, *, core: bool) -> Json:
    """``GET /api`` or ``GET /apis`` as one ``APIGroupDiscoveryList``."""
    groups: dict[str, list[str]] = {}
    for group, version in catalog.group_versions():
        if (group == "") is core:
            groups.setdefault(group, []).append(version)
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": [
            {
                "metadata": {"name": group} if group else {},
                "versions": [_aggregated_version(catalog, group, version) for version in versions],
            }
            for group, versions in groups.items()
        ],
    }


def _aggregated_version(catalog: Catalog, group: str, version: str) -> Json:
    found = [_aggregated_review(review) for review in _reviews_of(group, version)]
    found += [_aggregated_resource(each) for each in _resources_of(catalog, group, version)]
    found.sort(key=lambda resource: resource["resource"])
    return {"version": version, "resources": found, "freshness": "Current"}


def _scope(namespaced: bool) -> str:
    return "Namespaced" if namespaced else "Cluster"


def _aggregated_review(review: _Review) -> Json:
    return {
        "resource": review.plural,
        "responseKind": {"group": "", "version": "", "kind": review.kind},
        "scope": _scope(review.namespaced),
        "singularResource": review.kind.lower(),
        "verbs": ["create"],
    }


def _response_kind(resource: Resource, subresource: _Subresource = _OWN_KIND) -> Json:
    group, version, kind, _ = subresource
    if not kind and resource.custom:
        group, version = resource.group, resource.version
    return {"group": group, "version": version, "kind": kind or resource.kind}


def _aggregated_resource(resource: Resource) -> Json:
    described: Json = {
        "resource": resource.plural,
        "responseKind": _response_kind(resource),
        "scope": _scope(resource.namespaced),
        "singularResource": resource.singular or resource.kind.lower(),
        "verbs": _verbs(resource),
    }
    if resource.short_names:
        described["shortNames"] = list(resource.short_names)
    if resource.categories:
        described["categories"] = list(resource.categories)
    below = [
        {
            "subresource": name,
            "responseKind": _response_kind(resource, _subresource(resource, name)),
            "verbs": list(_subresource(resource, name).verbs),
        }
        for name in sorted(resource.subresources)
    ]
    if below:
        described["subresources"] = below
    return described
