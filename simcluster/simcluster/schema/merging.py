"""Which lists merge, by what, and which objects are one value; as the API's Go types declare it.

Strategic merge patches know ``patchMergeKey`` and ``patchStrategy``; server-side apply knows
``listType``, ``listMapKey``, ``mapType`` and ``structType``. Most agree, some differ
(a container's ports merge by containerPort in the one, by containerPort and protocol in the other),
so each field names both.
"""

from typing import NamedTuple


class ListMerge(NamedTuple):
    """How one list merges.

    Args:
        patch_key: its ``patchMergeKey``; empty where a strategic merge patch replaces the list.
        apply_keys: its ``listMapKeys``; empty for a list that is one value, or a set.
        is_patch_set: strategic merge patches unite it (``patchStrategy=merge`` of scalars).
        is_apply_set: server-side apply owns its items one by one (``listType=set``).
    """

    patch_key: str = ""
    apply_keys: tuple[str, ...] = ()
    is_patch_set: bool = False
    is_apply_set: bool = False


ATOMIC = ListMerge()
_BY_TYPE = ListMerge("type", ("type",))
_BY_NAME = ListMerge("name", ("name",))
_SET = ListMerge(is_apply_set=True)
_UNITED_SET = ListMerge(is_patch_set=True, is_apply_set=True)
_APPLIED_BY_NAME = ListMerge("", ("name",))

_CONTAINER = {
    "ports": ListMerge("containerPort", ("containerPort", "protocol")),
    "env": _BY_NAME,
    "volumeMounts": ListMerge("mountPath", ("mountPath",)),
    "volumeDevices": ListMerge("devicePath", ("devicePath",)),
}

LISTS: dict[str, dict[str, ListMerge]] = {
    "ObjectMeta": {
        "finalizers": _UNITED_SET,
        "ownerReferences": ListMerge("uid", ("uid",)),
    },
    "Container": _CONTAINER,
    "EphemeralContainer": _CONTAINER,
    "PodSpec": {
        "containers": _BY_NAME,
        "initContainers": _BY_NAME,
        "ephemeralContainers": _BY_NAME,
        "volumes": _BY_NAME,
        "imagePullSecrets": _BY_NAME,
        "hostAliases": ListMerge("ip", ("ip",)),
        "schedulingGates": _BY_NAME,
        "resourceClaims": _BY_NAME,
        "topologySpreadConstraints": ListMerge("topologyKey", ("topologyKey", "whenUnsatisfiable")),
    },
    "PodStatus": {
        "conditions": _BY_TYPE,
        "podIPs": ListMerge("ip", ("ip",)),
        "hostIPs": ListMerge("ip", ()),
        "resourceClaimStatuses": _BY_NAME,
    },
    "ContainerStatus": {"volumeMounts": ListMerge("mountPath", ("mountPath",))},
    "ResourceRequirements": {"claims": _APPLIED_BY_NAME},
    "NodeSpec": {"podCIDRs": _UNITED_SET},
    "NodeStatus": {"conditions": _BY_TYPE, "addresses": _BY_TYPE},
    "NamespaceStatus": {"conditions": _BY_TYPE},
    "PersistentVolumeClaimStatus": {"conditions": _BY_TYPE},
    "ServiceSpec": {"ports": ListMerge("port", ("port", "protocol"))},
    "ServiceStatus": {"conditions": _BY_TYPE},
    "ServiceAccount": {"secrets": _BY_NAME},
    "ReplicationControllerStatus": {"conditions": _BY_TYPE},
    "DeploymentStatus": {"conditions": _BY_TYPE},
    "ReplicaSetStatus": {"conditions": _BY_TYPE},
    "StatefulSetStatus": {"conditions": _BY_TYPE},
    "DaemonSetStatus": {"conditions": _BY_TYPE},
    "JobStatus": {"conditions": ListMerge("type", ())},
    "PodDisruptionBudgetStatus": {"conditions": _BY_TYPE},
    "HorizontalPodAutoscalerStatus": {"conditions": _BY_TYPE},
    "CSINodeSpec": {"drivers": _BY_NAME},
    "CSIDriverSpec": {"volumeLifecycleModes": _SET},
}

ATOMIC_STRUCTS = frozenset(
    [
        "ConfigMapKeySelector",
        "LabelSelector",
        "LocalObjectReference",
        "NodeSelector",
        "NodeSelectorTerm",
        "ObjectFieldSelector",
        "ObjectReference",
        "PersistentVolumeClaimReference",
        "ResourceFieldSelector",
        "RoleRef",
        "ScopeSelector",
        "ScopedResourceSelectorRequirement",
        "SecretKeySelector",
        "SecretReference",
        "Subject",
        "TopologySelectorTerm",
        "TypedLocalObjectReference",
    ]
)
"""Objects that server-side apply owns as a whole."""

ATOMIC_MAPS = frozenset(
    (
        "PodSpec.nodeSelector",
        "ReplicationControllerSpec.selector",
        "ServiceSpec.selector",
        "ScaleStatus.selector",
        "CSIPersistentVolumeSource.volumeAttributes",
    )
)
"""Maps that server-side apply owns as a whole."""
