"""Recorded cases: the cluster of a case, built from its objects, and its pending pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import Any

import msgspec

from stowage.api import Node, Pod, convert_object
from stowage.api.config.loading import ConfigError, KubeSchedulerProfile
from stowage.api.decoding.strict_decoding import decode_struct
from stowage.api.objects.device import ResourceClaim
from stowage.api.objects.meta import LabelSelector
from stowage.api.objects.namespace import Namespace
from stowage.api.objects.policy import PodDisruptionBudget
from stowage.api.objects.volume import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    StorageObject,
    VolumeAttachment,
)
from stowage.framework import CycleState, Framework, Registry, build_profile
from stowage.plugins import in_tree_registry
from stowage.queue.nominator import Nominator
from stowage.state import ClusterCache, PodInfo, make_pod_info
from stowage.state.devices.devices import device_kind
from tests.conformance.claim_api import NOW, ClaimApi

Record = Mapping[str, Any]

_LABEL_SELECTING = ("ReplicaSet", "StatefulSet")
_SELECTING = ("Service", "ReplicationController", *_LABEL_SELECTING)
_TERMINAL = ("Succeeded", "Failed")
_STORAGE: Mapping[str, type[StorageObject]] = {
    kind.__name__: kind
    for kind in (
        PersistentVolume,
        PersistentVolumeClaim,
        StorageClass,
        CSINode,
        CSIDriver,
        CSIStorageCapacity,
        VolumeAttachment,
    )
}


@dataclass
class Cluster:
    """The state of a case between attempts.

    Attributes:
        cache: Nodes and the pods on them.
        pending: The pods still to be scheduled, by ``namespace/name``.
        objects: Their objects.
        nominations: The nominated node of each preemptor.
        forgotten_ports: Nodes whose pods still have a host port of an evicted pod.
            kube-scheduler takes such a port for free: its cache has a set of ports for each node.
        api: The resource claims as the API server has them.
        now: The time, in seconds since the epoch.
    """

    cache: ClusterCache = field(default_factory=ClusterCache)
    pending: dict[str, PodInfo] = field(default_factory=dict)
    objects: dict[str, Record] = field(default_factory=dict)
    nominations: dict[str, str] = field(default_factory=dict)
    forgotten_ports: set[str] = field(default_factory=set)
    api: ClaimApi = field(default_factory=lambda: ClaimApi({}))
    now: float = datetime.fromisoformat(NOW).timestamp()

    def see_claims(self) -> None:
        """Let the cache see the claims as the API server has them."""
        for key in [
            claim.metadata.namespaced_name for claim in self.cache.snapshot().devices.claims
        ]:
            if key not in self.api.claims:
                self.cache.remove_device_object(ResourceClaim, key)
        for claim in self.api.claims.values():
            self.cache.update_device_object(claim)

    def nominated(self) -> Nominator:
        """All nominations, as the cycle expects them."""
        nominator = Nominator()
        for key, node in self.nominations.items():
            nominator.nominate(self.pending[key], node)
        return nominator

    def pod(self, key: str) -> PodInfo:
        """A pending pod with its nomination."""
        nominated = self.nominations.get(key, "")
        return msgspec.structs.replace(self.pending[key], nominated_node_name=nominated)

    def place(self, key: str, node_name: str, framework: Framework) -> None:
        """Assume a pending pod on a node, reserve its volumes, and drop its nomination."""
        pod, state = self.pending[key], CycleState()
        framework.run_pre_filter(state, pod, self.cache.snapshot())
        reserved = framework.run_reserve(state, pod, node_name)
        if not reserved.status.is_success:
            raise AssertionError(f"{key}: {reserved.status}")
        for plan in reserved.plans.values():
            self.cache.assume_storage(plan.volumes, plan.claims, pod.uid)
        self.cache.assume_pod(self.pending[key], node_name)
        self.nominations.pop(key, None)

    def evict(self, keys: Iterable[str]) -> None:
        """Delete placed pods, of the original cluster or of this case."""
        for key in keys:
            gone = self.cache.remove_pod(self.objects[key]["metadata"].get("uid", key))
            if gone is not None and gone.pod_class.host_ports:
                left = self.cache.pods_on(gone.node_name)
                ports = {port for other in left for port in other.pod_class.host_ports}
                if ports.intersection(gone.pod_class.host_ports):
                    self.forgotten_ports.add(gone.node_name)

    def misses_ports(self, key: str) -> bool:
        """Whether kube-scheduler may put a pod beside another one with the same host port."""
        return bool(self.forgotten_ports and self.pending[key].pod_class.host_ports)


def build_cluster(case: Record) -> Cluster:
    """The cluster of a case before its first attempt."""
    cluster = Cluster(api=ClaimApi(case.get("options", {})))
    pending = set(case["pending"])
    # The first list of device classes arrives in the order of their names.
    for item in sorted(case["objects"], key=_class_name):
        _ADD.get(item["kind"], _ignore)(cluster, item)
    for item in case["objects"]:
        if item["kind"] == "Pod" and item.get("status", {}).get("phase") not in _TERMINAL:
            _add_pod(cluster, item, pending)
    return cluster


@cache
def registry() -> Registry:
    """A registry of all plugins."""
    return in_tree_registry()


def build_framework(case: Record, class_cache_size: int = 1024) -> Framework:
    """The framework of a case's configuration."""
    return _framework(msgspec.json.encode(case["config"]), class_cache_size)


