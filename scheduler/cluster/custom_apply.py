"""How objects of custom kinds are owned in parts, as their schemas say, for server-side apply."""

from typing import Any

from scheduler.cluster.schema import ListType, MapType, Scalar, Struct, Type, struct_of
from scheduler.cluster.schema.merging import ATOMIC, ListMerge

Json = dict[str, Any]

_ANYTHING = Scalar("any")


def object_type(schema: Json) -> Struct:
    """The type of a custom resource, made from its ``openAPIV3Schema``.

    What a schema keeps without knowing it is a map of single values.
    """
    found = _struct(schema)
    metadata = struct_of("ObjectMeta")
    if metadata is not None:
        found.fields["metadata"] = metadata
    return found


def _struct(schema: Json) -> Struct:
    found = Struct("")
    found.is_atomic = schema.get("x-kubernetes-map-type") == "atomic"
    for key, inner in (schema.get("properties") or {}).items():
        found.fields[key] = _type(inner)
    return found


def _type(schema: Json) -> Type:
    if schema.get("properties"):
        return _struct(schema)
    if schema.get("type") == "array":
        return ListType(_type(schema.get("items") or {}), _merge(schema))
    others = schema.get("additionalProperties")
    if others or schema.get("x-kubernetes-preserve-unknown-fields"):
        value = _type(others) if isinstance(others, dict) else _ANYTHING
        return MapType(value, schema.get("x-kubernetes-map-type") == "atomic")
    return _ANYTHING


def _merge(schema: Json) -> ListMerge:
    kind = schema.get("x-kubernetes-list-type")
    if kind == "map":
        return ListMerge("", tuple(schema.get("x-kubernetes-list-map-keys") or ()))
    return ListMerge(is_apply_set=True) if kind == "set" else ATOMIC
