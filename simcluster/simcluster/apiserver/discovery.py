"""Discovery documents: the served groups, versions and kinds, plain and aggregated."""

import base64
import hashlib
from typing import Any, NamedTuple

from simcluster.apiserver.paths import REVIEWS
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


class _Subresource(NamedTuple):
    """The kind a subresource takes and answers; empty where it is the object's own."""

    verbs: tuple[str, ...]
    kind: str = ""
    group: str = ""
    version: str = ""


_OWN_KIND = _Subresource(("get", "patch", "update"))
_SUBRESOURCES = {
    "attach": _Subresource(("create", "get"), "PodAttachOptions"),
    "binding": _Subresource(("create",), "Binding"),
    "eviction": _Subresource(("create",), "Eviction", "policy", "v1"),
    "exec": _Subresource(("create", "get"), "PodExecOptions"),
    "finalize": _Subresource(("update",)),
    "log": _Subresource(("get",)),
    "portforward": _Subresource(("create", "get"), "PodPortForwardOptions"),
    "scale": _Subresource(("get", "patch", "update"), "Scale", "autoscaling", "v1"),
    "token": _Subresource(("create",), "TokenRequest", "authentication.k8s.io", "v1"),
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
    served = {found.plural: found for found in _resources_of(catalog, group, version)}
    listed = []
    for described in _aggregated_version(catalog, group, version)["resources"]:
        listed.append(_listed(described, served.get(described["resource"])))
        listed += [_listed_subresource(described, each) for each in _below(described)]
    listed.sort(key=lambda found: found["name"].partition("/")[0])
    document = {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": _joined(group, version),
        "resources": listed,
    }
    if not group:
        del document["apiVersion"]
    return document


def _listed(described: Json, resource: Resource | None) -> Json:
    """A resource of an ``APIResourceList``, from its aggregated form."""
    listed = {
        "name": described["resource"],
        "singularName": described["singularResource"],
        "namespaced": described["scope"] == "Namespaced",
        "kind": described["responseKind"]["kind"],
        "verbs": described["verbs"],
    }
    listed |= {key: described[key] for key in ("shortNames", "categories") if key in described}
    if resource is not None and "create" in resource.verbs:
        listed["storageVersionHash"] = storage_version_hash(resource)
    return listed


def _below(described: Json) -> list[Json]:
    found: list[Json] = described.get("subresources") or []
    return found


def _listed_subresource(described: Json, subresource: Json) -> Json:
    name, kind = subresource["subresource"], subresource["responseKind"]
    listed = {
        "name": f"{described['resource']}/{name}",
        "singularName": "",
        "namespaced": described["scope"] == "Namespaced",
    }
    if _subresource(name, "").group:
        listed |= {"group": kind["group"], "version": kind["version"]}
    return {**listed, "kind": kind["kind"], "verbs": subresource["verbs"]}


def storage_version_hash(resource: Resource) -> str:
    """Eight bytes of the SHA-256 of ``group/version/kind`` as stored, in base64."""
    own = f"{resource.group}/{resource.version}/{resource.kind}"
    digest = hashlib.sha256((resource.storage_version or own).encode()).digest()
    return base64.b64encode(digest[:8]).decode()


def _subresource(name: str, kind: str) -> _Subresource:
    if name == "proxy":
        verbs = ("create", "delete", "get", "patch", "update")
        return _Subresource(verbs, f"{kind}ProxyOptions")
    return _SUBRESOURCES.get(name, _OWN_KIND)


def _resources_of(catalog: Catalog, group: str, version: str) -> list[Resource]:
    return [each for each in catalog if (each.group, each.version) == (group, version)]


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
    found = [
        _described(plural, kind, is_namespaced, ("create",), _kind(kind))
        for (review_group, plural), (kind, is_namespaced) in REVIEWS.items()
        if (review_group, "v1") == (group, version)
    ]
    found += [_aggregated_resource(each) for each in _resources_of(catalog, group, version)]
    found.sort(key=lambda resource: resource["resource"])
    return {"version": version, "resources": found, "freshness": "Current"}


def _described(
    plural: str, kind: str, is_namespaced: bool, verbs: tuple[str, ...], response_kind: Json
) -> Json:
    return {
        "resource": plural,
        "responseKind": response_kind,
        "scope": "Namespaced" if is_namespaced else "Cluster",
        "singularResource": kind.lower(),
        "verbs": list(verbs),
    }


def _kind(kind: str, group: str = "", version: str = "") -> Json:
    return {"group": group, "version": version, "kind": kind}


def _aggregated_resource(resource: Resource) -> Json:
    # The API server leaves out the group and version of its built-in kinds.
    own = (resource.group, resource.version) if resource.custom else ()
    verbs = _CUSTOM_VERBS if resource.custom else resource.verbs
    described = _described(
        resource.plural, resource.kind, resource.namespaced, verbs, _kind(resource.kind, *own)
    )
    if resource.singular:
        described["singularResource"] = resource.singular
    if resource.short_names:
        described["shortNames"] = list(resource.short_names)
    if resource.categories:
        described["categories"] = list(resource.categories)
    if below := [_below_resource(resource, name, own) for name in _in_order(resource)]:
        described["subresources"] = below
    return described


def _in_order(resource: Resource) -> tuple[str, ...]:
    """The subresources as discovery lists them; of a custom resource, the status comes first."""
    below = resource.subresources
    return below if resource.custom else tuple(sorted(below))


def _below_resource(resource: Resource, name: str, own: tuple[str, ...]) -> Json:
    verbs, kind, group, version = _subresource(name, resource.kind)
    response_kind = _kind(kind, group, version) if kind else _kind(resource.kind, *own)
    return {"subresource": name, "responseKind": response_kind, "verbs": list(verbs)}
