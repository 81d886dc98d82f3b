"""Validation of single schemas in a definition: what a structural schema must and must not have."""

from collections.abc import Iterator
from typing import Any

from simcluster.apiserver.errors import (
    FieldError,
    forbidden_field,
    invalid_value,
    required,
    unsupported_value,
)
from simcluster.crds.schema import check

Json = dict[str, Any]

_LIST_TYPE, _MAP_TYPE = "x-kubernetes-list-type", "x-kubernetes-map-type"
_LIST_KEYS = "x-kubernetes-list-map-keys"
_KEEPS_UNKNOWN = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED = "x-kubernetes-embedded-resource"
_MAP_TYPES = ("atomic", "granular")


def structure_errors(schema: Json, field: str) -> Iterator[FieldError]:
    """Errors of a schema without those below it."""
    if schema.get("$ref"):
        yield forbidden_field(f"{field}.$ref", "$ref is not supported")
    if schema.get("uniqueItems"):
        why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield forbidden_field(f"{field}.uniqueItems", why)
    if schema.get("properties") and schema.get("additionalProperties"):
        why = "additionalProperties and properties are mutual exclusive"
        yield forbidden_field(f"{field}.additionalProperties", why)
    yield from _extension_errors(schema, field)
    yield from _list_errors(schema, field)
    if schema.get("default") is not None:
        for error in check(schema["default"], schema):
            place = "" if error.field in {"", "<nil>"} else f".{error.field}"
            yield error._replace(field=f"{field}.default{place}")


def _extension_errors(schema: Json, field: str) -> Iterator[FieldError]:
    keeps_unknown, map_type = schema.get(_KEEPS_UNKNOWN), schema.get(_MAP_TYPE)
    if keeps_unknown is False:
        yield invalid_value(f"{field}.{_KEEPS_UNKNOWN}", False, "must be true or undefined")
    if schema.get(_EMBEDDED) and not keeps_unknown and not schema.get("properties"):
        yield required(
            f"{field}.properties",
            f"must not be empty if {_EMBEDDED} is true without {_KEEPS_UNKNOWN}",
        )
    if map_type is not None and map_type not in _MAP_TYPES:
        yield unsupported_value(f"{field}.{_MAP_TYPE}", map_type, _MAP_TYPES)


def _list_errors(schema: Json, field: str) -> Iterator[FieldError]:
    list_type = schema.get(_LIST_TYPE)
    if list_type and schema.get("type") != "array":
        why = f"must be array if {_LIST_TYPE} is specified"
        yield invalid_value(f"{field}.type", schema.get("type"), why)
    if list_type != "map":
        return
    keys, items = schema.get(_LIST_KEYS), schema.get("items") or {}
    if not keys:
        yield required(f"{field}.{_LIST_KEYS}", f"must not be empty if {_LIST_TYPE} is map")
        return
    properties = items.get("properties") or {}
    if not set(keys) <= properties.keys():
        why = "entries must all be names of item properties"
        yield invalid_value(f"{field}.{_LIST_KEYS}", keys, why)
        return
    for key in keys:
        if key not in (items.get("required") or ()) and "default" not in properties[key]:
            yield required(
                f"{field}.items.properties[{key}].default",
                f"this property is in {_LIST_KEYS}, so it must have a default or be a required "
                "property",
            )
