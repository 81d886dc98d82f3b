"""Hypothesis strategies for clusters where resources, ports, taints, labels and images matter."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from hypothesis import strategies as st

from stowage.api.config.types import UtilizationShapePoint
from stowage.api.objects.meta import Condition
from stowage.api.objects.node import (
    ContainerImage,
    Node,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Taint,
)
from stowage.api.objects.pod import (
    Affinity,
    ContainerPort,
    NodeAffinity,
    Pod,
    PreferredSchedulingTerm,
    ResourceRequirements,
    Toleration,
)
from stowage.plugins.node_resources.args import (
    RequestedToCapacityRatioParam,
    ResourceSpec,
    ScoringStrategy,
)
from tests.support.builders import make_node, make_pod
from tests.support.mirrored_cluster import MirroredCluster

GPU = "example.com/gpu"
NODE_NAMES = tuple(f"n{index}" for index in range(8))
POD_NAMES = tuple(f"p{index}" for index in range(16))
_MEBIBYTE = 1024 * 1024
_IMAGES = ("registry.example/small:1", "registry.example/large:1", "registry.example/plain:latest")
_POD_LEVEL = ResourceRequirements(requests={"memory": "2Gi"})
Change = Callable[[MirroredCluster], None]

_images = st.lists(
    st.sampled_from(
        [
            ContainerImage((name,), size * _MEBIBYTE)
            for name, size in zip(_IMAGES, (40, 900, 300), strict=True)
        ]
    ),
    max_size=3,
    unique=True,
)
_taints = st.lists(
    st.builds(
        Taint,
        key=st.sampled_from(("dedicated", "slow")),
        value=st.sampled_from(("", "a")),
        effect=st.sampled_from(("NoSchedule", "NoExecute", "PreferNoSchedule")),
    ),
    max_size=3,
)
_tolerations = st.lists(
    st.builds(
        Toleration,
        key=st.sampled_from(("", "dedicated", "slow", "node.kubernetes.io/unschedulable")),
        operator=st.sampled_from(("", "Equal", "Exists")),
        value=st.sampled_from(("", "a")),
        effect=st.sampled_from(("", "NoSchedule", "PreferNoSchedule")),
    ),
    max_size=2,
)
_requirements = st.one_of(
    st.builds(
        NodeSelectorRequirement,
        key=st.sampled_from(("disk", "cores", "absent")),
        operator=st.sampled_from(("In", "NotIn")),
        values=st.sampled_from((("ssd",), ("hdd", "8"), ("4",))),
    ),
    st.builds(
        NodeSelectorRequirement,
        key=st.sampled_from(("disk", "cores", "absent")),
        operator=st.sampled_from(("Exists", "DoesNotExist")),
    ),
    st.builds(
        NodeSelectorRequirement,
        key=st.just("cores"),
        operator=st.sampled_from(("Gt", "Lt")),
        values=st.sampled_from((("4",), ("6",))),
    ),
)
_fields = st.builds(
    NodeSelectorRequirement,
    key=st.just("metadata.name"),
    operator=st.sampled_from(("In", "NotIn")),
    values=st.sampled_from(NODE_NAMES).map(lambda name: (name,)),
)
_terms = st.builds(
    NodeSelectorTerm,
    match_expressions=st.lists(_requirements, max_size=2).map(tuple),
    match_fields=st.lists(_fields, max_size=1).map(tuple),
)
_affinities = st.builds(
    Affinity,
    node_affinity=st.builds(
        NodeAffinity,
        required_during_scheduling_ignored_during_execution=st.one_of(
            st.none(),
            st.builds(NodeSelector, node_selector_terms=st.lists(_terms, max_size=2).map(tuple)),
        ),
        preferred_during_scheduling_ignored_during_execution=st.lists(
            st.builds(
                PreferredSchedulingTerm,
                weight=st.sampled_from((1, 3, 50)),
                preference=_terms,
            ),
            max_size=2,
        ).map(tuple),
    ),
)
_ports = st.lists(
    st.builds(
        ContainerPort,
        host_port=st.sampled_from((80, 443)),
        host_ip=st.sampled_from(("", "10.0.0.1", "10.0.0.2")),
        protocol=st.sampled_from(("TCP", "UDP")),
    ),
    max_size=2,
)
_requests = st.fixed_dictionaries(
    {},
    optional={
        "cpu": st.sampled_from(("0", "1m", "500m", "1500m", "3")),
        "memory": st.sampled_from(("0", "100Mi", "1Gi", "3Gi")),
        "ephemeral-storage": st.sampled_from(("1Gi", "20Gi")),
        GPU: st.sampled_from(("0", "1", "2")),
    },
)
_resources = st.lists(
    st.builds(
        ResourceSpec,
        name=st.sampled_from(("cpu", "memory", "ephemeral-storage", GPU, "pods")),
        weight=st.sampled_from((1, 2, 7)),
    ),
    max_size=4,
    unique_by=lambda resource: resource.name,
).map(tuple)
shapes = st.lists(
    st.builds(UtilizationShapePoint, utilization=st.integers(0, 100), score=st.integers(0, 10)),
    min_size=1,
    max_size=4,
    unique_by=lambda point: point.utilization,
).map(lambda points: tuple(sorted(points, key=lambda point: point.utilization)))

scoring_strategies = st.builds(
    ScoringStrategy,
    type=st.sampled_from(("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")),
    resources=_resources,
    requested_to_capacity_ratio=st.builds(RequestedToCapacityRatioParam, shape=shapes),
)
balanced_resources = _resources.map(
    lambda resources: tuple(ResourceSpec(resource.name) for resource in resources)
)


_conditions = st.lists(
    st.builds(
        Condition,
        type=st.sampled_from(
            (
                "Ready",
                "OutOfDisk",
                "NetworkUnavailable",
                "MemoryPressure",
                "DiskPressure",
                "PIDPressure",
            )
        ),
        status=st.sampled_from(("True", "False", "Unknown")),
    ),
    max_size=4,
    unique_by=lambda condition: condition.type,
).map(tuple)


@st.composite
def nodes(draw: st.DrawFn) -> Node:
    """A small node; any of its resources may be missing."""
    more = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "ephemeral-storage": st.sampled_from(("0", "10Gi")),
                GPU: st.sampled_from(("0", "2")),
            },
        )
    )
    return make_node(
        draw(st.sampled_from(NODE_NAMES)),
        cpu=draw(st.sampled_from(("0", "2", "4"))),
        memory=draw(st.sampled_from(("0", "2Gi", "4Gi"))),
        pods=draw(st.sampled_from((1, 3, 10))),
        allocatable=more,
        labels=draw(
            st.fixed_dictionaries(
                {},
                optional={
                    "disk": st.sampled_from(("ssd", "hdd")),
                    "cores": st.sampled_from(("4", "8", "many")),
                },
            )
        ),
        taints=draw(_taints),
        unschedulable=draw(st.sampled_from((False, False, True))),
        images=draw(_images),
        declared_features=draw(
            st.sampled_from(((), ("UserNamespacesHostNetworkSupport",), ("Other",)))
        ),
        conditions=draw(_conditions),
    )


@st.composite
def pods(draw: st.DrawFn) -> Pod:
    """A pod with any of the fields that the simple plugins read."""
    host = draw(st.sampled_from((False, False, True)))
    pod_level = draw(st.sampled_from((None, None, None, _POD_LEVEL)))
    return make_pod(
        draw(st.sampled_from(POD_NAMES)),
        requests=draw(_requests),
        images=draw(
            st.lists(st.sampled_from((*_IMAGES, "registry.example/plain")), min_size=1, max_size=2)
        ),
        affinity=draw(st.one_of(st.none(), _affinities)),
        node_selector=draw(st.sampled_from(({}, {}, {"disk": "ssd"}))),
        tolerations=draw(_tolerations),
        host_ports=draw(_ports),
        host_network=host,
        host_users=False if host else None,
        resources=pod_level,
    )


_amounts: st.SearchStrategy[dict[str, str | int | float]] = st.fixed_dictionaries(
    {},
    optional={
        "cpu": st.sampled_from(("0", "1m", "3")),
        "memory": st.sampled_from(("0", "1Gi", "3Gi")),
    },
)


@st.composite
def limited_pods(draw: st.DrawFn) -> Pod:
    """A pod whose containers may request or limit cpu and memory, or neither."""
    pod = draw(pods())
    containers = tuple(
        msgspec.structs.replace(
            each, resources=ResourceRequirements(draw(_amounts), draw(_amounts))
        )
        for each in pod.spec.containers
    )
    spec = msgspec.structs.replace(pod.spec, containers=containers)
    return msgspec.structs.replace(pod, spec=spec)


_placed = st.tuples(pods(), st.sampled_from(NODE_NAMES))
changes: st.SearchStrategy[Change] = st.one_of(
    _placed.map(lambda pair: lambda cluster: cluster.bind(*pair)),
    _placed.map(lambda pair: lambda cluster: cluster.bind(*pair)),
    st.sampled_from(POD_NAMES).map(lambda name: lambda cluster: _drop_pod(cluster, name)),
    nodes().map(lambda node: lambda cluster: cluster.update_node(node)),
    st.sampled_from(NODE_NAMES).map(lambda name: lambda cluster: _drop_node(cluster, name)),
)


def _drop_pod(cluster: MirroredCluster, name: str) -> None:
    uid = make_pod(name).metadata.uid
    if uid in cluster.plain.pods:
        cluster.remove_pod(uid)


def _drop_node(cluster: MirroredCluster, name: str) -> None:
    if name in cluster.plain.nodes:
        cluster.remove_node(name)
