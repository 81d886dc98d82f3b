from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stowage.api.config.loading import ConfigError
from stowage.api.config.types import UtilizationShapePoint
from stowage.api.decoding.strict_decoding import decode_struct
from stowage.api.objects.pod import ResourceRequirements
from stowage.framework import CycleState
from stowage.framework.node_verdicts import PluginVerdict
from stowage.framework.utilization_shape import utilization_scores
from stowage.plugins.node_resources import (
    BalancedAllocation,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFit,
    NodeResourcesFitArgs,
)
from stowage.plugins.node_resources.balanced_allocation import balanced_allocation_score
from stowage.plugins.node_resources.least_allocated import least_allocated_score
from stowage.plugins.node_resources.most_allocated import most_allocated_score
from stowage.plugins.node_resources.requested_to_capacity_ratio import (
    requested_to_capacity_ratio_score,
)
from tests.support.builders import make_node, make_pod
from tests.support.mirrored_cluster import MirroredCluster, existing_nodes

GPU = "example.com/gpu"


def _fit(**args: Any) -> NodeResourcesFit:
    errors: list[ConfigError] = []
    decoded = decode_struct(args, NodeResourcesFitArgs, "", errors)
    assert not errors
    return NodeResourcesFit(decoded)


def _reasons(
    plugin: NodeResourcesFit, cluster: MirroredCluster, **pod: Any
) -> dict[str, tuple[str, ...]]:
    nodes = existing_nodes(cluster.snapshot())
    verdict = PluginVerdict(
        "", plugin.filter(CycleState(), cluster.info(make_pod("p", **pod)), nodes)
    )
    return {name: verdict.status(index).reasons for index, name in enumerate(nodes.names)}


def test_a_pod_fits_on_nodes_with_enough_free_resources() -> None:
    cluster = MirroredCluster([make_node("n0", cpu="2"), make_node("n1", cpu="2")])
    cluster.bind(make_pod("a", cpu="1500m"), "n0")
    assert _reasons(_fit(), cluster, cpu="500m") == {"n0": (), "n1": ()}
    assert _reasons(_fit(), cluster, cpu="501m") == {"n0": ("Insufficient cpu",), "n1": ()}


def test_every_insufficient_resource_is_named() -> None:
    cluster = MirroredCluster([make_node("n0", cpu="1", memory="1Gi", pods=0)])
    wanted = {"cpu": "2", "memory": "2Gi", "ephemeral-storage": "1", GPU: 1, "hugepages-2Mi": "2Mi"}
    assert _reasons(_fit(), cluster, requests=wanted)["n0"] == (
        "Too many pods",
        "Insufficient cpu",
        "Insufficient memory",
        "Insufficient ephemeral-storage",
        f"Insufficient {GPU}",
        "Insufficient hugepages-2Mi",
    )


def test_a_request_beyond_the_whole_node_is_unresolvable() -> None:
    cluster = MirroredCluster([make_node("n0", cpu="2"), make_node("n1", cpu="4")])
    cluster.bind(make_pod("a", cpu="3"), "n1")
    nodes = existing_nodes(cluster.snapshot())
    pod = cluster.info(make_pod("p", cpu="3"))
    verdict = _fit().filter(CycleState(), pod, nodes)
    assert verdict.unresolvable(2).tolist() == [True, False]
    assert verdict.rejected(2).tolist() == [True, True]


def test_resources_that_the_pod_does_not_request_may_be_overcommitted() -> None:
    cluster = MirroredCluster([make_node("n0", cpu="1", memory="1Gi")])
    cluster.bind(make_pod("a", cpu="3"), "n0")
    assert _reasons(_fit(), cluster, memory="512Mi", cpu="0") == {"n0": ()}


def test_ignored_resources_and_groups_are_not_filtered() -> None:
    cluster = MirroredCluster([make_node("n0")])
    wanted = {GPU: 1, "vendor.io/nic": 1, "cpu": "1"}
    assert len(_reasons(_fit(), cluster, requests=wanted)["n0"]) == 2
    assert _reasons(_fit(ignoredResources=[GPU]), cluster, requests=wanted)["n0"] == (
        "Insufficient vendor.io/nic",
    )
    groups = _fit(ignoredResourceGroups=["example.com", "vendor.io"])
    assert _reasons(groups, cluster, requests=wanted)["n0"] == ()