@cache
def _framework(config: bytes, class_cache_size: int) -> Framework:
    errors: list[ConfigError] = []
    settings = msgspec.json.decode(config)
    if not any(each["name"] == "DefaultPreemption" for each in settings.get("pluginConfig", ())):
        # In the records all nodes are preemption candidates.
        all_nodes = {"name": "DefaultPreemption", "args": {"minCandidateNodesPercentage": 100}}
        settings["pluginConfig"] = [*settings.get("pluginConfig", ()), all_nodes]
    profile = decode_struct(settings, KubeSchedulerProfile, "", errors)
    if errors:
        raise ValueError("; ".join(map(str, errors)))
    return Framework(build_profile(profile, registry()), class_cache_size=class_cache_size)


def _add_node(cluster: Cluster, item: Record) -> None:
    cluster.cache.update_node(convert_object(Node, item))


def _add_namespace(cluster: Cluster, item: Record) -> None:
    cluster.cache.update_namespace(convert_object(Namespace, item))


def _add_workload(cluster: Cluster, item: Record) -> None:
    metadata, selector = item["metadata"], item.get("spec", {}).get("selector")
    if item["kind"] in _LABEL_SELECTING:
        wanted = msgspec.convert(selector, LabelSelector | None)
    else:
        wanted = LabelSelector(match_labels=selector) if selector else None
    cluster.cache.update_workload(item["kind"], metadata["namespace"], metadata["name"], wanted)


def _add_budget(cluster: Cluster, item: Record) -> None:
    cluster.cache.update_budget(convert_object(PodDisruptionBudget, item))


def _ignore(cluster: Cluster, item: Record) -> None:
    """Ignore kinds that do not influence decisions."""


def _add_storage(cluster: Cluster, item: Record) -> None:
    cluster.cache.update_storage(convert_object(_STORAGE[item["kind"]], item))


def _class_name(item: Record) -> str:
    return item["metadata"]["name"] if item["kind"] == "DeviceClass" else ""


def _add_device_object(cluster: Cluster, item: Record) -> None:
    cluster.cache.update_device_object(convert_object(device_kind(item["kind"]), item))


def _add_claim(cluster: Cluster, item: Record) -> None:
    claim = cluster.api.put(convert_object(ResourceClaim, item))
    cluster.cache.update_device_object(claim)


_ADD = (
    {
        "Node": _add_node,
        "Namespace": _add_namespace,
        "PodDisruptionBudget": _add_budget,
        "ResourceClaim": _add_claim,
        "DeviceClass": _add_device_object,
        "ResourceSlice": _add_device_object,
    }
    | dict.fromkeys(_SELECTING, _add_workload)
    | dict.fromkeys(_STORAGE, _add_storage)
)


def _add_pod(cluster: Cluster, item: Record, pending: set[str]) -> None:
    key = f"{item['metadata']['namespace']}/{item['metadata']['name']}"
    cluster.objects[key] = item
    info = make_pod_info(convert_object(Pod, item), cluster.cache.classes)
    special = item.get("status", {}).get("extendedResourceClaimStatus")
    if special is not None:
        cluster.api.pod_statuses[key] = special
    if key in pending:
        cluster.pending[key] = info
        if info.nominated_node_name:
            cluster.nominations[key] = info.nominated_node_name
    else:
        cluster.cache.update_pod(info)
