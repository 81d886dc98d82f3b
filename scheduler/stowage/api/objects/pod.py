"""Pods, with the fields that scheduling reads."""

import msgspec

from stowage.api.objects.meta import (
    ApiStruct,
    Condition,
    Int64,
    LabelSelector,
    ObjectMeta,
    Quantities,
)
from stowage.api.objects.node import NodeSelector, NodeSelectorTerm
from stowage.api.objects.volume import Volume


class ResourceClaimReference(ApiStruct, frozen=True):
    """A container's use of one of the pod's resource claims; ``request`` narrows it."""

    name: str = ""
    request: str = ""


class ResourceRequirements(ApiStruct, frozen=True):
    """Requests, limits and claims of a container or of a whole pod."""

    requests: Quantities = msgspec.field(default_factory=dict)
    limits: Quantities = msgspec.field(default_factory=dict)
    claims: tuple[ResourceClaimReference, ...] = ()


class ContainerPort(ApiStruct, frozen=True):
    """A port; scheduling reads those with a ``host_port``."""

    host_port: Int64 = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    protocol: str = ""


class ContainerRestartRule(ApiStruct, frozen=True):
    """The action when a container exits, e.g. ``RestartAllContainers``."""

    action: str = ""


class Container(ApiStruct, frozen=True):
    """A container or init container; ``restart_policy`` Always makes the latter a sidecar."""

    name: str = ""
    image: str = ""
    resources: ResourceRequirements = ResourceRequirements()
    ports: tuple[ContainerPort, ...] = ()
    restart_policy: str = ""
    restart_policy_rules: tuple[ContainerRestartRule, ...] = ()


class PreferredSchedulingTerm(ApiStruct, frozen=True):
    """A node selector term that adds ``weight`` (1..100) to the nodes it matches."""

    weight: Int64 = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(ApiStruct, frozen=True):
    """Required and preferred node selector terms; absent and empty required terms differ."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: (
        tuple[PreferredSchedulingTerm, ...] | None
    ) = None


class PodAffinityTerm(ApiStruct, frozen=True):
    """A term of pod affinity or anti-affinity within one value of ``topology_key``."""

    topology_key: str = ""
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None


class WeightedPodAffinityTerm(ApiStruct, frozen=True):
    """A pod affinity term that adds ``weight`` (1..100) per matching pod."""

    weight: Int64 = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(ApiStruct, frozen=True):
    """Required and preferred terms; ``podAffinity`` and ``podAntiAffinity`` share this shape."""

    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] = ()
    preferred_during_scheduling_ignored_during_execution: tuple[WeightedPodAffinityTerm, ...] = ()


class Affinity(ApiStruct, frozen=True):
    """All affinity rules of a pod."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class Toleration(ApiStruct, frozen=True):
    """The taints that a pod tolerates; no operator means Equal, no effect means all effects."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: Int64 | None = None


class TopologySpreadConstraint(ApiStruct, frozen=True):
    """How evenly matching pods spread over the values of ``topology_key``."""

    max_skew: Int64 = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: Int64 | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] = ()


class PodSchedulingGate(ApiStruct, frozen=True):
    """A scheduling gate: the pod is not scheduled until the gate is removed."""

    name: str = ""


class PodResourceClaim(ApiStruct, frozen=True):
    """A resource claim of the pod, by name or made from a template."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSchedulingGroup(ApiStruct, frozen=True):
    """A reference to the pod group of the pod."""

    pod_group_name: str | None = None


class PodSpec(ApiStruct, frozen=True):
    """PodSpec; an absent and an empty ``node_selector`` differ."""

    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    node_name: str = ""
    scheduler_name: str = "default-scheduler"
    priority: Int64 | None = None
    preemption_policy: str | None = None
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    overhead: Quantities = msgspec.field(default_factory=dict)
    resources: ResourceRequirements | None = None
    volumes: tuple[Volume, ...] = ()
    scheduling_gates: tuple[PodSchedulingGate, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()
    scheduling_group: PodSchedulingGroup | None = None
    host_network: bool = False
    host_users: bool | None = None


class ContainerStatus(ApiStruct, frozen=True):
    """Resources that the kubelet allocated to a container and has put into effect."""

    name: str = ""
    allocated_resources: Quantities | None = None
    resources: ResourceRequirements | None = None


class PodResourceClaimStatus(ApiStruct, frozen=True):
    """The claim generated for an entry of ``spec.resource_claims``."""

    name: str = ""
    resource_claim_name: str | None = None


class ContainerExtendedResourceRequest(ApiStruct, frozen=True):
    """The request of a claim by which a container gets an extended resource."""

    container_name: str = ""
    resource_name: str = ""
    request_name: str = ""


class PodExtendedResourceClaimStatus(ApiStruct, frozen=True):
    """The claim for the extended resources of a pod that DRA serves."""

    request_mappings: tuple[ContainerExtendedResourceRequest, ...] = ()
    resource_claim_name: str = ""


class PodStatus(ApiStruct, frozen=True):
    """PodStatus."""

    phase: str = ""
    conditions: tuple[Condition, ...] = ()
    nominated_node_name: str = ""
    start_time: str | None = None
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()
    extended_resource_claim_status: PodExtendedResourceClaimStatus | None = None
    resources: ResourceRequirements | None = None
    allocated_resources: Quantities | None = None
    observed_generation: Int64 = 0


class Pod(ApiStruct, frozen=True):
    """A pod."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()
