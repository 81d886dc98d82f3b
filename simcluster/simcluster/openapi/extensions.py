"""How lists and objects of built-in kinds are merged, as the OpenAPI documents say it.

Strategic merge goes by ``x-kubernetes-patch-merge-key``, server-side apply by the list's type and
keys; kubectl reads both. They are read from what patches and applies go by here, too.
"""

import re
from collections.abc import Mapping
from typing import Any

from simcluster.schema.go_types import GO_TYPES, ListMerge, list_merge

Json = dict[str, Any]

_GROUP_AND_VERSION = re.compile(r"(?:Core|Rbac|Discovery)?V\d")
_RETAINED = frozenset(
    (
        ("PodSpec", "resourceClaims"),
        ("PodSpec", "volumes"),
        ("PodStatus", "resourceClaimStatuses"),
    )
)
"""Lists of which a patch names the items and the keys that stay."""
_STRATEGIES: Mapping[tuple[str, str], str] = {
    ("DeploymentSpec", "strategy"): "retainKeys",
    ("PodDisruptionBudgetSpec", "selector"): "replace",
}
"""Of objects, not lists."""


def extend(model: str, schema: Json) -> Json:
    """A model's schema with its ``x-kubernetes-`` extensions; the given one is not changed."""
    owner = _GROUP_AND_VERSION.sub("", model, count=1)
    properties = {
        name: {**found, **_extensions(owner, name, found, list_merge(owner, name))}
        for name, found in schema.get("properties", {}).items()
    }
    extended = {**schema, "properties": properties}
    if owner in GO_TYPES.atomic_structs:
        extended["x-kubernetes-map-type"] = "atomic"
    return extended


def _extensions(owner: str, name: str, schema: Json, merge: ListMerge) -> Json:
    if strategy := _STRATEGIES.get((owner, name)):
        return {"x-kubernetes-patch-strategy": strategy}
    if schema.get("type") == "array":
        return {**_apply_type(merge), **_patch_strategy(owner, name, merge)}
    return {"x-kubernetes-map-type": "atomic"} if f"{owner}.{name}" in GO_TYPES.atomic_maps else {}


def _apply_type(merge: ListMerge) -> Json:
    """What server-side apply goes by."""
    if merge.apply_keys:
        keys = list(merge.apply_keys)
        return {"x-kubernetes-list-map-keys": keys, "x-kubernetes-list-type": "map"}
    return {"x-kubernetes-list-type": "set" if merge.is_apply_set else "atomic"}


def _patch_strategy(owner: str, name: str, merge: ListMerge) -> Json:
    """What strategic merge goes by."""
    if merge.patch_key:
        strategy = "merge,retainKeys" if (owner, name) in _RETAINED else "merge"
        return {
            "x-kubernetes-patch-merge-key": merge.patch_key,
            "x-kubernetes-patch-strategy": strategy,
        }
    return {"x-kubernetes-patch-strategy": "merge"} if merge.is_patch_set else {}
