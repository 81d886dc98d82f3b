"""InterPodAffinity decides and scores as its scalar twin after any changes."""

from __future__ import annotations

from functools import partial
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from stowage.framework import CycleState
from stowage.plugins.inter_pod_affinity import (
    InterPodAffinity,
    InterPodAffinityArgs,
    InterPodAffinityPriority,
    domain_sums,
    pre_filter,
    score,
)
from stowage.state import snapshot as snapshots
from stowage.state.pods import pod_counts
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import NodeView, Snapshot
from tests.properties.plugin_life import Asking, check_a_life
from tests.support.generators.random_cluster import RandomCluster
from tests.support.mirrored_cluster import MirroredCluster, existing_nodes, verdicts_by_node
from tests.support.plugins.shared_scores import check_shared_scores
from tests.support.scalar import inter_pod_affinity as twin
from tests.support.scalar.cluster import PlainCluster
from tests.support.scalar.legacy_scores import affinity_points

arguments = st.builds(
    InterPodAffinityArgs,
    hard_pod_affinity_weight=st.sampled_from((0, 1, 1, 100)),
    ignore_preferred_terms_of_existing_pods=st.booleans(),
)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32 - 1), arguments)
def test_verdicts_and_scores_equal_the_twins(seed: int, args: InterPodAffinityArgs) -> None:
    """One plugin and one cache see all changes; the twin starts afresh each time."""
    _check_a_life(seed, args)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32 - 1), arguments)
def test_scores_by_many_terms_equal_the_twins(seed: int, args: InterPodAffinityArgs) -> None:
    """Few terms already take the way of those that are too many to count the pods of each."""
    with patch.object(score, "_MANY_TERMS", 0), patch.object(pre_filter, "_MANY_TERMS", 0):
        _check_a_life(seed, args)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32 - 1), arguments)
def test_scores_in_few_of_many_domains_equal_the_twins(
    seed: int, args: InterPodAffinityArgs
) -> None:
    """Any number of domains already counts as many, and any part of them as few."""
    with (
        patch.object(domain_sums, "MANY_DOMAINS", 0),
        patch.object(pod_counts, "MANY_DOMAINS", 0),
        patch.object(pod_counts, "_SHARE", 1),
    ):
        _check_a_life(seed, args)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1), arguments)
def test_scores_by_domain_equal_the_twins(seed: int, args: InterPodAffinityArgs) -> None:
    """Labels with many values for the number of nodes count as having few."""
    with patch.object(snapshots, "_NODES_A_VALUE", 0):
        _check_a_life(seed, args)


def _check_a_life(seed: int, args: InterPodAffinityArgs) -> None:
    plugin = InterPodAffinity(args)
    check_a_life(
        RandomCluster(seed, affinity=True),
        partial(_check_filter, plugin),
        partial(_check_score, plugin),
    )


def _check_filter(
    plugin: InterPodAffinity, plain: PlainCluster, snapshot: Snapshot, asking: Asking
) -> None:
    (pod, info), state = asking, CycleState()
    expected = twin.pre_filter(plain, pod)
    answer = plugin.pre_filter(state, info, snapshot)
    assert answer.status.is_skip == (expected is None)
    if expected is None:
        return
    view = existing_nodes(snapshot)
    found = verdicts_by_node(plugin.filter(state, info, view), view)
    wanted = {
        name: twin.filter_node(plain, expected, pod, node) for name, node in plain.nodes.items()
    }
    assert found == {name: reason for name, reason in wanted.items() if reason}


def _check_score(
    plugin: InterPodAffinity, cluster: MirroredCluster, asking: Asking, view: NodeView
) -> None:
    (pod, info), state = asking, CycleState()
    weights = twin.Weights(
        plugin.args.hard_pod_affinity_weight, plugin.args.ignore_preferred_terms_of_existing_pods
    )
    expected = twin.pre_score(cluster.plain, weights, pod)
    assert plugin.pre_score(state, info, view).is_skip == (expected is None)
    if expected is None:
        return
    raw = plugin.score(state, info, view)
    wanted = [twin.score(expected, cluster.plain.nodes[name]) for name in view.names]
    assert raw.tolist() == wanted
    assert plugin.normalize_score(state, info, view, raw).tolist() == twin.normalized(wanted)
    check_shared_scores(plugin, state, info, view, raw)
    _check_priority_of_1_12(InterPodAffinityPriority(plugin.args), info, view, wanted)


def _check_priority_of_1_12(
    plugin: InterPodAffinityPriority, info: PodInfo, view: NodeView, wanted: list[int]
) -> None:
    state = CycleState()
    assert plugin.pre_score(state, info, view).is_success
    raw = plugin.score(state, info, view)
    assert raw.tolist() == wanted
    scores = plugin.normalize_score(state, info, view, raw).tolist()
    assert scores == [10 * points for points in affinity_points(wanted)]
