"""Builds OpenAPI documents of the served kinds, for ``kubectl explain`` and ``apply``."""

import hashlib
from collections.abc import Iterable
from functools import cache
from typing import Any

from simcluster.apiserver.discovery import VERSION
from simcluster.kinds.catalog import BUILT_IN, Catalog
from simcluster.kinds.resources import Resource
from simcluster.openapi.extensions import extend
from simcluster.openapi.model_schemas import (
    INT_OR_STRING,
    MICRO_TIME,
    QUANTITY,
    TIME,
    has_model,
    model,
)
from simcluster.openapi.paths import paths_of
from simcluster.store.store import encode

Json = dict[str, Any]

_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_SCALARS: dict[str, tuple[str, Json]] = {
    QUANTITY: (
        "io.k8s.apimachinery.pkg.api.resource.Quantity",
        {
            "description": "An amount with a unit, such as 500m, 1.5 or 2Gi.",
            "oneOf": [{"type": "string"}, {"type": "number"}],
        },
    ),
    INT_OR_STRING: (
        "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
        {
            "description": "IntOrString is a type that can hold an int32 or a string.  When used "
            "in JSON or YAML marshalling and unmarshalling, it produces or consumes the inner "
            "type.  This allows you to have, for example, a JSON field that can accept a name or "
            "number.",
            "format": "int-or-string",
            "oneOf": [{"type": "integer"}, {"type": "string"}],
        },
    ),
    TIME: (
        f"{_META}Time",
        {
            "description": "Time is a wrapper around time.Time which supports correct marshaling "
            "to YAML and JSON.  Wrappers are provided for many of the factory methods that the "
            "time package offers.",
            "type": "string",
            "format": "date-time",
        },
    ),
    MICRO_TIME: (
        f"{_META}MicroTime",
        {
            "description": "MicroTime is version of Time with microsecond level precision.",
            "type": "string",
            "format": "date-time",
        },
    ),
}
_OF_META = frozenset(
    [
        "Condition",
        "DeleteOptions",
        "LabelSelector",
        "LabelSelectorRequirement",
        "ListMeta",
        "ManagedFieldsEntry",
        "ObjectMeta",
        "OwnerReference",
        "Preconditions",
        "Status",
        "StatusCause",
        "StatusDetails",
    ]
)
_PREFIXES = (
    "CoreV1", "EventsV1", "ResourceV1", "RbacV1", "StorageV1", "DiscoveryV1", "ApiextensionsV1",
    "AuthenticationV1", "AdmissionregistrationV1", "ApiregistrationV1", "FlowcontrolV1",
    "V1", "V2",
)  # fmt: skip
_OWN_NAMES = {
    ("", "Event"): "CoreV1Event",
    ("events.k8s.io", "Event"): "EventsV1Event",
    ("resource.k8s.io", "ResourceClaim"): "ResourceV1ResourceClaim",
}


def document(catalog: Catalog, group: str, version: str) -> Json | None:
    """``GET /openapi/v3/apis/{group}/{version}``; ``None`` if it is not served."""
    if (group, version) not in catalog.group_versions():
        return None
    served = [found for found in catalog if (found.group, found.version) == (group, version)]
    schemas, names = _schemas(served)
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": VERSION["gitVersion"]},
        "paths": dict(paths_of(served, names)),
        "components": {"schemas": schemas},
    }


def fingerprint(catalog: Catalog, group: str, version: str) -> str:
    """The hash in the URL of a document; it changes with the served kinds."""
    served = [found for found in catalog if (found.group, found.version) == (group, version)]
    content = [
        [VERSION["gitVersion"], found.plural, found.custom.schema if found.custom else None]
        for found in served
    ]
    return hashlib.sha512(encode(content)).hexdigest().upper()


def swagger(catalog: Catalog) -> Json:
    """``GET /openapi/v2``: every kind in one document."""
    schemas, names = _schemas(list(catalog))
    return {
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": VERSION["gitVersion"]},
        "paths": {path: _without_bodies(item) for path, item in paths_of(catalog, names)},
        "definitions": {name: _in_v2(schema) for name, schema in schemas.items()},
    }


def _without_bodies(item: Json) -> Json:
    kept = ("operationId", "x-kubernetes-action", "x-kubernetes-group-version-kind")
    return {
        method: {
            **{key: value for key, value in operation.items() if key in kept},
            "responses": {"200": {"description": "OK"}},
        }
        for method, operation in item.items()
        if isinstance(operation, dict)
    }