def test_resources_of_kubernetes_cannot_be_ignored() -> None:
    cluster = MirroredCluster([make_node("n0", cpu="1")])
    assert _reasons(_fit(ignoredResources=["cpu"]), cluster, cpu="2")["n0"] == ("Insufficient cpu",)


def test_pod_level_requests_count_for_filter_but_not_for_score() -> None:
    cluster = MirroredCluster([make_node("n0", cpu="4", memory="8Gi")])
    whole = ResourceRequirements(requests={"memory": "16Gi"})
    small = {"cpu": "1", "memory": "1Gi"}
    assert _reasons(_fit(), cluster, requests=small, resources=whole)["n0"] == (
        "Insufficient memory",
    )
    nodes = existing_nodes(cluster.snapshot())
    with_whole = cluster.info(make_pod("p", requests=small, resources=whole))
    without = cluster.info(make_pod("q", requests=small))
    scores = [_fit().score(CycleState(), pod, nodes).tolist() for pod in (with_whole, without)]
    assert scores[0] == scores[1]


def test_a_container_without_requests_counts_with_defaults_for_scores_only() -> None:
    """(1000 - 100) * 100 / 1000 = 90 and (1000 - 200) * 100 / 1000 = 80; the mean is 85."""
    cluster = MirroredCluster([make_node("n0", cpu="1", memory="1000Mi")])
    nodes = existing_nodes(cluster.snapshot())
    assert _fit().score(CycleState(), cluster.info(make_pod("p")), nodes).tolist() == [85]


