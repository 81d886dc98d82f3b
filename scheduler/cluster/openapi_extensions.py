"""How lists of built-in kinds are merged, as the OpenAPI documents say it.

Strategic merge goes by ``x-kubernetes-patch-merge-key``, server-side apply by the list's type and
keys; kubectl reads both. A list that is not named here is replaced whole.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

Json = dict[str, Any]


class ListMerging(NamedTuple):
    """How one list is merged: its merge key, its strategy and the keys of its items."""

    key: str
    strategy: str = "merge"
    map_keys: tuple[str, ...] = ()


_BY_NAME = ListMerging("name")
_BY_TYPE = ListMerging("type")
_RETAINED = ListMerging("name", "merge,retainKeys")
_CONTAINER: Mapping[str, ListMerging] = {
    "env": _BY_NAME,
    "ports": ListMerging("containerPort", "merge", ("containerPort", "protocol")),
    "volumeDevices": ListMerging("devicePath"),
    "volumeMounts": ListMerging("mountPath"),
}
_CONDITIONS: Mapping[str, ListMerging] = {"conditions": _BY_TYPE}
_MERGED: Mapping[str, Mapping[str, ListMerging]] = {
    "V1ObjectMeta": {"ownerReferences": ListMerging("uid")},
    "V1PodSpec": {
        "containers": _BY_NAME,
        "ephemeralContainers": _BY_NAME,
        "hostAliases": ListMerging("ip"),
        "imagePullSecrets": _BY_NAME,
        "initContainers": _BY_NAME,
        "resourceClaims": _RETAINED,
        "schedulingGates": _BY_NAME,
        "topologySpreadConstraints": ListMerging(
            "topologyKey", "merge", ("topologyKey", "whenUnsatisfiable")
        ),
        "volumes": _RETAINED,
    },
    "V1PodStatus": {
        "conditions": _BY_TYPE,
        "hostIPs": ListMerging("ip"),
        "podIPs": ListMerging("ip"),
        "resourceClaimStatuses": _RETAINED,
    },
    "V1Container": _CONTAINER,
    "V1EphemeralContainer": _CONTAINER,
    "V1ServiceSpec": {"ports": ListMerging("port", "merge", ("port", "protocol"))},
    "V1ServiceAccount": {"secrets": _BY_NAME},
    "V1NodeStatus": {"addresses": _BY_TYPE, "conditions": _BY_TYPE},
    **dict.fromkeys(
        (
            "V1DaemonSetStatus",
            "V1DeploymentStatus",
            "V1JobStatus",
            "V1NamespaceStatus",
            "V1PersistentVolumeClaimStatus",
            "V1PodDisruptionBudgetStatus",
            "V1ReplicaSetStatus",
            "V1ReplicationControllerStatus",
            "V1ServiceStatus",
            "V1StatefulSetStatus",
            "V2HorizontalPodAutoscalerStatus",
        ),
        _CONDITIONS,
    ),
}
_STRATEGIES: Mapping[tuple[str, str], str] = {
    ("V1DeploymentSpec", "strategy"): "retainKeys",
    ("V1PodDisruptionBudgetSpec", "selector"): "replace",
}
"""Of objects, not lists."""
_SETS = frozenset((("V1ObjectMeta", "finalizers"), ("V1NodeSpec", "podCIDRs")))
_ATOMIC_MAPS = frozenset(
    (
        "CoreV1ObjectReference",
        "V1LabelSelector",
        "V1LocalObjectReference",
        "V1NodeSelector",
        "V1NodeSelectorTerm",
        "V1ObjectFieldSelector",
        "V1ObjectReference",
        "V1ResourceFieldSelector",
        "V1SecretReference",
        "V1TypedLocalObjectReference",
    )
)


def extend(model: str, schema: Json) -> Json:
    """A model's schema with its ``x-kubernetes-`` extensions; the given one is not changed."""
    merged = _MERGED.get(model, {})
    properties = {
        name: {**found, **_extensions(model, name, found, merged.get(name))}
        for name, found in schema.get("properties", {}).items()
    }
    extended = {**schema, "properties": properties}
    if model in _ATOMIC_MAPS:
        extended["x-kubernetes-map-type"] = "atomic"
    return extended


def _extensions(model: str, name: str, schema: Json, merging: ListMerging | None) -> Json:
    if strategy := _STRATEGIES.get((model, name)):
        return {"x-kubernetes-patch-strategy": strategy}
    if schema.get("type") != "array":
        return {}
    if (model, name) in _SETS:
        return {"x-kubernetes-list-type": "set", "x-kubernetes-patch-strategy": "merge"}
    if merging is None:
        return {"x-kubernetes-list-type": "atomic"}
    return {
        "x-kubernetes-list-map-keys": list(merging.map_keys or (merging.key,)),
        "x-kubernetes-list-type": "map",
        "x-kubernetes-patch-merge-key": merging.key,
        "x-kubernetes-patch-strategy": merging.strategy,
    }
