"""Types of custom resources for server-side apply, made from their schemas."""

from typing import Any

from simcluster.schema import DEDUCED, ListType, MapType, Scalar, Struct, Type, struct_of
from simcluster.schema.go_types import ATOMIC, ListMerge

Json = dict[str, Any]

_ANYTHING = Scalar("any")
_SCALARS = {"string": "string", "boolean": "bool", "integer": "int64", "number": "float"}


def object_type(schema: Json) -> Struct:
    """The type of a custom resource, made from its ``openAPIV3Schema``.

    In fields that a schema preserves without describing them, lists are single values, and objects
    are owned field by field.
    """
    found = _struct(schema, keeps_unknown=False)
    metadata = struct_of("ObjectMeta")
    if metadata is not None:
        found.fields["metadata"] = metadata
    return found


def _struct(schema: Json, *, keeps_unknown: bool) -> Struct:
    keeps = _keeps_unknown(schema, keeps_unknown)
    found = Struct("")
    found.is_atomic = schema.get("x-kubernetes-map-type") == "atomic"
    found.others = DEDUCED if keeps else None
    for key, inner in (schema.get("properties") or {}).items():
        found.fields[key] = _type(inner, keeps_unknown=keeps)
    return found


def _keeps_unknown(schema: Json, parent_keeps: bool) -> bool:
    """Whether unknown fields are preserved; fields inherit it from their parents."""
    return parent_keeps or bool(schema.get("x-kubernetes-preserve-unknown-fields"))


def _type(schema: Json, *, keeps_unknown: bool) -> Type:
    keeps = _keeps_unknown(schema, keeps_unknown)
    if schema.get("properties"):
        return _struct(schema, keeps_unknown=keeps)
    if schema.get("type") == "array":
        return ListType(_type(schema.get("items") or {}, keeps_unknown=keeps), _merge(schema))
    is_atomic = schema.get("x-kubernetes-map-type") == "atomic"
    others = schema.get("additionalProperties")
    if isinstance(others, dict):
        return MapType(_type(others, keeps_unknown=keeps), is_atomic)
    if others or keeps or schema.get("type") == "object":
        return _ANYTHING if is_atomic else DEDUCED
    return Scalar(_SCALARS.get(schema.get("type", ""), "any"))


def _merge(schema: Json) -> ListMerge:
    kind = schema.get("x-kubernetes-list-type")
    if kind == "map":
        return ListMerge("", tuple(schema.get("x-kubernetes-list-map-keys") or ()))
    return ListMerge(is_apply_set=True) if kind == "set" else ATOMIC
