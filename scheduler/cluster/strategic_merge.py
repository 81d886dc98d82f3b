"""Strategic merge patch: lists merged by the keys the API types declare.

Follows apimachinery's ``strategicpatch``: ``$patch``, ``$retainKeys``, ``$setElementOrder/<list>``
and ``$deleteFromPrimitiveList/<list>``. A list without a declared key is replaced whole, as are
``tolerations`` and a node's ``spec.taints``.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from scheduler.cluster.errors import ApiError, bad_request

Json = dict[str, Any]

_ORDER = "$setElementOrder/"
_DELETE_PRIMITIVES = "$deleteFromPrimitiveList/"
_PRIMITIVE_SETS = frozenset(("finalizers", "podCIDRs"))
_MERGE_KEYS: Mapping[str, str] = {
    "addresses": "type",
    "conditions": "type",
    "containers": "name",
    "env": "name",
    "ephemeralContainers": "name",
    "hostAliases": "ip",
    "hostIPs": "ip",
    "imagePullSecrets": "name",
    "initContainers": "name",
    "ownerReferences": "uid",
    "podIPs": "ip",
    "resourceClaimStatuses": "name",
    "resourceClaims": "name",
    "schedulingGates": "name",
    "secrets": "name",
    "topologySpreadConstraints": "topologyKey",
    "volumeDevices": "devicePath",
    "volumeMounts": "mountPath",
    "volumes": "name",
}


def strategic_merge(target: Json, patch: Json) -> Json:
    """Apply a strategic merge patch; ``target`` is not changed.

    Raises:
        ApiError: 400 or 422, the patch is malformed.
    """
    return _merge_map(target, patch, in_list="")


def _merge_map(original: Json, patch: Json, in_list: str) -> Json:
    directive = patch.get("$patch")
    if directive == "delete":
        return {}
    if directive not in {None, "merge", "replace"}:
        raise bad_request(f"unknown patch directive {directive!r}")
    merged: Json = {} if directive == "replace" else dict(original)
    retained = patch.get("$retainKeys")
    if retained is not None:
        merged = {key: value for key, value in merged.items() if key in retained}
    for key, value in patch.items():
        if not key.startswith("$"):
            _merge_value(merged, key, value, patch, in_list)
    _apply_list_directives(merged, patch, in_list)
    return merged


def _merge_value(merged: Json, key: str, value: Any, patch: Json, in_list: str) -> None:
    if value is None:
        merged.pop(key, None)
        return
    before = merged.get(key)
    if isinstance(value, dict):
        merged[key] = _merge_map(before if isinstance(before, dict) else {}, value, "")
    elif isinstance(value, list):
        items = before if isinstance(before, list) else []
        merged[key] = _merge_list(items, value, key, in_list, patch.get(_ORDER + key))
    else:
        merged[key] = value


def _apply_list_directives(merged: Json, patch: Json, in_list: str) -> None:
    for key, value in patch.items():
        if key.startswith(_DELETE_PRIMITIVES):
            name = key.removeprefix(_DELETE_PRIMITIVES)
            if name in merged:
                merged[name] = [item for item in merged[name] if item not in value]
        elif key.startswith(_ORDER):
            name = key.removeprefix(_ORDER)
            if name in merged and name not in patch:
                merged[name] = _reordered(merged[name], merged[name], name, in_list, value)


def _merge_key(name: str, in_list: str) -> str | None:
    if name == "ports":
        return "containerPort" if in_list else "port"
    return _MERGE_KEYS.get(name)


def _merge_list(
    original: list[Any], patch: list[Any], name: str, in_list: str, order: list[Any] | None
) -> list[Any]:
    if name in _PRIMITIVE_SETS:
        merged = original + [item for item in patch if item not in original]
        return _reordered(merged, original, name, in_list, order) if order else merged
    key = _merge_key(name, in_list)
    if key is None or (patch and not all(isinstance(item, dict) for item in patch)):
        return patch
    if any(set(item) == {"$patch"} and item["$patch"] == "replace" for item in patch):
        return [item for item in patch if "$patch" not in item]
    merged = _merge_items(original, patch, key, name)
    return _reordered(merged, original, name, in_list, order) if order else merged


def _merge_items(original: list[Any], patch: list[Any], key: str, name: str) -> list[Any]:
    merged = list(original)
    for item in patch:
        if key not in item:
            raise ApiError(
                422, "Invalid", f"map: {item} does not contain declared merge key: {key}"
            )
        found = next((i for i, old in enumerate(merged) if old.get(key) == item[key]), None)
        if item.get("$patch") == "delete":
            merged = [old for old in merged if old.get(key) != item[key]]
        elif found is None:
            merged.append(_merge_map({}, item, name))
        else:
            merged[found] = _merge_map(merged[found], item, name)
    return merged


def _reordered(
    merged: list[Any], server: list[Any], name: str, in_list: str, order: Sequence[Any]
) -> list[Any]:
    """Items named by ``order`` in that order; the server's own keep their place between them."""
    key = _merge_key(name, in_list)
    if key is None and name not in _PRIMITIVE_SETS:
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
