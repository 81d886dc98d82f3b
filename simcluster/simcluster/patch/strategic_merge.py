"""Strategic merge patch: merges lists by the keys that the API types declare.

Follows apimachinery's ``strategicpatch``: ``$patch``, ``$retainKeys``, ``$setElementOrder/<list>``
and ``$deleteFromPrimitiveList/<list>``. A list without a declared key is replaced whole.
"""

from collections.abc import Sequence
from typing import Any

from simcluster.apiserver.errors import internal, rejected
from simcluster.schema import ListType, MapType, Struct, Type

Json = dict[str, Any]

_ORDER = "$setElementOrder/"
_DELETE_PRIMITIVES = "$deleteFromPrimitiveList/"


def strategic_merge(target: Json, patch: Json, type_: Type | None) -> Json:
    """Apply a strategic merge patch to an object of a type; ``target`` is not changed.

    Raises:
        ApiError: 400 or 500, the patch is malformed.
    """
    directive = patch.get("$patch")
    if directive == "delete":
        return {}
    if directive not in {None, "merge", "replace"}:
        raise internal(f"unknown patch type found: {directive}: Invalid patch format")
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != "$patch"}
    merged: Json = dict(target)
    retained = patch.get("$retainKeys")
    if retained is not None:
        _check_retained(patch, retained)
        merged = {key: value for key, value in merged.items() if key in retained}
    for key in patch:
        if not key.startswith("$"):
            _merge_value(merged, key, patch, _type_of(type_, key))
    _apply_list_directives(merged, patch, type_)
    return merged


def _type_of(type_: Type | None, field: str) -> Type | None:
    if isinstance(type_, Struct):
        return type_.fields.get(field)
    return type_.value if isinstance(type_, MapType) else None


def _check_retained(patch: Json, retained: object) -> None:
    named = set(patch) - {"$retainKeys"}
    if not isinstance(retained, list) or not {
        key for key in named if not key.startswith("$")
    } <= set(retained):
        raise rejected()


def _merge_value(merged: Json, key: str, patch: Json, type_: Type | None) -> None:
    value, before = patch[key], merged.get(key)
    if value is None:
        merged.pop(key, None)
    elif isinstance(value, dict):
        merged[key] = strategic_merge(before if isinstance(before, dict) else {}, value, type_)
    elif isinstance(value, list):
        items = before if isinstance(before, list) else []
        merged[key] = _merge_list(items, value, type_, patch.get(_ORDER + key))
    else:
        merged[key] = value


def _apply_list_directives(merged: Json, patch: Json, type_: Type | None) -> None:
    for key, value in patch.items():
        if key.startswith(_DELETE_PRIMITIVES):
            name = key.removeprefix(_DELETE_PRIMITIVES)
            if name in merged:
                merged[name] = [item for item in merged[name] if item not in value]
        elif key.startswith(_ORDER):
            name = key.removeprefix(_ORDER)
            if name in merged and name not in patch:
                list_type = _type_of(type_, name)
                merged[name] = _reordered(merged[name], merged[name], list_type, value)


def _patch_key(type_: Type | None) -> str:
    return type_.merge.patch_key if isinstance(type_, ListType) else ""


def _is_set(type_: Type | None) -> bool:
    return isinstance(type_, ListType) and type_.merge.is_patch_set


def _merge_list(
    original: list[Any], patch: list[Any], type_: Type | None, order: list[Any] | None
) -> list[Any]:
    if _is_set(type_):
        merged = original + [item for item in patch if item not in original]
        return _reordered(merged, original, type_, order) if order else merged
    key = _patch_key(type_)
    if not key or (patch and not all(isinstance(item, dict) for item in patch)):
        return [item for item in patch if not isinstance(item, dict) or "$patch" not in item]
    if any(set(item) == {"$patch"} and item["$patch"] == "replace" for item in patch):
        return [item for item in patch if "$patch" not in item]
    item_type = type_.item if isinstance(type_, ListType) else None
    merged = _merge_items(original, patch, key, item_type)
    return _reordered(merged, original, type_, order) if order else merged


def _merge_items(
    original: list[Any], patch: list[Any], key: str, item_type: Type | None
) -> list[Any]:
    merged = list(original)
    for item in patch:
        if key not in item:
            raise internal(f"map: {go_text(item)} does not contain declared merge key: {key}")
        found = next((i for i, old in enumerate(merged) if old.get(key) == item[key]), None)
        if item.get("$patch") == "delete":
            merged = [old for old in merged if old.get(key) != item[key]]
        elif found is None:
            merged.append(strategic_merge({}, item, item_type))
        else:
            merged[found] = strategic_merge(merged[found], item, item_type)
    return merged


def go_text(value: object) -> str:
    """A value as Go prints it (``%v``)."""
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{go_text(value[key])}" for key in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(map(go_text, value)) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return "<nil>" if value is None else str(value)


def _reordered(
    merged: list[Any], server: list[Any], type_: Type | None, order: Sequence[Any]
) -> list[Any]:
    """Items in the order of ``order``; items that it does not name keep their places."""
    key = _patch_key(type_)
    if not key and not _is_set(type_):
        return merged

    def identity(item: Any) -> Any:
        return item.get(key) if isinstance(item, dict) else item

    wanted = {identity(item): rank for rank, item in enumerate(order)}
    place = {identity(item): rank for rank, item in enumerate(server)}
    named = sorted(
        (item for item in merged if identity(item) in wanted), key=lambda i: wanted[identity(i)]
    )
    result: list[Any] = []
    own = [item for item in merged if identity(item) not in wanted]
    for item in named:
        rank = place.get(identity(item), -1)
        while own and place.get(identity(own[0]), len(place)) < rank:
            result.append(own.pop(0))
        result.append(item)
    return result + own
