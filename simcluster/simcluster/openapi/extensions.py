"""The ``x-kubernetes-`` extensions of OpenAPI schemas: how lists and objects merge.

Clients read the strategy of strategic merge patches and of server-side apply from them.
"""

from collections.abc import Mapping
from typing import Any

from simcluster.schema import ListType, MapType, Struct
from simcluster.schema.go_types import ListMerge

Json = dict[str, Any]

_STRATEGIES: Mapping[tuple[str, str], str] = {
    ("DeploymentSpec", "strategy"): "retainKeys",
    ("PodDisruptionBudgetSpec", "selector"): "replace",
    ("PodSpec", "resourceClaims"): "merge,retainKeys",
    ("PodSpec", "volumes"): "merge,retainKeys",
    ("PodStatus", "resourceClaimStatuses"): "merge,retainKeys",
}


def field_extensions(struct: Struct, field: str) -> Json:
    """The extensions of one field."""
    type_, strategy = struct.fields[field], _STRATEGIES.get((struct.name, field), "")
    if isinstance(type_, ListType):
        return {**_apply_type(type_.merge), **_patch_strategy(type_.merge, strategy or "merge")}
    if strategy:
        return {"x-kubernetes-patch-strategy": strategy}
    is_atomic = isinstance(type_, MapType) and type_.is_atomic
    return {"x-kubernetes-map-type": "atomic"} if is_atomic else {}


def _apply_type(merge: ListMerge) -> Json:
    """The extensions for server-side apply."""
    if merge.apply_keys:
        keys = list(merge.apply_keys)
        return {"x-kubernetes-list-map-keys": keys, "x-kubernetes-list-type": "map"}
    return {"x-kubernetes-list-type": "set" if merge.is_apply_set else "atomic"}


def _patch_strategy(merge: ListMerge, strategy: str) -> Json:
    """The extensions for strategic merge patches."""
    if merge.patch_key:
        return {
            "x-kubernetes-patch-merge-key": merge.patch_key,
            "x-kubernetes-patch-strategy": strategy,
        }
    return {"x-kubernetes-patch-strategy": "merge"} if merge.is_patch_set else {}
