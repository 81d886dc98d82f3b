"""Hypothesis strategies for small clusters in which labels, selectors and domains often meet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from scheduler.api.meta import LabelSelector, LabelSelectorRequirement, OwnerReference
from scheduler.api.node import (
    Node,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Taint,
)
from scheduler.api.pod import (
    Affinity,
    NodeAffinity,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    Toleration,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from tests.support.builders import HOSTNAME, ZONE, make_namespace, make_node, make_pod
from tests.support.mirrored_cluster import MirroredCluster

RACK = "rack"
NAMESPACES = ("default", "team-a", "team-b")
NODE_NAMES = tuple(f"n{index}" for index in range(6))
POD_NAMES = tuple(f"p{index}" for index in range(12))
OWNERS = (
    OwnerReference(kind="ReplicaSet", name="web", api_version="apps/v1", controller=True),
    OwnerReference(kind="StatefulSet", name="web", api_version="apps/v1", controller=True),
    OwnerReference(kind="ReplicationController", name="web", api_version="v1", controller=True),
)
Change = Callable[[MirroredCluster], None]

labels = st.fixed_dictionaries(
    {}, optional={"app": st.sampled_from(("a", "b")), "tier": st.sampled_from(("x", "y"))}
)
topology_keys = st.sampled_from((HOSTNAME, ZONE, RACK))


def _expressions(keys: tuple[str, ...], values: tuple[str, ...]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.builds(
            LabelSelectorRequirement,
            key=st.sampled_from(keys),
            operator=st.sampled_from(("In", "NotIn")),
            values=st.lists(st.sampled_from(values), min_size=1, max_size=2).map(tuple),
        ),
        st.builds(
            LabelSelectorRequirement,
            key=st.sampled_from(keys),
            operator=st.sampled_from(("Exists", "DoesNotExist")),
        ),
    )


pod_selectors: st.SearchStrategy[LabelSelector | None] = st.one_of(
    st.none(),
    st.builds(LabelSelector),
    st.builds(LabelSelector, match_labels=labels),
    st.builds(
        LabelSelector,
        match_labels=labels,
        match_expressions=st.lists(
            _expressions(("app", "tier"), ("a", "b", "x")), min_size=1, max_size=2
        ).map(tuple),
    ),
)
namespace_selectors: st.SearchStrategy[LabelSelector | None] = st.one_of(
    st.none(),
    st.builds(LabelSelector),
    st.builds(
        LabelSelector,
        match_expressions=st.lists(_expressions(("team",), ("a", "b")), min_size=1).map(tuple),
    ),
)
affinity_terms = st.builds(
    PodAffinityTerm,
    topology_key=topology_keys,
    label_selector=pod_selectors,
    namespaces=st.lists(st.sampled_from(NAMESPACES), max_size=2, unique=True).map(tuple),
    namespace_selector=namespace_selectors,
)
pod_affinities: st.SearchStrategy[PodAffinity | None] = st.one_of(
    st.none(),
    st.builds(
        PodAffinity,
        required_during_scheduling_ignored_during_execution=st.lists(
            affinity_terms, max_size=2
        ).map(tuple),
        preferred_during_scheduling_ignored_during_execution=st.lists(
            st.builds(
                WeightedPodAffinityTerm,
                weight=st.sampled_from((1, 7, 50, 100)),
                pod_affinity_term=affinity_terms,
            ),
            max_size=2,
        ).map(tuple),
    ),
)
node_affinities: st.SearchStrategy[NodeAffinity | None] = st.one_of(
    st.none(),
    st.builds(
        NodeAffinity,
        required_during_scheduling_ignored_during_execution=st.builds(
            NodeSelector,
            node_selector_terms=st.lists(
                st.builds(
                    NodeSelectorTerm,
                    match_expressions=st.lists(
                        st.builds(
                            NodeSelectorRequirement,
                            key=st.sampled_from((ZONE, RACK)),
                            operator=st.sampled_from(("In", "NotIn")),
                            values=st.sampled_from((("a",), ("a", "r1"), ("b", "r2"))),
                        ),
                        max_size=2,
                    ).map(tuple),
                ),
                max_size=2,
            ).map(tuple),
        ),
    ),
)
affinities = st.builds(
    Affinity,
    node_affinity=node_affinities,
    pod_affinity=pod_affinities,
    pod_anti_affinity=pod_affinities,
)
spread_constraints = st.builds(
    TopologySpreadConstraint,
    max_skew=st.integers(1, 3),
    topology_key=topology_keys,
    when_unsatisfiable=st.sampled_from(("DoNotSchedule", "ScheduleAnyway")),
    label_selector=pod_selectors,
    min_domains=st.sampled_from((None, None, 1, 2, 4)),
    node_affinity_policy=st.sampled_from((None, "Honor", "Ignore")),
    node_taints_policy=st.sampled_from((None, "Honor", "Ignore")),
    match_label_keys=st.sampled_from(((), (), ("tier",), ("app", "absent"))),
)
tolerations = st.sampled_from(
    (
        (),
        (Toleration(key="dedicated", operator="Exists"),),
        (Toleration(key="dedicated", value="db", effect="NoSchedule"),),
    )
)
taints = st.sampled_from(
    (
        (),
        (),
        (Taint(key="dedicated", value="db", effect="NoSchedule"),),
        (Taint(key="dedicated", value="web", effect="NoExecute"),),
        (Taint(key="slow", effect="PreferNoSchedule"),),
    )
)
spreads = st.lists(spread_constraints, max_size=3).map(tuple)


@st.composite
def nodes(draw: st.DrawFn) -> Node:
    """A node; labels may be missing, empty or shared with another node."""
    name = draw(st.sampled_from(NODE_NAMES))
    node_labels = draw(
        st.fixed_dictionaries(
            {HOSTNAME: st.sampled_from((name, name, name, "shared", None))},
            optional={
                ZONE: st.sampled_from(("a", "b", "")),
                RACK: st.sampled_from(("r1", "r2", "r3")),
            },
        )
    )
    node = make_node(name, taints=draw(taints))
    kept = {key: value for key, value in node_labels.items() if value is not None}
    node.metadata.labels.clear()
    node.metadata.labels.update(kept)
    return node


@st.composite
def pods(draw: st.DrawFn, *, spread: bool = False, affinity: bool = False) -> Pod:
    """A pod, pending or to be placed; with constraints of the kinds asked for."""
    return make_pod(
        draw(st.sampled_from(POD_NAMES)),
        namespace=draw(st.sampled_from(NAMESPACES)),
        labels=draw(labels),
        affinity=draw(affinities) if affinity else draw(_node_affinity_only),
        tolerations=draw(tolerations),
        owner=draw(st.sampled_from((None, *OWNERS))) if spread else None,
        terminating=draw(st.booleans()) and draw(st.booleans()),
        node_selector=draw(st.sampled_from(({}, {}, {ZONE: "a"}))),
        topology_spread_constraints=draw(spreads) if spread else (),
    )


_node_affinity_only = st.one_of(st.none(), st.builds(Affinity, node_affinity=node_affinities))


def changes(*, spread: bool = False, affinity: bool = False) -> st.SearchStrategy[Change]:
    """Something happens to the cluster; half of it to pods."""
    placed = st.tuples(pods(affinity=affinity), st.sampled_from(NODE_NAMES))
    common: list[st.SearchStrategy[Change]] = [
        placed.map(lambda pair: lambda cluster: cluster.bind(*pair)),
        placed.map(lambda pair: lambda cluster: cluster.bind(*pair)),
        st.sampled_from(POD_NAMES).map(lambda name: lambda cluster: _drop_pod(cluster, name)),
        nodes().map(lambda node: lambda cluster: cluster.node_seen(node)),
        st.sampled_from(NODE_NAMES).map(lambda name: lambda cluster: _drop_node(cluster, name)),
    ]
    if affinity:
        common.append(_namespace_changes())
    if spread:
        common.append(_workload_changes())
    return st.one_of(*common)


def _namespace_changes() -> st.SearchStrategy[Change]:
    teams = st.sampled_from(({}, {"team": "a"}, {"team": "b"}, None))
    return st.tuples(st.sampled_from(NAMESPACES), teams).map(
        lambda pair: lambda cluster: _change_namespace(cluster, *pair)
    )


def _workload_changes() -> st.SearchStrategy[Change]:
    selectors = st.one_of(pod_selectors, st.just("gone"))
    kinds = ("Service", "Service", "ReplicaSet", "StatefulSet", "ReplicationController")
    return st.tuples(
        st.sampled_from(kinds),
        st.sampled_from(NAMESPACES),
        st.sampled_from(("web", "api")),
        selectors,
    ).map(lambda change: lambda cluster: _change_workload(cluster, *change))


def _drop_pod(cluster: MirroredCluster, name: str) -> None:
    uid = make_pod(name).metadata.uid
    if uid in cluster.plain.pods:
        cluster.pod_gone(uid)


def _drop_node(cluster: MirroredCluster, name: str) -> None:
    if name in cluster.plain.nodes:
        cluster.node_gone(name)


def _change_namespace(cluster: MirroredCluster, name: str, team: dict[str, str] | None) -> None:
    if team is not None:
        cluster.namespace_seen(make_namespace(name, labels=team))
    elif name in cluster.plain.namespaces:
        cluster.namespace_gone(name)


def _change_workload(
    cluster: MirroredCluster,
    kind: str,
    namespace: str,
    name: str,
    selector: LabelSelector | str | None,
) -> None:
    if isinstance(selector, str):
        if (kind, namespace, name) in cluster.plain.workloads:
            cluster.workload_gone(kind, namespace, name)
        return
    if selector is not None and kind in ("Service", "ReplicationController"):
        selector = LabelSelector(match_labels=selector.match_labels)
    cluster.workload_seen(kind, namespace, name, selector)
