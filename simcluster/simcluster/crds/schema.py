"""Structural schemas of custom resources: pruning, defaults and validation."""

import copy
from collections.abc import Iterator
from typing import Any, NamedTuple

from simcluster.apiserver.errors import FieldError, duplicate_value, required
from simcluster.crds.correlation import ABSENT, old_entry, old_items
from simcluster.crds.schema_values import broken_limits, range_error, wrong_type

Json = dict[str, Any]

_OF_EVERY_OBJECT = frozenset(("apiVersion", "kind", "metadata"))


class _Unknown(NamedTuple):
    """A field that a schema does not know: the object that has it, its key and its path."""

    holder: Json
    key: str
    path: str


def _unknown(value: Any, schema: Json, path: str = "") -> Iterator[_Unknown]:
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _unknown(item, schema.get("items") or {}, f"{path}[{index}]")
    if not isinstance(value, dict):
        return
    properties = schema.get("properties") or {}
    others = schema.get("additionalProperties")
    keeps_unknown = bool(schema.get("x-kubernetes-preserve-unknown-fields") or others)
    # Objects have a kind and metadata, whatever their schema says of them.
    is_object = not path or schema.get("x-kubernetes-embedded-resource")
    for key, item in value.items():
        if is_object and key in _OF_EVERY_OBJECT:
            continue
        if key in properties:
            yield from _unknown(item, properties[key], _below(path, key))
        elif isinstance(others, dict):
            yield from _unknown(item, others, _below(path, key))
        elif not keeps_unknown:
            yield _Unknown(value, key, _below(path, key))


def prune(obj: Json, schema: Json) -> None:
    """Drop, in place, the fields of an object that its schema does not know."""
    for found in list(_unknown(obj, schema)):
        del found.holder[found.key]


def unknown_fields(obj: Json, schema: Json) -> list[str]:
    """Paths of the fields that :func:`prune` would drop."""
    return [found.path for found in _unknown(obj, schema)]


def fill_defaults(value: Any, schema: Json) -> None:
    """Set, in place, the defaults of missing fields, and of nulls that are not allowed."""
    if isinstance(value, list):
        for item in value:
            fill_defaults(item, schema.get("items") or {})
    if not isinstance(value, dict):
        return
    properties = schema.get("properties") or {}
    others = schema.get("additionalProperties")
    for key, inner in properties.items():
        if "default" in inner and (key not in value or _is_refused_null(value[key], inner)):
            value[key] = copy.deepcopy(inner["default"])
        if key in value:
            fill_defaults(value[key], inner)
    if isinstance(others, dict):
        for key in value.keys() - properties.keys():
            if "default" in others and _is_refused_null(value[key], others):
                value[key] = copy.deepcopy(others["default"])
            fill_defaults(value[key], others)


def drop_nulls(value: Any, schema: Json) -> None:
    """Drop, in place, nulls that a schema does not allow and has no default for."""
    if isinstance(value, list):
        for item in value:
            drop_nulls(item, schema.get("items") or {})
    if not isinstance(value, dict):
        return
    properties = schema.get("properties") or {}
    others = schema.get("additionalProperties")
    for key in list(value):
        inner = properties.get(key, others)
        if not isinstance(inner, dict):
            continue
        if _is_refused_null(value[key], inner) and "default" not in inner:
            del value[key]
        else:
            drop_nulls(value[key], inner)


def _is_refused_null(value: Any, schema: Json) -> bool:
    return value is None and not schema.get("nullable")


def check(value: Any, schema: Json, path: str = "", old: Any = ABSENT) -> list[FieldError]:
    """Errors of a value by its schema, in the API server's words.

    A value that is equal to ``old``, the value before a change, has none.
    """
    if old is not ABSENT and value == old:
        return []
    if wrong := wrong_type(value, schema, path):
        return [wrong, *range_error(value, schema, path)]
    found = list(broken_limits(value, schema, path))
    if isinstance(value, dict):
        found += _check_fields(value, schema, path, old)
    if isinstance(value, list):
        items = schema.get("items") or {}
        for index, (item, before) in enumerate(old_items(value, old, schema)):
            found += check(item, items, f"{path}[{index}]", before)
        found += _duplicates(value, schema, path)
    found += _check_combinations(value, schema, path)
    return found


def _check_fields(value: Json, schema: Json, path: str, old: Any) -> Iterator[FieldError]:
    properties = schema.get("properties") or {}
    others = schema.get("additionalProperties")
    for key in schema.get("required") or ():
        if key not in value:
            yield required(_below(path, key))
    for key, item in value.items():
        if not path and key in _OF_EVERY_OBJECT:
            continue
        inner = properties.get(key)
        if inner is None and isinstance(others, dict):
            inner = others
        if inner is not None:
            yield from check(item, inner, _below(path, key), old_entry(old, key))


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
            yield duplicate_value(f"{path}[{index}]", identity)
        seen.append(identity)


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
