"""The predicates of kube-scheduler 1.12 reject as their scalar twins."""

from __future__ import annotations

from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stowage.api.objects.meta import Condition
from stowage.api.objects.node import Node
from stowage.api.objects.pod import Pod
from stowage.api.status import Code
from stowage.framework import CycleState, NoArgs
from stowage.framework.extension_points import FilterPlugin
from stowage.plugins import in_tree_registry
from stowage.plugins.node_label import NodeLabel, NodeLabelArgs
from stowage.plugins.service_affinity import ServiceAffinity, ServiceAffinityArgs
from tests.support.builders import HOSTNAME, ZONE, label_selector, make_node, make_pod
from tests.support.generators import placement_strategies as some
from tests.support.generators.random_cluster import RACK, RandomCluster
from tests.support.mirrored_cluster import MirroredCluster, existing_nodes, without_pods_of_node
from tests.support.scalar import legacy_filters as twins
from tests.support.scalar import legacy_scores
from tests.unit.plugins.single_plugin import refused


@pytest.mark.parametrize("name", twins.CONDITION_FILTERS)
@settings(max_examples=40, deadline=None)
@given(
    st.lists(some.nodes(), min_size=1, max_size=30),
    st.lists(some.limited_pods(), min_size=1, max_size=2),
)
def test_condition_filters_equal_their_twins(
    name: str, history: list[Node], pending: list[Pod]
) -> None:
    """One plugin and one cache see every version of the nodes; the twin starts afresh."""
    plugin = cast("FilterPlugin", in_tree_registry()[name].construct(NoArgs()))
    twin, cluster = twins.CONDITION_FILTERS[name], MirroredCluster()
    for node in history:
        cluster.update_node(node)
        for pod in pending:
            found = refused(plugin, cluster, pod)
            wanted = {each: twin(pod, known) for each, known in cluster.plain.nodes.items()}
            assert {each: set(status.reasons) for each, status in found.items()} == {
                each: reasons for each, reasons in wanted.items() if reasons
            }
            assert all(
                status.code.name == "UNSCHEDULABLE_AND_UNRESOLVABLE" for status in found.values()
            )


def test_a_removed_node_leaves_no_failure_to_the_next_node_of_its_row() -> None:
    plugin = cast("FilterPlugin", in_tree_registry()["CheckNodeCondition"].construct(NoArgs()))
    cluster = MirroredCluster()
    bad = (Condition("Ready", "False"),)
    for name, reported in (("a", bad), ("b", ())):
        cluster.update_node(make_node(name, conditions=reported))
        assert list(refused(plugin, cluster, make_pod("p"))) == (["a"] if reported else [])
        cluster.remove_node(name)


labels = st.lists(st.sampled_from((ZONE, RACK, HOSTNAME, "none")), max_size=2, unique=True)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32 - 1), labels, labels)
def test_node_label_equals_its_twin(seed: int, present: list[str], absent: list[str]) -> None:
    """One plugin and one cache see all changes; the twin starts afresh each time."""
    world = RandomCluster(seed)
    keys = tuple(present), tuple(absent)
    plugin, pod = NodeLabel(NodeLabelArgs(*keys, *keys)), world.pending_pod("pending")
    for _ in range(6):
        cluster = world.cluster
        found = refused(plugin, cluster, pod)
        nodes = existing_nodes(cluster.snapshot())
        scores = plugin.score(CycleState(), cluster.info(pod), nodes).tolist()
        for name, score in zip(nodes.names, scores, strict=True):
            own = cluster.plain.nodes[name].metadata.labels
            reasons = set(found[name].reasons) if name in found else set()
            assert reasons == twins.node_label(own, *keys)
            assert score == legacy_scores.node_label(own, *keys)
        world.happen()


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32 - 1), labels, labels)
def test_service_affinity_equals_its_twin(seed: int, together: list[str], apart: list[str]) -> None:
    """One plugin and one cache see all changes; the twin starts afresh each time."""
    world = RandomCluster(seed, spread=True)
    plugin = ServiceAffinity(ServiceAffinityArgs(tuple(together), tuple(apart)))
    pending = [world.pending_pod(f"pending-{index}") for index in range(3)]
    for _ in range(6):
        for pod in pending:
            _check_service_filter(plugin, world.cluster, pod, together)
            _check_service_score(plugin, world.cluster, pod, apart)
        world.happen()


def _check_service_filter(
    plugin: ServiceAffinity, cluster: MirroredCluster, pod: Pod, keys: list[str]
) -> None:
    order = existing_nodes(cluster.snapshot()).names
    found = refused(plugin, cluster, pod)
    wanted = twins.service_affinity(cluster.plain, pod, order, keys)
    assert {name: set(status.reasons) for name, status in found.items()} == {
        name: reasons for name, reasons in wanted.items() if reasons
    }
    assert {status.code for status in found.values()} <= {Code.UNSCHEDULABLE}


def _check_service_score(
    plugin: ServiceAffinity, cluster: MirroredCluster, pod: Pod, keys: list[str]
) -> None:
    view, info, state = existing_nodes(cluster.snapshot()), cluster.info(pod), CycleState()
    nodes = [cluster.plain.nodes[name] for name in view.names]
    counts = [legacy_scores.service_pods(cluster.plain, pod, node) for node in nodes]
    raw = plugin.score(state, info, view)
    assert raw.tolist() == counts
    by_label = [legacy_scores.spreading_points(nodes, counts, key) for key in keys]
    want = [10 * sum(points) // max(len(keys), 1) for points in zip(*by_label, strict=True)]
    found = plugin.normalize_score(state, info, view, raw).tolist()
    assert found == (want if keys else [0] * len(nodes))


def test_a_removed_pod_of_the_service_frees_the_choice_in_a_what_if() -> None:
    """Preemption asks about the cluster without the pods of a node."""
    web = {"app": "web"}
    cluster = MirroredCluster([make_node("a", zone="a"), make_node("b", zone="b")])
    cluster.update_workload("Service", "default", "web", label_selector(web))
    cluster.bind(make_pod("first", labels=web), "a")
    plugin, pod = ServiceAffinity(ServiceAffinityArgs((ZONE,))), make_pod("p", labels=web)
    assert list(refused(plugin, cluster, pod)) == ["b"]
    without = existing_nodes(without_pods_of_node(cluster.snapshot(), "a"))
    assert plugin.filter(CycleState(), cluster.info(pod), without).accepts_all
