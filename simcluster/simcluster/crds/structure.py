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
from simcluster.crds.schema import check, unknown_fields
from simcluster.crds.value_validation import value_errors

Json = dict[str, Any]

_LIST_TYPE, _MAP_TYPE = "x-kubernetes-list-type", "x-kubernetes-map-type"
_LIST_KEYS = "x-kubernetes-list-map-keys"
_KEEPS_UNKNOWN = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED = "x-kubernetes-embedded-resource"
_MAP_TYPES = ("atomic", "granular")
_LIST_TYPES = ("atomic", "set", "map")
_NAMES = {"name", "generateName"}
_UNSUPPORTED = ("$ref", "id", "definitions", "dependencies", "patternProperties", "additionalItems")


def structure_errors(schema: Json, field: str) -> Iterator[FieldError]:
    """Errors of a schema without those below it."""
    for key in _UNSUPPORTED:
        if schema.get(key):
            yield forbidden_field(f"{field}.{key}", f"{key} is not supported")
    yield from value_errors(schema, field)
    if schema.get("uniqueItems"):
        why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield forbidden_field(f"{field}.uniqueItems", why)
    if schema.get("properties") and schema.get("additionalProperties"):
        why = "additionalProperties and properties are mutual exclusive"
        yield forbidden_field(f"{field}.additionalProperties", why)
    yield from _extension_errors(schema, field)
    yield from _list_errors(schema, field)
    yield from _set_errors(schema, field)
    if schema.get("type") == "null":
        why = "type cannot be set to null, use nullable as an alternative"
        yield forbidden_field(f"{field}.type", why)
    if schema.get("default") is not None:
        if unknown_fields(schema["default"], schema):
            why = "must not have unknown fields"
            yield invalid_value(f"{field}.default", schema["default"], why)
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
    for key, value in ((_MAP_TYPE, map_type), (_EMBEDDED, schema.get(_EMBEDDED))):
        if value and schema.get("type") not in {None, "object"}:
            condition = f"{key} is specified" if key == _MAP_TYPE else f"{key} is true"
            why = f"must be object if {condition}"
            yield invalid_value(f"{field}.type", schema["type"], why)
    if map_type is not None and map_type not in _MAP_TYPES:
        yield unsupported_value(f"{field}.{_MAP_TYPE}", map_type, _MAP_TYPES)


def _list_errors(schema: Json, field: str) -> Iterator[FieldError]:
    list_type = schema.get(_LIST_TYPE)
    if list_type and schema.get("type") != "array":
        why = f"must be array if {_LIST_TYPE} is specified"
        yield invalid_value(f"{field}.type", schema.get("type"), why)
    if list_type is not None and list_type not in _LIST_TYPES:
        yield unsupported_value(f"{field}.{_LIST_TYPE}", list_type, _LIST_TYPES)
    if list_type == "map":
        yield from _map_errors(schema, field)
    elif schema.get(_LIST_KEYS):
        why = f"must be map if {_LIST_KEYS} is non-empty"
        place = f"{field}.{_LIST_TYPE}"
        yield invalid_value(place, list_type, why) if list_type else required(place, why)


def _set_errors(schema: Json, field: str) -> Iterator[FieldError]:
    items = schema.get("items")
    if schema.get(_LIST_TYPE) != "set" or not isinstance(items, dict):
        return
    why = f"must be atomic as item of a list with {_LIST_TYPE}=set"
    list_type, map_type = items.get(_LIST_TYPE), items.get(_MAP_TYPE)
    if items.get("type") == "array" and list_type not in {None, "atomic"}:
        yield invalid_value(f"{field}.items.{_LIST_TYPE}", list_type, why)
    if items.get("type") == "object" and map_type != "atomic":
        yield invalid_value(f"{field}.items.{_MAP_TYPE}", list_type, why)
    if items.get("nullable"):
        why = f"cannot be nullable when {_LIST_TYPE} is set"
        yield forbidden_field(f"{field}.items.nullable", why)


def _map_errors(schema: Json, field: str) -> Iterator[FieldError]:
    keys, items = schema.get(_LIST_KEYS), schema.get("items") or {}
    if not keys:
        yield required(f"{field}.{_LIST_KEYS}", f"must not be empty if {_LIST_TYPE} is map")
        return
    if items.get("type") != "object":
        why = f"must be object if parent array's {_LIST_TYPE} is map"
        yield invalid_value(f"{field}.items.type", items.get("type") or "", why)
        return
    properties = items.get("properties") or {}
    if not set(keys) <= properties.keys():
        why = "entries must all be names of item properties"
        yield invalid_value(f"{field}.{_LIST_KEYS}", keys, why)
        return
    if len(set(keys)) < len(keys):
        yield invalid_value(f"{field}.{_LIST_KEYS}", keys, "must not contain duplicate entries")
    for key in dict.fromkeys(keys):
        yield from _key_errors(items, key, field)


def _key_errors(items: Json, key: str, field: str) -> Iterator[FieldError]:
    """Errors of a property by which the items of a list are told apart."""
    schema, place = items["properties"][key], f"{field}.items.properties[{key}]"
    if schema.get("type") in {"array", "object"}:
        why = f"must be a scalar type if parent array's {_LIST_TYPE} is map"
        yield invalid_value(f"{place}.type", items["type"], why)
    if schema.get("nullable"):
        why = f"this property is in {_LIST_KEYS}, so it cannot be nullable"
        yield forbidden_field(f"{place}.nullable", why)
    if key not in (items.get("required") or ()) and "default" not in schema:
        yield required(
            f"{place}.default",
            f"this property is in {_LIST_KEYS}, so it must have a default or be a required "
            "property",
        )


def root_errors(schema: Json, field: str) -> Iterator[FieldError]:
    """Errors of the parts of a root that only a root must not have."""
    if schema.get("nullable"):
        yield forbidden_field(f"{field}.nullable", "nullable cannot be true at the root")
    if schema.get("additionalProperties"):
        yield forbidden_field(f"{field}.additionalProperties", "must not be used at the root")
    properties = schema.get("properties") or {}
    for name in ("apiVersion", "kind"):
        type_ = (properties.get(name) or {}).get("type", "string")
        if type_ != "string":
            yield invalid_value(f"{field}.properties[{name}].type", type_, "must be string")
    for name in ("apiVersion", "kind", "metadata"):
        place = f"{field}.properties[{name}]"
        yield from _default_errors(properties.get(name) or {}, place, name)
    if metadata := properties.get("metadata"):
        yield from _metadata_errors(metadata, f"{field}.properties[metadata]")


def _default_errors(schema: Json, field: str, name: str) -> Iterator[FieldError]:
    if schema.get("default") is not None:
        yield forbidden_field(f"{field}.default", f"must not be set in top-level {name}")
    for key, inner in (schema.get("properties") or {}).items():
        yield from _default_errors(inner, f"{field}.properties[{key}]", name)


def _metadata_errors(schema: Json, field: str) -> Iterator[FieldError]:
    if schema.get("type") != "object":
        yield invalid_value(f"{field}.type", schema.get("type") or "", "must be object")
    kept = schema.get("properties") or {}
    if schema.keys() - {"type", "description", "properties"} or kept.keys() - _NAMES:
        why = (
            "must not specify anything other than name and generateName, but metadata is implicitly"
            " specified"
        )
        yield forbidden_field(field, why)
