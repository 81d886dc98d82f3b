"""Equivalence classes of pods: everything that scheduling reads of a pod, except its identity.

The pods of a ReplicaSet or Job share a class. A class is computed once, and plugins may reuse their
results for one pod of a class for the others.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from weakref import WeakValueDictionary

import msgspec

from stowage.api.decoding.errors import InvalidObject
from stowage.api.objects.meta import ObjectMeta, OwnerReference, controller_of
from stowage.api.objects.pod import Affinity, Container, ContainerStatus, Pod, PodSpec
from stowage.api.values.node_affinity import required_node_affinity
from stowage.api.values.resources import pod_usage
from stowage.state.pods.affinity_terms import (
    AffinityTerms,
    InvalidTerm,
    TermKind,
    compile_affinity_terms,
)
from stowage.state.pods.label_reads import node_labels_read, pod_labels_read

MANY_TERMS = 1_000
"""More terms of pod (anti)affinity and node affinity are many."""
ANY_IP = "0.0.0.0"  # noqa: S104 - what an empty hostIP stands for, not a socket
HostPort = tuple[str, str, int]
"""(IP, protocol, port) on the node."""
NamespacedLabels = tuple[str, frozenset[tuple[str, str]]]
"""(namespace, label pairs): what selectors match."""

#: (apiVersion, kind) of the controllers that select pods.
_SELECTING_CONTROLLERS = frozenset(
    (("v1", "ReplicationController"), ("apps/v1", "ReplicaSet"), ("apps/v1", "StatefulSet"))
)
_RESIZE_PENDING = "PodResizePending"
_RUNNING = "Running"
_ENCODER = msgspec.msgpack.Encoder()


class NodeDemand:
    """What pods request of a single node: pod classes with equal requirements share it.

    Such classes differ at most in namespace, labels, owner, pod (anti)affinity and topology
    spreading. A plugin that reads none of these gives one answer for all of them. An API server
    adds labels to a pod that it binds, so most pods change their class, but not their demand.

    Attributes:
        id: Unique among demands and classes, and never reused.
        usage: What its pods use on their node.
        host_ports: Ports taken on the node by containers and sidecars.
        images: Image names of init containers, containers and image volumes, in this order.
        required_affinity: ``nodeSelector`` and required node affinity.
    """

    __slots__ = ("__weakref__", "host_ports", "id", "images", "required_affinity", "usage")

    def __init__(self, demand_id: int, pod: Pod, spec: PodSpec) -> None:
        self.id = demand_id
        self.usage = pod_usage(pod)
        self.host_ports = _host_ports(spec)
        self.images = _images(spec)
        # Here, not when the pod is scheduled: thousands of terms would make that step long.
        self.required_affinity = required_node_affinity(spec)


class PodClass:
    """The scheduling-relevant fields that the pods of an equivalence class share.

    Attributes:
        id: Unique and never reused, so caches per class may use it as their key.
        demand: What its pods request of a single node; shared with other classes.
        namespace: The namespace of its pods.
        labels: The labels of its pods.
        namespaced_labels: Namespace and labels as one hashable value.
        spec: The spec of its pods, without node name, group, and volumes other than images.
        priority: 0 if the spec has none.
        requests: Resource name -> amount; cpu in milli units, the rest in whole units.
        nonzero_cpu_milli: CPU requested, with a default per container that requests none.
        nonzero_memory_bytes: Memory requested, with a default per container that requests none.
        host_ports: Ports taken on the node by containers and sidecars.
        images: Image names of init containers, containers and image volumes, in this order.
        terms: Pod (anti)affinity terms by kind.
        node_labels: The labels of nodes that its spec names.
        pod_labels: The labels of other pods that its spec names.
        has_affinity_terms: Whether there is any such term.
        has_many_terms: Whether there are so many, with the required terms of node affinity, that
            each use of them takes milliseconds.
        controller: (kind, name) of the owning ReplicationController, ReplicaSet or StatefulSet.
        controller_uid: The UID of the controller; empty without one.
        scheduling_gates: The names in ``spec.schedulingGates``.
    """

    __slots__ = (
        "__weakref__",
        "controller",
        "controller_uid",
        "demand",
        "has_affinity_terms",
        "has_many_terms",
        "host_ports",
        "id",
        "images",
        "labels",
        "namespace",
        "namespaced_labels",
        "node_labels",
        "nonzero_cpu_milli",
        "nonzero_memory_bytes",
        "pod_labels",
        "priority",
        "requests",
        "scheduling_gates",
        "spec",
        "terms",
    )

    def __init__(self, class_id: int, pod: Pod, spec: PodSpec, demand: NodeDemand) -> None:
        metadata = pod.metadata
        self.id = class_id
        self.demand = demand
        self.namespace = metadata.namespace
        self.labels: dict[str, str] = metadata.labels
        self.namespaced_labels: NamespacedLabels = (
            metadata.namespace,
            frozenset(metadata.labels.items()),
        )
        self.spec = spec
        self.priority = spec.priority or 0
        usage = demand.usage
        self.requests = usage.requests
        self.nonzero_cpu_milli = usage.nonzero_cpu_milli
        self.nonzero_memory_bytes = usage.nonzero_memory_bytes
        self.host_ports = demand.host_ports
        self.images = demand.images
        self.terms = _terms(pod)
        num_terms = sum(map(len, self.terms.values()))
        self.has_affinity_terms = num_terms > 0
        node_terms = demand.required_affinity.terms
        num_node_terms = 0 if node_terms is None else len(node_terms.terms)
        self.has_many_terms = num_terms + num_node_terms > MANY_TERMS
        self.node_labels = node_labels_read(spec, self.terms, demand.required_affinity)
        self.pod_labels = pod_labels_read(spec, self.terms)
        owner = _selecting_controller(metadata)
        self.controller: tuple[str, str] | None = (owner.kind, owner.name) if owner else None
        self.controller_uid: str = owner.uid if owner else ""
        self.scheduling_gates: tuple[str, ...] = tuple(gate.name for gate in spec.scheduling_gates)

    @property
    def required_affinity_terms(self) -> AffinityTerms:
        """Terms of ``podAffinity`` that must hold."""
        return self.terms[TermKind.REQUIRED_AFFINITY]

    @property
    def required_anti_affinity_terms(self) -> AffinityTerms:
        """Terms of ``podAntiAffinity`` that must hold."""
        return self.terms[TermKind.REQUIRED_ANTI_AFFINITY]

    @property
    def preferred_affinity_terms(self) -> AffinityTerms:
        """Weighted terms of ``podAffinity``."""
        return self.terms[TermKind.PREFERRED_AFFINITY]

    @property
    def preferred_anti_affinity_terms(self) -> AffinityTerms:
        """Weighted terms of ``podAntiAffinity``."""
        return self.terms[TermKind.PREFERRED_ANTI_AFFINITY]

    @property
    def scheduler_name(self) -> str:
        """The profile that schedules its pods."""
        return self.spec.scheduler_name

    @property
    def preemption_policy(self) -> str:
        """``PreemptLowerPriority`` (the default) or ``Never``."""
        return self.spec.preemption_policy or "PreemptLowerPriority"

    def has_usage_of(self, other: PodClass) -> bool:
        """Whether its pods use as much of their node as those of another class."""
        return self is other or (
            self.requests == other.requests
            and self.nonzero_cpu_milli == other.nonzero_cpu_milli
            and self.nonzero_memory_bytes == other.nonzero_memory_bytes
            and self.host_ports == other.host_ports
        )

    def __repr__(self) -> str:
        return f"PodClass({self.id}, {self.namespace!r}, {self.labels!r})"


class PodClasses:
    """All classes that have pods; a class without pods is garbage-collected.

    Args:
        pod_level: Whether resources of the pod as a whole count (gate PodLevelResources).
    """

    __slots__ = ("_classes", "_demands", "_ids", "_pod_level")

    def __init__(self, *, pod_level: bool = True) -> None:
        self._pod_level = pod_level
        self._classes: WeakValueDictionary[bytes, PodClass] = WeakValueDictionary()
        self._demands: WeakValueDictionary[bytes, NodeDemand] = WeakValueDictionary()
        self._ids = count(1)

    def __len__(self) -> int:
        return len(self._classes)

    def class_of(self, pod: Pod) -> PodClass:
        """The class of a pod.

        Raises:
            InvalidObject: A field that scheduling reads is invalid.
        """
        if not self._pod_level and pod.spec.resources is not None:
            pod = _without_pod_level(pod)
        spec = class_spec(pod)
        key = _class_key(pod, spec)
        known = self._classes.get(key)
        if known is None:
            known = PodClass(next(self._ids), pod, spec, self._demand_of(pod, spec))
            self._classes[key] = known
        return known

    def _demand_of(self, pod: Pod, spec: PodSpec) -> NodeDemand:
        key = _demand_key(pod, spec)
        known = self._demands.get(key)
        if known is None:
            known = self._demands[key] = NodeDemand(next(self._ids), pod, spec)
        return known


def _without_pod_level(pod: Pod) -> Pod:
    replaced = msgspec.structs.replace
    return replaced(
        pod,
        spec=replaced(pod.spec, resources=None),
        status=replaced(pod.status, resources=None, allocated_resources=None),
    )


def class_spec(pod: Pod) -> PodSpec:
    """The spec without fields that differ between pods of a template and decide nothing."""
    spec = pod.spec
    if spec.scheduling_group is not None:
        spec = msgspec.structs.replace(spec, scheduling_group=None)
    if spec.volumes:
        volumes = tuple(each for each in spec.volumes if each.image is not None)
        spec = msgspec.structs.replace(spec, node_name="", volumes=volumes)
    elif spec.node_name:
        spec = msgspec.structs.replace(spec, node_name="")
    if pod.status.phase == _RUNNING and spec.affinity and spec.affinity.node_affinity:
        # A DaemonSet pins each pod to its node by affinity. Once the pod runs, this affinity is
        # not read any more; without it all pods of the DaemonSet are one class.
        spec = msgspec.structs.replace(spec, affinity=_without_node_affinity(spec.affinity))
    return spec


def _class_key(pod: Pod, spec: PodSpec) -> bytes:
    metadata = pod.metadata
    parts: list[object] = [metadata.namespace, metadata.labels, spec]
    if metadata.owner_references:
        owner = _selecting_controller(metadata)
        if owner:
            parts += (owner.kind, owner.name, owner.uid)
    parts += _resize_parts(pod)
    return _ENCODER.encode(parts)


def _demand_key(pod: Pod, spec: PodSpec) -> bytes:
    affinity = spec.affinity
    if affinity is not None:
        alone = affinity.node_affinity
        affinity = None if alone is None else Affinity(node_affinity=alone)
    alike = msgspec.structs.replace(spec, affinity=affinity, topology_spread_constraints=())
    return _ENCODER.encode([alike, *_resize_parts(pod)])


def _selecting_controller(metadata: ObjectMeta) -> OwnerReference | None:
    owner = controller_of(metadata)
    if owner is None or (owner.api_version, owner.kind) not in _SELECTING_CONTROLLERS:
        return None
    return owner


def _resize_parts(pod: Pod) -> list[object]:
    """The parts of the status that affect the requests: none unless a resize is under way."""
    status = pod.status
    parts: list[object] = []
    if status.container_statuses or status.init_container_statuses:
        parts += _differing_statuses(pod)
    if status.resources or status.allocated_resources:
        parts += (status.resources, status.allocated_resources)
    for condition in status.conditions:
        if condition.type == _RESIZE_PENDING:
            parts.append(condition.reason)
    return parts


def _differing_statuses(pod: Pod) -> list[ContainerStatus]:
    """The statuses of containers whose resources are not those that the spec requests."""
    spec, status = pod.spec, pod.status
    requests = {each.name: each.resources.requests for each in spec.containers}
    if spec.init_containers:
        requests |= {each.name: each.resources.requests for each in spec.init_containers}
    return [
        each
        for each in (*status.container_statuses, *status.init_container_statuses)
        if _differs(each, requests)
    ]


def _differs(status: ContainerStatus, requests: dict[str, dict[str, str | int | float]]) -> bool:
    wanted = requests.get(status.name)
    if status.allocated_resources is not None and status.allocated_resources != wanted:
        return True
    return status.resources is not None and status.resources.requests != wanted


def _without_node_affinity(affinity: Affinity) -> Affinity | None:
    if affinity.pod_affinity is None and affinity.pod_anti_affinity is None:
        return None
    return msgspec.structs.replace(affinity, node_affinity=None)


def _host_ports(spec: PodSpec) -> tuple[HostPort, ...]:
    """Host ports of containers and sidecars (``schedutil.GetHostPorts``)."""
    sidecars = [each for each in spec.init_containers if each.restart_policy == "Always"]
    return tuple(_ports_of((*sidecars, *spec.containers)))


def _ports_of(containers: Iterable[Container]) -> Iterable[HostPort]:
    for container in containers:
        for port in container.ports:
            if port.host_port > 0:
                yield (port.host_ip or ANY_IP, port.protocol or "TCP", port.host_port)


def _images(spec: PodSpec) -> tuple[str, ...]:
    containers = [each.image for each in (*spec.init_containers, *spec.containers)]
    volumes = [each.image.reference for each in spec.volumes if each.image is not None]
    return (*containers, *volumes)


def _terms(pod: Pod) -> dict[TermKind, AffinityTerms]:
    try:
        return compile_affinity_terms(pod.spec.affinity, pod.metadata.namespace)
    except InvalidTerm as error:
        raise InvalidObject(
            kind="Pod",
            name=pod.metadata.namespaced_name,
            field=f"spec.affinity.{error.field}",
            value=error.message,
            expectation="a valid label selector",
            uid=pod.metadata.uid,
        ) from error
