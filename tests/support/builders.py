"""Builders of API objects: ``make_pod("p", cpu="1", node="n")``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from stowage.api.objects.meta import (
    LabelSelector,
    LabelSelectorRequirement,
    ObjectMeta,
    OwnerReference,
)
from stowage.api.objects.namespace import Namespace
from stowage.api.objects.node import ContainerImage, Node, NodeSpec, NodeStatus, Taint
from stowage.api.objects.pod import (
    Affinity,
    Container,
    ContainerPort,
    Pod,
    PodAffinityTerm,
    PodSchedulingGate,
    PodSpec,
    PodStatus,
    ResourceRequirements,
    Toleration,
    WeightedPodAffinityTerm,
)

HOSTNAME = "kubernetes.io/hostname"
_API_VERSIONS = {
    "ReplicationController": "v1",
    "ReplicaSet": "apps/v1",
    "StatefulSet": "apps/v1",
    "DaemonSet": "apps/v1",
    "Job": "batch/v1",
}
ZONE = "topology.kubernetes.io/zone"


def make_pod(
    name: str = "p",
    *,
    namespace: str = "default",
    uid: str | None = None,
    cpu: str | None = None,
    memory: str | None = None,
    requests: Mapping[str, str | int | float] | None = None,
    images: Sequence[str] = ("registry.k8s.io/pause",),
    labels: Mapping[str, str] | None = None,
    node: str = "",
    affinity: Affinity | None = None,
    tolerations: Sequence[Toleration] = (),
    host_ports: Sequence[int | ContainerPort] = (),
    gates: Sequence[str] = (),
    owner: OwnerReference | None = None,
    phase: str = "",
    terminating: bool = False,
    created: str = "2026-01-01T00:00:00Z",
    started: str | None = None,
    resource_version: str = "",
    nominated_node: str = "",
    **spec: Any,
) -> Pod:
    """A pod with one container for each image; the first one has the requests and ports.

    Its UID is ``uid-<name>`` unless given. Further keywords are fields of `PodSpec`, among them
    `node_selector`, `topology_spread_constraints`, `priority`, `volumes` and `scheduler_name`.
    """
    wanted = dict(requests or {})
    wanted |= {key: value for key, value in (("cpu", cpu), ("memory", memory)) if value is not None}
    ports = tuple(_host_port(port) for port in host_ports)
    containers = [Container(name=f"c{index}", image=image) for index, image in enumerate(images)]
    if containers:
        containers[0] = msgspec.structs.replace(
            containers[0], resources=ResourceRequirements(requests=wanted), ports=ports
        )
    metadata = ObjectMeta(
        name=name,
        namespace=namespace,
        uid=f"uid-{name}" if uid is None else uid,
        resource_version=resource_version,
        labels=dict(labels or {}),
        creation_timestamp=created,
        deletion_timestamp="2026-01-01T01:00:00Z" if terminating else None,
        owner_references=(owner,) if owner else (),
    )
    fields: dict[str, Any] = {
        "containers": tuple(containers),
        "node_name": node,
        "affinity": affinity,
        "tolerations": tuple(tolerations),
        "scheduling_gates": tuple(PodSchedulingGate(gate) for gate in gates),
        **spec,
    }
    status = PodStatus(phase=phase, start_time=started, nominated_node_name=nominated_node)
    return Pod(metadata, PodSpec(**fields), status)


def make_node(
    name: str = "n",
    *,
    cpu: str = "4",
    memory: str = "32Gi",
    pods: int | str = 110,
    allocatable: Mapping[str, str | int | float] | None = None,
    zone: str | None = None,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Taint] = (),
    unschedulable: bool = False,
    images: Sequence[ContainerImage] = (),
    declared_features: Sequence[str] = (),
    resource_version: str = "",
    **status: Any,
) -> Node:
    """A node labelled with its hostname and, if given, its zone.

    `allocatable` adds to cpu, memory and pods. Further keywords are fields of `NodeStatus`.
    """
    own_labels = {HOSTNAME: name} | ({ZONE: zone} if zone is not None else {})
    amounts = {"cpu": cpu, "memory": memory, "pods": str(pods)} | dict(allocatable or {})
    return Node(
        ObjectMeta(
            name=name,
            uid=f"uid-{name}",
            resource_version=resource_version,
            labels=own_labels | dict(labels or {}),
        ),
        NodeSpec(unschedulable=unschedulable, taints=tuple(taints)),
        NodeStatus(
            allocatable=amounts,
            capacity=amounts,
            images=tuple(images),
            declared_features=tuple(declared_features),
            **status,
        ),
    )


def owned_by(kind: str, name: str, uid: str, *, controller: bool = True) -> OwnerReference:
    """An owner reference of a built-in kind."""
    return OwnerReference(kind, name, uid, _API_VERSIONS[kind], controller)


def make_namespace(name: str, *, labels: Mapping[str, str] | None = None) -> Namespace:
    """A namespace with these labels and the name label that the API server adds."""
    own_labels = {"kubernetes.io/metadata.name": name} | dict(labels or {})
    return Namespace(ObjectMeta(name=name, labels=own_labels))


def label_selector(
    labels: Mapping[str, str] | None = None, *expressions: tuple[str, str, Sequence[str]]
) -> LabelSelector:
    """A label selector of labels that must be equal and of (key, operator, values) expressions."""
    return LabelSelector(
        dict(labels or {}),
        tuple(
            LabelSelectorRequirement(key, operator, tuple(values))
            for key, operator, values in expressions
        ),
    )


def affinity_term(
    topology_key: str,
    selector: LabelSelector | None = None,
    *,
    namespaces: Sequence[str] = (),
    namespace_selector: LabelSelector | None = None,
) -> PodAffinityTerm:
    """A pod affinity term."""
    return PodAffinityTerm(
        topology_key=topology_key,
        label_selector=selector,
        namespaces=tuple(namespaces),
        namespace_selector=namespace_selector,
    )


def weighted(weight: int, term: PodAffinityTerm) -> WeightedPodAffinityTerm:
    """A pod affinity term with a weight, for preferred terms."""
    return WeightedPodAffinityTerm(weight, term)


def _host_port(port: int | ContainerPort) -> ContainerPort:
    if isinstance(port, ContainerPort):
        return port
    return ContainerPort(host_port=port, protocol="TCP")