def test_an_extended_resource_counts_only_for_pods_that_request_it() -> None:
    strategy = {
        "type": "MostAllocated",
        "resources": [{"name": "cpu", "weight": 1}, {"name": GPU, "weight": 3}],
    }
    fit = _fit(scoringStrategy=strategy)
    cluster = MirroredCluster([make_node("n0", cpu="4", allocatable={GPU: 2})])
    nodes = existing_nodes(cluster.snapshot())
    plain = cluster.info(make_pod("p", cpu="1"))
    wanting = cluster.info(make_pod("q", requests={"cpu": "1", GPU: 1}))
    assert fit.score(CycleState(), plain, nodes).tolist() == [25]
    assert fit.score(CycleState(), wanting, nodes).tolist() == [(25 + 3 * 50) // 4]


@pytest.mark.parametrize(
    ("requested", "allocatable", "weights", "least", "most"),
    [
        ([3000, 5000], [4000, 10000], [1, 1], 37, 62),
        ([3000, 5000], [6000, 10000], [1, 1], 50, 50),
        ([5000, 5000], [4000, 10000], [1, 1], 25, 75),
        ([5000, 5000], [4000, 10000], [1, 3], 37, 62),
        ([3000, 5000], [4000, 0], [1, 9], 25, 75),
        ([3000, 5000], [0, 0], [1, 1], 0, 0),
    ],
)
def test_least_and_most_allocated_are_weighted_means(
    requested: list[int], allocatable: list[int], weights: list[int], least: int, most: int
) -> None:
    arguments = (np.array([requested]), np.array([allocatable]), np.array(weights))
    assert least_allocated_score(*arguments).tolist() == [least]
    assert most_allocated_score(*arguments).tolist() == [most]


def go_score(part: int, allocatable: int) -> int:
    """``part * 100 / allocatable`` in Go: int64 wraps, and division rounds towards zero."""
    product = (part * 100 + 2**63) % 2**64 - 2**63
    return abs(product) // allocatable * (1 if product >= 0 else -1)


@pytest.mark.parametrize("allocatable", [2**63 - 1, 2**60, 2**57, 10**17])
@pytest.mark.parametrize("requested", [1, 2**30, 10**16, 2**56])
def test_huge_amounts_overflow_as_in_go(requested: int, allocatable: int) -> None:
    arguments = (np.array([[requested]]), np.array([[allocatable]]), np.array([1]))
    free = allocatable - requested
    assert least_allocated_score(*arguments).tolist() == [go_score(free, allocatable)]
    assert most_allocated_score(*arguments).tolist() == [go_score(requested, allocatable)]


def test_the_mean_of_overflowed_scores_is_rounded_towards_zero() -> None:
    """In units of 2**57: (300 - 256) / 4 = 11 and (200 - 256) / 2 = -28; the mean is -8.5."""
    requested = np.array([[3 * 2**57, 2 * 2**57, 5]])
    allocatable = np.array([[2**59, 2**58, 0]])
    weights = np.array([1, 1, 9])
    assert most_allocated_score(requested, allocatable, weights).tolist() == [-8]


def test_what_is_over_requested_is_utilized_in_full_even_if_it_overflows() -> None:
    table = utilization_scores([UtilizationShapePoint(0, 0), UtilizationShapePoint(100, 10)])
    requested, allocatable = np.array([[2**60, 1]]), np.array([[2**59, 100]])
    scores = requested_to_capacity_ratio_score(requested, allocatable, np.array([1, 1]), table)
    assert scores.tolist() == [51]


def test_a_shape_is_linear_between_its_points_and_constant_outside() -> None:
    shape = [
        UtilizationShapePoint(10, 2),
        UtilizationShapePoint(40, 5),
        UtilizationShapePoint(90, 9),
    ]
    table = utilization_scores(shape)
    assert table[[0, 10, 25, 40, 41, 90, 100]].tolist() == [20, 20, 35, 50, 50, 90, 90]
    falling = utilization_scores([UtilizationShapePoint(0, 10), UtilizationShapePoint(30, 0)])
    assert falling[[1, 2, 29, 30]].tolist() == [97, 94, 4, 0]


def test_a_resource_with_a_ratio_of_zero_does_not_count_in_the_mean() -> None:
    table = utilization_scores([UtilizationShapePoint(0, 0), UtilizationShapePoint(100, 10)])
    requested, allocatable = np.array([[50, 0], [50, 25], [200, 1]]), np.array([[100, 100]] * 3)
    scores = requested_to_capacity_ratio_score(requested, allocatable, np.array([1, 1]), table)
    assert scores.tolist() == [50, 38, 51]


@pytest.mark.parametrize(
    ("requested", "allocated", "allocatable", "want"),
    [
        ([500, 500], [0, 0], [1000, 1000], 75),
        ([750, 250], [0, 0], [1000, 1000], 62),
        ([500, 500], [500, 0], [1000, 1000], 87),
        ([2000, 0], [1000, 0], [1000, 1000], 75),
        ([500, 100], [0, 0], [1000, 0], 75),
        ([900, 300, 0], [0, 0, 0], [1000, 1000, 1000], 56),
    ],
)
def test_balanced_allocation_compares_the_node_with_and_without_the_pod(
    requested: list[int], allocated: list[int], allocatable: list[int], want: int
) -> None:
    cases = np.array([[requested], [allocated]])
    assert balanced_allocation_score(cases, np.array([allocatable])).tolist() == [want]


@pytest.mark.parametrize("used", [[750, 250], [900, 300, 0], [900, 300, 0, 100]])
def test_balanced_allocation_leaves_out_a_resource_that_the_node_lacks(used: list[int]) -> None:
    cases, allocatable = np.array([[used], [[0] * len(used)]]), np.full((1, len(used)), 1000)
    want = balanced_allocation_score(cases, allocatable).tolist()
    for place in range(len(used) + 1):
        lacking = np.insert(allocatable, place, 0, axis=1)
        for requested in (0, 500):
            more = np.insert(cases, place, requested, axis=2)
            assert balanced_allocation_score(more, lacking).tolist() == want


def test_balanced_allocation_skips_a_pod_without_requests() -> None:
    cluster = MirroredCluster([make_node("n0")])
    plugin = BalancedAllocation(NodeResourcesBalancedAllocationArgs())
    nodes = existing_nodes(cluster.snapshot())
    assert plugin.pre_score(CycleState(), cluster.info(make_pod("p")), nodes).is_skip
    assert plugin.pre_score(CycleState(), cluster.info(make_pod("p", cpu="1")), nodes).is_success
