"""Structural schemas of custom resources: pruning, defaults and validation.

Rules in the Common Expression Language (``x-kubernetes-validations``) are not evaluated.
"""

from collections.abc import Iterator
from typing import Any

from simcluster.apiserver.errors import FieldError
from simcluster.crds.schema_values import broken_limits, wrong_type

Json = dict[str, Any]

_OF_EVERY_OBJECT = frozenset(("apiVersion", "kind", "metadata"))


def prune(value: Any, schema: Json, *, is_object: bool = True) -> None:
    """Drop, in place, fields that the schema does not know.

    Args:
        value: an object, or a part of one.
        schema: of that part.
        is_object: ``value`` has its own kind and metadata, which stay.
    """
    if isinstance(value, list):
        for item in value:
            prune(item, schema.get("items") or {}, is_object=_is_embedded(schema.get("items")))
    if not isinstance(value, dict):
        return
    properties = schema.get("properties") or {}
    others = schema.get("additionalProperties")
    keeps_unknown = bool(schema.get("x-kubernetes-preserve-unknown-fields") or others)
    for key in list(value):
        if key in properties:
            prune(value[key], properties[key], is_object=_is_embedded(properties[key]))
        elif is_object and key in _OF_EVERY_OBJECT:
            continue
        elif isinstance(others, dict):
            prune(value[key], others, is_object=_is_embedded(others))
        elif not keeps_unknown:
            del value[key]


def _is_embedded(schema: Json | None) -> bool:
    return bool((schema or {}).get("x-kubernetes-embedded-resource"))


def unknown_fields(value: Any, schema: Json, path: str = "") -> list[str]:
    """Paths of the fields that :func:`prune` would drop."""
    if isinstance(value, list):
        items = schema.get("items") or {}
        inner = ((f"{path}[{index}]", item) for index, item in enumerate(value))
        return [found for place, item in inner for found in unknown_fields(item, items, place)]
    if not isinstance(value, dict):
        return []
    properties = schema.get("properties") or {}
    others = schema.get("additionalProperties")
    keeps_unknown = bool(schema.get("x-kubernetes-preserve-unknown-fields") or others)
    is_object = not path or _is_embedded(schema)
    found: list[str] = []
    for key, item in value.items():
        known = properties.get(key) or (others if isinstance(others, dict) else None)
        if known is not None:
            found += unknown_fields(item, known, _below(path, key))
        elif not keeps_unknown and not (is_object and key in _OF_EVERY_OBJECT):
            found.append(_below(path, key))
    return found


def fill_defaults(value: Any, schema: Json) -> None:
    """Set, in place, the defaults of missing fields."""
    if isinstance(value, list):
        for item in value:
            fill_defaults(item, schema.get("items") or {})
    if not isinstance(value, dict):
        return
    properties = schema.get("properties") or {}
    for key, inner in properties.items():
        if key not in value and "default" in inner:
            value[key] = _copied(inner["default"])
        if key in value:
            fill_defaults(value[key], inner)
    others = schema.get("additionalProperties")
    if isinstance(others, dict):
        for key in value.keys() - properties.keys():
            fill_defaults(value[key], others)


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(inner) for key, inner in value.items()}
    return [_copied(item) for item in value] if isinstance(value, list) else value


def check(value: Any, schema: Json, path: str = "") -> list[FieldError]:
    """Errors of a value by its schema, in the API server's words."""
    if wrong := wrong_type(value, schema, path):
        return [wrong]
    found = list(broken_limits(value, schema, path))
    if isinstance(value, dict):
        found += _check_fields(value, schema, path)
    if isinstance(value, list):
        items = schema.get("items") or {}
        for index, item in enumerate(value):
            found += check(item, items, f"{path}[{index}]")
        found += _duplicates(value, schema, path)
    found += _check_combinations(value, schema, path)
    return found


def _check_fields(value: Json, schema: Json, path: str) -> Iterator[FieldError]:
    properties = schema.get("properties") or {}
    others = schema.get("additionalProperties")
    for key in schema.get("required") or ():
        if key not in value:
            yield FieldError(_below(path, key), "FieldValueRequired", "Required value")
    for key, item in value.items():
        if not path and key in _OF_EVERY_OBJECT:
            continue
        inner = properties.get(key)
        if inner is None and isinstance(others, dict):
            inner = others
        if inner is not None:
            yield from check(item, inner, _below(path, key))


def _below(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _duplicates(value: list[Any], schema: Json, path: str) -> Iterator[FieldError]:
    kind, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys")
    if kind not in {"map", "set"}:
        return
    seen: list[Any] = []
    for index, item in enumerate(value):
        identity = item
        if kind == "map" and isinstance(item, dict):
            identity = {key: item.get(key) for key in keys or ()}
        if identity in seen:
            message = f"Duplicate value: {_shown(identity)}"
            yield FieldError(f"{path}[{index}]", "FieldValueDuplicate", message)
        seen.append(identity)


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        inside = ",".join(f'"{key}":{_shown(inner)}' for key, inner in value.items())
        return f"{{{inside}}}"
    return f'"{value}"' if isinstance(value, str) else str(value)


def _check_combinations(value: Any, schema: Json, path: str) -> Iterator[FieldError]:
    """``allOf``, ``anyOf``, ``oneOf`` and ``not``."""
    for part in schema.get("allOf") or ():
        yield from check(value, part, path)
    any_of, one_of = schema.get("anyOf"), schema.get("oneOf")
    if any_of and all(check(value, part, path) for part in any_of):
        yield _combined(path, "must validate at least one schema (anyOf)")
    if one_of:
        num_valid = sum(not check(value, part, path) for part in one_of)
        if num_valid != 1:
            found = f"Found {num_valid} valid alternatives" if num_valid else "Found none valid"
            yield _combined(path, f"must validate one and only one schema (oneOf). {found}")
    if (forbidden := schema.get("not")) is not None and not check(value, forbidden, path):
        yield _combined(path, "must not validate the schema (not)")


def _combined(path: str, what: str) -> FieldError:
    return FieldError(path or "<nil>", "FieldValueInvalid", f'Invalid value: "": "{path}" {what}')
