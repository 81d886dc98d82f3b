"""The simple plugins decide and score as their scalar twins, node by node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stowage.api.config.loading import KubeSchedulerProfile
from stowage.api.config.types import UtilizationShapePoint
from stowage.api.objects.node import Node
from stowage.api.objects.pod import Pod
from stowage.framework import CycleState, NodeVerdicts, build_profile
from stowage.framework.extension_points import FilterPlugin, PreFilterPlugin, ScorePlugin
from stowage.framework.profile.registry import NoArgs
from stowage.framework.runtime.class_cache import ClassCache
from stowage.framework.runtime.filter_run import FilterRun
from stowage.framework.runtime.pre_filter_run import run_pre_filter_plugins
from stowage.framework.scores import default_normalize_score, normalize_points
from stowage.plugins import in_tree_registry
from stowage.plugins.image_locality import ImageLocality
from stowage.plugins.node_affinity import NodeAffinity, NodeAffinityArgs, NodeAffinityPriority
from stowage.plugins.node_resources import (
    BalancedAllocation,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFit,
    NodeResourcesFitArgs,
    RequestedToCapacityRatioPriorityArgs,
    requested_to_capacity_ratio_priority,
)
from stowage.plugins.node_resources.args import ResourceSpec, ScoringStrategy
from stowage.plugins.taint_toleration import TaintToleration, TaintTolerationPriority
from tests.support.generators import placement_strategies as some
from tests.support.mirrored_cluster import MirroredCluster, existing_nodes
from tests.support.scalar import legacy_scores, node_filters, node_scores
from tests.support.scalar.cluster import PlainCluster

clusters = st.tuples(st.lists(some.nodes(), max_size=6), st.lists(some.changes, max_size=10))
ScalarScore = Callable[[Pod, Node, PlainCluster], int]


def _build(parts: tuple[list[Node], Sequence[some.Change]]) -> MirroredCluster:
    first, happened = parts
    cluster = MirroredCluster(first)
    for change in happened:
        change(cluster)
    return cluster


@settings(max_examples=60, deadline=None)
@given(clusters, some.pods())
def test_every_filter_equals_its_twin(
    parts: tuple[list[Node], list[some.Change]], pod: Pod
) -> None:
    cluster = _build(parts)
    snapshot, info = cluster.snapshot(), cluster.info(pod)
    plugins = build_profile(KubeSchedulerProfile(), in_tree_registry()).instances
    judged = [plugins[name] for name in _TWINS]
    state = CycleState()
    pre_filters = [plugin for plugin in judged if isinstance(plugin, PreFilterPlugin)]
    run_pre_filter_plugins(pre_filters, state, info, snapshot)
    filters = [plugin for plugin in judged if isinstance(plugin, FilterPlugin)]
    run = FilterRun(filters, ClassCache(0))
    nodes = existing_nodes(snapshot)
    verdicts = NodeVerdicts(nodes, run.judge(run.active(state).all, state, info, nodes))
    by_plugin = {answer.plugin: answer for answer in verdicts.answers}
    for name, twin in _TWINS.items():
        for position, node_name in enumerate(nodes.names):
            want = twin(pod, cluster.plain.nodes[node_name], cluster.plain)
            if name in by_plugin:
                status = by_plugin[name].status(position)
                assert (set(status.reasons), status.code.value == 3) == want, (name, node_name)
            elif name != "NodeAffinity":
                assert not want[0], f"{name} skipped, but its twin refuses {node_name}"


@settings(max_examples=40, deadline=None)
@given(clusters, some.pods(), some.scoring_strategies)
def test_fit_scores_equal_the_twins(
    parts: tuple[list[Node], list[some.Change]], pod: Pod, strategy: ScoringStrategy
) -> None:
    plugin = NodeResourcesFit(NodeResourcesFitArgs(scoring_strategy=strategy))
    _compare_scores(_build(parts), pod, plugin, node_scores.fit_score(strategy))


@settings(max_examples=40, deadline=None)
@given(clusters, some.pods(), some.balanced_resources)
def test_balanced_allocation_scores_equal_the_twins(
    parts: tuple[list[Node], list[some.Change]], pod: Pod, resources: tuple[ResourceSpec, ...]
) -> None:
    args = NodeResourcesBalancedAllocationArgs(resources=resources)
    twin = node_scores.balanced_allocation(args.scored_resources)
    _compare_scores(_build(parts), pod, BalancedAllocation(args), twin)


@settings(max_examples=40, deadline=None)
@given(
    clusters,
    some.pods(),
    some.scoring_strategies,
    st.lists(st.integers(0, 20), min_size=1, max_size=12),
)
def test_the_score_of_a_single_node_equals_its_score_among_all_nodes(
    parts: tuple[list[Node], list[some.Change]],
    pod: Pod,
    strategy: ScoringStrategy,
    places: list[int],
) -> None:
    """The plugin caches the state of single nodes; the twin caches nothing."""
    cluster = _build(parts)
    names = existing_nodes(cluster.snapshot()).names
    args = NodeResourcesBalancedAllocationArgs(resources=strategy.scored_resources)
    plugins: list[tuple[ScorePlugin, ScalarScore]] = [
        (
            NodeResourcesFit(NodeResourcesFitArgs(scoring_strategy=strategy)),
            node_scores.fit_score(strategy),
        ),
        (BalancedAllocation(args), node_scores.balanced_allocation(args.scored_resources)),
    ]
    for number, place in enumerate(places if names else ()):
        name = names[place % len(names)]
        cluster.bind(_twin_of(pod, f"placed-{number}"), name)
        snapshot = cluster.snapshot()
        row = snapshot.row_of(name)
        assert row is not None
        for plugin, twin in plugins:
            alone = snapshot.view(np.array([row]))
            got = plugin.score(CycleState(), cluster.info(pod), alone).tolist()
            assert got == [twin(pod, cluster.plain.nodes[name], cluster.plain)]


def _twin_of(pod: Pod, name: str) -> Pod:
    metadata = msgspec.structs.replace(pod.metadata, name=name, uid=f"uid-{name}")
    return msgspec.structs.replace(pod, metadata=metadata)


@settings(max_examples=40, deadline=None)
@given(clusters, some.pods())
def test_taint_and_image_scores_equal_the_twins(
    parts: tuple[list[Node], list[some.Change]], pod: Pod
) -> None:
    cluster = _build(parts)
    _compare_scores(cluster, pod, TaintToleration(NoArgs()), node_scores.taint_toleration)
    _compare_scores(cluster, pod, TaintTolerationPriority(NoArgs()), node_scores.taint_toleration)
    _compare_scores(cluster, pod, ImageLocality(NoArgs()), node_scores.image_locality)


@pytest.mark.parametrize("name", legacy_scores.RESOURCE_PRIORITIES)
@settings(max_examples=40, deadline=None)
@given(clusters, some.limited_pods())
def test_priorities_of_1_12_are_ten_times_the_points_of_their_twins(
    name: str, parts: tuple[list[Node], list[some.Change]], pod: Pod
) -> None:
    plugin = cast("ScorePlugin", in_tree_registry()[name].construct(NoArgs()))
    _compare_scores(_build(parts), pod, plugin, _ten_times(legacy_scores.RESOURCE_PRIORITIES[name]))


@settings(max_examples=40, deadline=None)
@given(clusters, some.pods(), some.shapes)
def test_the_ratio_priority_of_1_12_is_ten_times_the_points_of_its_twin(
    parts: tuple[list[Node], list[some.Change]],
    pod: Pod,
    shape: tuple[UtilizationShapePoint, ...],
) -> None:
    plugin = requested_to_capacity_ratio_priority(RequestedToCapacityRatioPriorityArgs(shape))
    twin = _ten_times(legacy_scores.requested_to_capacity_ratio(shape))
    _compare_scores(_build(parts), pod, plugin, twin)


def _ten_times(points: ScalarScore) -> ScalarScore:
    return lambda pod, node, cluster: 10 * points(pod, node, cluster)


@settings(max_examples=40, deadline=None)
@given(clusters, some.pods())
def test_node_affinity_scores_equal_the_twins(
    parts: tuple[list[Node], list[some.Change]], pod: Pod
) -> None:
    cluster = _build(parts)
    plugin = NodeAffinity(NodeAffinityArgs())
    state, nodes = CycleState(), existing_nodes(cluster.snapshot())
    if plugin.pre_score(state, cluster.info(pod), nodes).is_skip:
        affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
        assert not (affinity and affinity.preferred_during_scheduling_ignored_during_execution)
        return
    got = plugin.score(state, cluster.info(pod), nodes).tolist()
    want = [
        node_scores.node_affinity(pod, cluster.plain.nodes[name], cluster.plain)
        for name in nodes.names
    ]
    assert got == want
    priority = NodeAffinityPriority(NoArgs())
    assert priority.pre_score(state, cluster.info(pod), nodes).is_success
    assert priority.score(state, cluster.info(pod), nodes).tolist() == want


@given(st.lists(st.integers(0, 10**6), max_size=10), st.booleans())
def test_default_normalisation_equals_the_twin(scores: list[int], reverse: bool) -> None:
    got = default_normalize_score(np.array(scores, dtype=np.int64), reverse=reverse)
    assert got.tolist() == node_scores.default_normalize(scores, reverse=reverse)
    points = normalize_points(np.array(scores, dtype=np.int64), reverse=reverse)
    want = legacy_scores.normalized_points(scores, reverse=reverse)
    assert points.tolist() == [10 * each for each in want]


def _compare_scores(
    cluster: MirroredCluster, pod: Pod, plugin: ScorePlugin, twin: ScalarScore
) -> None:
    nodes = existing_nodes(cluster.snapshot())
    got = plugin.score(CycleState(), cluster.info(pod), nodes).tolist()
    want = [twin(pod, cluster.plain.nodes[name], cluster.plain) for name in nodes.names]
    assert dict(zip(nodes.names, got, strict=True)) == dict(zip(nodes.names, want, strict=True))


_TWINS = node_filters.FILTERS