def _in_v2(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_in_v2(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "allOf" in schema and len(schema["allOf"]) == 1 and "$ref" in schema["allOf"][0]:
        rest = {key: value for key, value in schema.items() if key != "allOf"}
        return {**rest, **_in_v2(schema["allOf"][0])}
    if "oneOf" in schema and schema.get("description"):
        rest = {key: value for key, value in schema.items() if key != "oneOf"}
        return {**rest, "type": "string"}
    result = {key: _in_v2(value) for key, value in schema.items()}
    if isinstance(result.get("$ref"), str):
        result["$ref"] = result["$ref"].replace("#/components/schemas/", "#/definitions/")
    return result


def schema_name(resource: Resource) -> str:
    """The name of a kind's schema: ``io.k8s.api.core.v1.Pod``."""
    return f"{_package(resource.group, resource.version)}{resource.kind}"


def _package(group: str, version: str) -> str:
    if group == "apiextensions.k8s.io":
        return f"io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.{version}."
    if group == "apiregistration.k8s.io":
        return f"io.k8s.kube-aggregator.pkg.apis.apiregistration.{version}."
    first, _, rest = group.partition(".")
    if not group or not rest or rest.endswith("k8s.io"):
        return f"io.k8s.api.{first or 'core'}.{version}."
    return ".".join((*reversed(group.split(".")), version, ""))


def _schemas(served: Iterable[Resource]) -> tuple[Json, dict[Resource, str]]:
    """All schemas that the kinds need, by name, and the name of each kind's schema."""
    schemas: Json = {}
    names: dict[Resource, str] = {}
    core = _core_models()
    for resource in served:
        names[resource] = schema_name(resource)
        if resource.custom is not None:
            schemas[names[resource]] = _custom_schema(resource, resource.custom.schema)
            _add_models(["V1ObjectMeta"], "", schemas, core)
        elif has_model(root := model_name(resource)):
            package = _package(resource.group, resource.version)
            _add_models([root], package, schemas, core)
            schemas[names[resource]]["x-kubernetes-group-version-kind"] = [_gvk(resource)]
        else:
            schemas[names[resource]] = {
                "type": "object",
                "x-kubernetes-group-version-kind": [_gvk(resource)],
            }
        schemas[_list_name(resource, names[resource])] = _list_schema(resource, names[resource])
    _add_models(["V1ListMeta", "V1Status", "V1DeleteOptions"], "", schemas, core)
    return schemas, names


def _list_name(resource: Resource, name: str) -> str:
    return name.removesuffix(resource.kind) + (resource.list_kind or f"{resource.kind}List")


def _list_schema(resource: Resource, name: str) -> Json:
    gvk = {**_gvk(resource), "kind": resource.list_kind or f"{resource.kind}List"}
    return {
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"allOf": [{"$ref": f"#/components/schemas/{_META}ListMeta"}]},
            "items": {"type": "array", "items": {"$ref": f"#/components/schemas/{name}"}},
        },
        "x-kubernetes-group-version-kind": [gvk],
    }


def _gvk(resource: Resource) -> Json:
    return {"group": resource.group, "kind": resource.kind, "version": resource.version}


def model_name(resource: Resource) -> str:
    """The client model of a built-in kind."""
    own = _OWN_NAMES.get((resource.group, resource.kind))
    return own or f"{resource.version.upper()}{resource.kind}"


def _add_models(roots: Iterable[str], package: str, schemas: Json, core: frozenset[str]) -> None:
    waiting = list(roots)
    while waiting:
        found = waiting.pop()
        name = _definition_name(found, package, core)
        if name in schemas:
            continue
        if found in _SCALARS:
            schemas[name] = dict(_SCALARS[found][1])
            continue
        described = model(found)
        schemas[name] = _resolved(extend(found, described.schema), package, core)
        waiting += sorted(described.references)


def _definition_name(found: str, package: str, core: frozenset[str]) -> str:
    if found in _SCALARS:
        return _SCALARS[found][0]
    prefix = next(prefix for prefix in _PREFIXES if found.startswith(prefix))
    kind = found.removeprefix(prefix)
    if kind in _OF_META:
        return f"{_META}{kind}"
    return f"{'io.k8s.api.core.v1.' if found in core or not package else package}{kind}"


def _resolved(schema: Any, package: str, core: frozenset[str]) -> Any:
    """A schema with full names in its references."""
    if isinstance(schema, list):
        return [_resolved(item, package, core) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if isinstance(schema.get("$ref"), str):
        name = _definition_name(schema["$ref"], package, core)
        return {"$ref": f"#/components/schemas/{name}"}
    return {key: _resolved(value, package, core) for key, value in schema.items()}


@cache
def _core_models() -> frozenset[str]:
    """The models that kinds of the core group consist of."""
    seen: set[str] = set()
    waiting = [model_name(found) for found in BUILT_IN if not found.group]
    while waiting:
        found = waiting.pop()
        if found in seen or found in _SCALARS or not has_model(found):
            continue
        seen.add(found)
        waiting += model(found).references
    return frozenset(seen)


def _custom_schema(resource: Resource, written: Json) -> Json:
    properties: Json = {
        **(written.get("properties") or {}),
        "apiVersion": {
            "description": "The version of the schema this object is written in.",
            "type": "string",
        },
        "kind": {"description": "The kind of this object.", "type": "string"},
        "metadata": {"allOf": [{"$ref": f"#/components/schemas/{_META}ObjectMeta"}]},
    }
    return {
        **written,
        "properties": properties,
        "x-kubernetes-group-version-kind": [_gvk(resource)],
    }
