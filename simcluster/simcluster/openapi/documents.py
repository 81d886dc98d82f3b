"""Builds OpenAPI documents of the served kinds, for ``kubectl explain`` and ``apply``."""

import hashlib
from collections.abc import Iterable
from typing import Any

from simcluster.apiserver.discovery import VERSION
from simcluster.kinds.catalog import Catalog
from simcluster.kinds.resources import Resource
from simcluster.openapi.paths import paths_of
from simcluster.openapi.schemas import META, Schemas, package_of
from simcluster.schema import type_of_kind
from simcluster.store.store import encode

Json = dict[str, Any]


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
    return f"{package_of(resource.group, resource.version)}{resource.kind}"


def _schemas(served: Iterable[Resource]) -> tuple[Json, dict[Resource, str]]:
    """All schemas that the kinds need, by name, and the name of each kind's schema."""
    schemas = Schemas()
    names: dict[Resource, str] = {}
    for resource in served:
        name = names[resource] = schema_name(resource)
        struct = None if resource.custom else type_of_kind(resource.group, resource.kind)
        if resource.custom is not None:
            schemas.found[name] = _custom_schema(resource.custom.schema)
            schemas.add("ObjectMeta")
        elif struct is not None:
            schemas.add_struct(struct, package_of(resource.group, resource.version))
        gvk = [_gvk(resource)]
        schemas.found[name] = {**schemas.found[name], "x-kubernetes-group-version-kind": gvk}
        schemas.found[_list_name(resource, name)] = _list_schema(resource, name)
    for name in ("ListMeta", "Status", "DeleteOptions"):
        schemas.add(name)
    return schemas.found, names


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
            "metadata": {"allOf": [{"$ref": f"#/components/schemas/{META}ListMeta"}]},
            "items": {"type": "array", "items": {"$ref": f"#/components/schemas/{name}"}},
        },
        "x-kubernetes-group-version-kind": [gvk],
    }


def _gvk(resource: Resource) -> Json:
    return {"group": resource.group, "kind": resource.kind, "version": resource.version}


def _custom_schema(written: Json) -> Json:
    properties: Json = {
        **(written.get("properties") or {}),
        "apiVersion": {
            "description": "The version of the schema this object is written in.",
            "type": "string",
        },
        "kind": {"description": "The kind of this object.", "type": "string"},
        "metadata": {"allOf": [{"$ref": f"#/components/schemas/{META}ObjectMeta"}]},
    }
    return {**written, "properties": properties}
