"""The paths of OpenAPI documents: the operations of each served resource."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from simcluster.kinds.resources import Resource

Json = dict[str, Any]

_JSON = "application/json"
_WRITTEN = ("dryRun", "fieldManager", "fieldValidation")
_LISTED = (
    "allowWatchBookmarks", "continue", "fieldSelector", "labelSelector", "limit",
    "resourceVersion", "resourceVersionMatch", "sendInitialEvents", "timeoutSeconds", "watch",
)  # fmt: skip
_DELETED = ("dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy")
_NUMBERS = frozenset(("limit", "timeoutSeconds", "gracePeriodSeconds"))
_FLAGS = frozenset(
    ("allowWatchBookmarks", "sendInitialEvents", "watch", "orphanDependents", "force")
)
_PATCHES = (
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
)


def paths_of(
    resources: Iterable[Resource], names: Mapping[Resource, str]
) -> Iterator[tuple[str, Json]]:
    """Every path of some resources, with its operations.

    Args:
        resources: of one document.
        names: of their schemas.
    """
    for resource in sorted(resources, key=lambda found: found.plural):
        root = f"/apis/{resource.api_version}" if resource.group else "/api/v1"
        scope = "/namespaces/{namespace}" if resource.namespaced else ""
        collection = f"{root}{scope}/{resource.plural}"
        schema = {"$ref": f"#/components/schemas/{names[resource]}"}
        listed = {"$ref": schema["$ref"].removesuffix(resource.kind) + _list_kind(resource)}
        on_all = {
            "get": _operation(resource, "list", listed, _LISTED),
            "post": _operation(resource, "post", schema, _WRITTEN),
            "delete": _operation(resource, "deletecollection", schema, _DELETED),
        }
        yield collection, _item(resource, on_all)
        if resource.namespaced:
            everywhere = {"get": _operation(resource, "list", listed, _LISTED)}
            yield f"{root}/{resource.plural}", _item(resource, everywhere)
        yield f"{collection}/{{name}}", _item(resource, _on_one(resource, schema))
        if "status" in resource.subresources:
            on_status = _on_one(resource, schema)
            del on_status["delete"]
            yield f"{collection}/{{name}}/status", _item(resource, on_status)


def _list_kind(resource: Resource) -> str:
    return resource.list_kind or f"{resource.kind}List"


_VERBS = {
    "list": "list",
    "post": "create",
    "deletecollection": "deletecollection",
    "get": "get",
    "put": "update",
    "patch": "patch",
    "delete": "delete",
}


def _item(resource: Resource, operations: Json) -> Json:
    return {
        method: operation
        for method, operation in operations.items()
        if _VERBS[operation["x-kubernetes-action"]] in resource.verbs
    }


def _on_one(resource: Resource, schema: Json) -> Json:
    patch = _operation(resource, "patch", schema, (*_WRITTEN, "force"))
    patches = [kind for kind in _PATCHES if not (resource.custom and "strategic" in kind)]
    patch["requestBody"] = {"content": {kind: {"schema": {"type": "object"}} for kind in patches}}
    return {
        "get": _operation(resource, "get", schema, ()),
        "put": _operation(resource, "put", schema, _WRITTEN),
        "patch": patch,
        "delete": _operation(resource, "delete", schema, _DELETED),
    }


def _operation(resource: Resource, action: str, schema: Json, options: Iterable[str]) -> Json:
    scope = "Namespaced" if resource.namespaced else ""
    operation: Json = {
        "operationId": f"{action}{resource.version.capitalize()}{scope}{resource.kind}",
        "parameters": [_parameter(name) for name in ("pretty", *options)],
        "responses": {"200": {"description": "OK", "content": {_JSON: {"schema": schema}}}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": {
            "group": resource.group,
            "kind": resource.kind,
            "version": resource.version,
        },
    }
    if action in {"post", "put"}:
        operation["requestBody"] = {"content": {"*/*": {"schema": schema}}, "required": True}
    return operation


def _parameter(name: str) -> Json:
    kind = "integer" if name in _NUMBERS else "boolean" if name in _FLAGS else "string"
    return {"name": name, "in": "query", "schema": {"type": kind, "uniqueItems": True}}
