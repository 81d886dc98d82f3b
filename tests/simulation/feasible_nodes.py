"""The nodes on which a pod fits, by the plain Python filters, one node at a time."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import TypeVar, cast

import msgspec
from msgspec.structs import replace

from stowage.api import Node, Pod, decode_object
from stowage.api.objects.meta import ApiStruct
from stowage.api.objects.volume import (
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    StorageObject,
    VolumeAttachment,
)
from stowage.api.values.resources import pod_requests
from stowage.api.values.volume_claims import is_fully_bound
from tests.simulation.device_objects import ACCELERATOR
from tests.simulation.objects import AT_ONCE
from tests.simulation.server import (
    ATTACHMENTS,
    CLAIMS,
    CLASSES,
    CSI_NODES,
    NAMESPACES,
    NODES,
    PODS,
    VOLUMES,
    Json,
    ModelServer,
)
from tests.support.scalar import inter_pod_affinity, pod_topology_spread, volumes
from tests.support.scalar.cluster import PlainCluster
from tests.support.scalar.node_filters import FILTERS

T = TypeVar("T", bound=ApiStruct)

FINISHED = ("Succeeded", "Failed")
_STORAGE: tuple[tuple[type[StorageObject], str], ...] = (
    (PersistentVolumeClaim, CLAIMS),
    (PersistentVolume, VOLUMES),
    (StorageClass, CLASSES),
    (CSINode, CSI_NODES),
    (VolumeAttachment, ATTACHMENTS),
)
_VOLUME_FILTERS = (
    volumes.volume_restrictions,
    volumes.node_volume_limits,
    volumes.volume_zone,
    volumes.volume_binding,
)


#: (kind, identity of a stored object) -> the object, which never changes, and what it decodes to.
_DECODED: dict[tuple[type[ApiStruct], int], tuple[Json, ApiStruct]] = {}
_MAX_DECODED = 4096


def decoded(kind: type[T], obj: Json) -> T:
    """An object of the server, decoded as the scheduler decodes it."""
    key = (kind, id(obj))
    if key not in _DECODED:
        if len(_DECODED) >= _MAX_DECODED:
            _DECODED.clear()
        _DECODED[key] = (obj, decode_object(kind, msgspec.json.encode(obj)))
    return cast("T", _DECODED[key][1])


def is_placed(pod: Pod) -> bool:
    """Whether a pod takes resources of a node."""
    return bool(pod.spec.node_name) and pod.status.phase not in FINISHED


def plain_cluster(server: ModelServer) -> PlainCluster:
    """The present cluster as plain lists."""
    cluster = PlainCluster(
        namespaces={
            name: stored["metadata"]["labels"]
            for (_, name), stored in server.collection(NAMESPACES).items()
        }
    )
    for stored in server.collection(NODES).values():
        node = decoded(Node, stored)
        cluster.nodes[node.metadata.name] = node
    for stored in server.collection(PODS).values():
        pod = decoded(Pod, stored)
        if is_placed(pod):
            cluster.pods[pod.metadata.uid] = pod
    for kind, path in _STORAGE:
        for stored in server.collection(path).values():
            found = decoded(kind, stored)
            cluster.storage[kind, found.metadata.namespaced_name] = found
    return cluster


def with_nominated(cluster: PlainCluster, pod: Pod, waiting: Iterable[Pod]) -> PlainCluster:
    """The cluster with the nominated pods of equal or higher priority on their nodes."""
    placed = {
        other.metadata.uid: on_nominated_node(other)
        for other in waiting
        if other.status.nominated_node_name in cluster.nodes
        and other.metadata.uid != pod.metadata.uid
        and (other.spec.priority or 0) >= (pod.spec.priority or 0)
    }
    return dataclasses.replace(cluster, pods={**cluster.pods, **placed})


def on_nominated_node(pod: Pod) -> Pod:
    """The pod as if it were bound to its nominated node."""
    return replace(pod, spec=replace(pod.spec, node_name=pod.status.nominated_node_name))


def feasible_nodes(pod: Pod, cluster: PlainCluster) -> list[str]:
    """The names of the nodes that pass every filter.

    None for a pod with devices: only a fresh engine judges it.
    """
    has_devices = pod.spec.resource_claims or ACCELERATOR in pod_requests(pod)
    if pod.spec.scheduling_gates or has_devices or not _are_claims_usable(pod, cluster):
        return []
    affinity = inter_pod_affinity.pre_filter(cluster, pod)
    spread = pod_topology_spread.pre_filter(cluster, pod_topology_spread.Defaults(), pod)
    return [
        name
        for name, node in cluster.nodes.items()
        if not any(reasons(pod, node, cluster)[0] for reasons in FILTERS.values())
        and not any(reasons(pod, node, cluster)[0] for reasons in _VOLUME_FILTERS)
        and (
            affinity is None or inter_pod_affinity.filter_node(cluster, affinity, pod, node) is None
        )
        and (spread is None or pod_topology_spread.filter_node(spread, pod, node) is None)
    ]


def _are_claims_usable(pod: Pod, cluster: PlainCluster) -> bool:
    """Whether every claim exists, and is bound unless its class waits for the first consumer."""
    for name in volumes.names_of_claims(pod):
        claim = cluster.stored(PersistentVolumeClaim, f"{pod.metadata.namespace}/{name}")
        if claim is None:
            return False
        is_immediate = claim.spec.storage_class_name == AT_ONCE or claim.spec.volume_name
        if is_immediate and not is_fully_bound(claim):
            return False
    return True
