"""Priorities of kube-scheduler 1.12: worked examples, arguments, and the order that they give."""

from __future__ import annotations

from typing import Any, cast

import pytest

from stowage.api.config.types import UtilizationShapePoint
from stowage.api.objects.node import ContainerImage, Node
from stowage.api.objects.pod import (
    Affinity,
    Container,
    Pod,
    PodAffinity,
    ResourceRequirements,
)
from stowage.framework import CycleState
from stowage.framework.extension_points import ScorePlugin
from stowage.plugins import in_tree_registry
from stowage.plugins.inter_pod_affinity import InterPodAffinityArgs, InterPodAffinityPriority
from stowage.plugins.node_resources import RequestedToCapacityRatioPriorityArgs
from tests.support.builders import (
    HOSTNAME,
    affinity_term,
    label_selector,
    make_node,
    make_pod,
    weighted,
)
from tests.support.mirrored_cluster import MirroredCluster, existing_nodes

MEBIBYTE = 1024 * 1024


def scores(name: str, cluster: MirroredCluster, pod: Pod) -> dict[str, int]:
    """The scores of a plugin with its default arguments, by node."""
    factory = in_tree_registry()[name]
    plugin = cast("ScorePlugin", factory.construct(factory.args()))
    nodes = existing_nodes(cluster.snapshot())
    found = plugin.score(CycleState(), cluster.info(pod), nodes).tolist()
    return dict(zip(nodes.names, found, strict=True))


def used(node: Node, **requests: Any) -> MirroredCluster:
    """A node, and a pod on it with these requests."""
    return MirroredCluster([node], [make_pod("there", node=node.metadata.name, **requests)])


@pytest.mark.parametrize(
    ("name", "requests", "want"),
    [
        # The pod asks 15 of 100 cpu and 20 of 100 memory. Free: 8.5 and 8 points, cut to 8 each.
        ("LeastRequestedPriority", {"cpu": "15", "memory": "20Gi"}, 80),
        # 9.5 and 4 points, cut to 9 and 4; half of 13.
        ("LeastRequestedPriority", {"cpu": "5", "memory": "60Gi"}, 60),
        ("LeastRequestedPriority", {"cpu": "101", "memory": "20Gi"}, 40),
        # 1.5 and 2 points, cut to 1 and 2; half of 3.
        ("MostRequestedPriority", {"cpu": "15", "memory": "20Gi"}, 10),
        ("MostRequestedPriority", {"cpu": "95", "memory": "100Gi"}, 90),
        ("MostRequestedPriority", {"cpu": "101", "memory": "100Gi"}, 50),
        # 10 - |0.1 - 0.5| * 10, and 10 - |0.5 - 0.5| * 10
        ("BalancedResourceAllocation", {"cpu": "10", "memory": "50Gi"}, 60),
        ("BalancedResourceAllocation", {"cpu": "50", "memory": "50Gi"}, 100),
        ("BalancedResourceAllocation", {"cpu": "100", "memory": "100Gi"}, 0),
        # 15.5 % counts as 16 %: 10 - 10 * 16 / 100, rounded towards 10, is 9; 80 % is 2.
        ("RequestedToCapacityRatioPriority", {"cpu": "15500m", "memory": "80Gi"}, 50),
        ("RequestedToCapacityRatioPriority", {"cpu": "101", "memory": "101Gi"}, 0),
    ],
)
def test_points_of_resources_on_a_node_of_100_cpu_and_100_gibibytes(
    name: str, requests: dict[str, Any], want: int
) -> None:
    node = make_node("n", cpu="100", memory="100Gi")
    assert scores(name, MirroredCluster([node]), make_pod("p", **requests)) == {"n": want}


def test_placed_pods_count_and_so_do_pods_without_requests() -> None:
    cluster = used(make_node("n", cpu="1", memory="2000Mi"), cpu="300m", memory="600Mi")
    # With 100m and 200Mi for the pod, 60 % of each are free.
    assert scores("LeastRequestedPriority", cluster, make_pod("p")) == {"n": 60}


@pytest.mark.parametrize(
    "name", ["LeastRequestedPriority", "MostRequestedPriority", "BalancedResourceAllocation"]
)
def test_a_node_without_cpu_and_memory_gets_no_points(name: str) -> None:
    cluster = MirroredCluster([make_node("n", cpu="0", memory="0")])
    assert scores(name, cluster, make_pod("p")) == {"n": 0}


def test_weighted_sums_order_nodes_as_in_1_12_where_todays_scores_differ() -> None:
    """1.12 sees a tie of 8 to 8 points; v1.36 sees 82 and 80."""
    nodes = [make_node("a", cpu="100", memory="100Gi"), make_node("b", cpu="100", memory="100Gi")]
    cluster = MirroredCluster(nodes, [make_pod("x", node="b", cpu="2", memory="2Gi")])
    pod = make_pod("p", cpu="18", memory="18Gi")
    assert scores("LeastRequestedPriority", cluster, pod) == {"a": 80, "b": 80}
    assert scores("NodeResourcesFit", cluster, pod) == {"a": 82, "b": 80}


@pytest.mark.parametrize(
    ("shape", "path"),
    [
        ((), "shape"),
        (((0, 11),), "shape[0].score"),
        (((101, 1),), "shape[0].utilization"),
        (((50, 1), (50, 2)), "shape[1].utilization"),
    ],
)
def test_a_wrong_shape_is_refused(shape: tuple[tuple[int, int], ...], path: str) -> None:
    points = tuple(UtilizationShapePoint(*point) for point in shape)
    errors = list(RequestedToCapacityRatioPriorityArgs(points).validate())
    assert [error.path for error in errors] == [path]


def test_the_default_shape_is_that_of_1_12() -> None:
    assert not list(RequestedToCapacityRatioPriorityArgs().validate())
    assert RequestedToCapacityRatioPriorityArgs().shape == (
        UtilizationShapePoint(0, 10),
        UtilizationShapePoint(100, 0),
    )


def test_an_image_of_half_the_nodes_counts_half_and_init_containers_do_not_count() -> None:
    image = ContainerImage(("app:1",), 1000 * MEBIBYTE)
    cluster = MirroredCluster([make_node("a", images=[image]), make_node("b")])
    # 500 of 1000 MiB, both less the threshold of 23: 4.9 points.
    assert scores("ImageLocalityPriority", cluster, make_pod("p", images=["app:1"])) == {
        "a": 40,
        "b": 0,
    }
    initial = make_pod("p", images=["app:1"]).spec.containers
    other = make_pod("p", images=["other:1"], init_containers=initial)
    assert scores("ImageLocalityPriority", cluster, other) == {"a": 0, "b": 0}


def test_two_containers_reach_the_highest_score_together() -> None:
    image = ContainerImage(("app:1",), 500 * MEBIBYTE)
    cluster = MirroredCluster([make_node("a", images=[image])])
    pod = make_pod("p", images=["app:1", "app:1"])
    assert scores("ImageLocalityPriority", cluster, pod) == {"a": 100}
    assert scores("ImageLocality", cluster, pod) == {"a": 49}


@pytest.mark.parametrize(
    ("limits", "want"),
    [
        ({}, {"small": 0, "large": 0}),
        ({"cpu": "0", "memory": "0"}, {"small": 0, "large": 0}),
        ({"cpu": "2"}, {"small": 10, "large": 10}),
        ({"cpu": "3"}, {"small": 0, "large": 10}),
        # One of the two suffices.
        ({"cpu": "3", "memory": "1Gi"}, {"small": 10, "large": 10}),
        ({"cpu": "9", "memory": "9Gi"}, {"small": 0, "large": 0}),
    ],
)
def test_a_node_that_can_hold_a_limit_gets_one_point(
    limits: dict[str, Any], want: dict[str, int]
) -> None:
    nodes = [make_node("small", cpu="2", memory="2Gi"), make_node("large", cpu="4", memory="4Gi")]
    pod = make_pod("p", init_containers=(Container(resources=ResourceRequirements({}, limits)),))
    assert scores("ResourceLimitsPriority", MirroredCluster(nodes), pod) == want


def affine(weight: int, *, anti: bool = False) -> Affinity:
    """A preference for, or against, nodes with pods of ``app=db``."""
    term = weighted(weight, affinity_term(HOSTNAME, label_selector({"app": "db"})))
    if anti:
        return Affinity(pod_anti_affinity=PodAffinity((), (term,)))
    return Affinity(pod_affinity=PodAffinity((), (term,)))


@pytest.mark.parametrize(
    ("affinity", "on", "want"),
    [
        # All are drawn to equally: 1.12 gives the best score, v1.36 the lowest.
        (affine(5), {"a": 1, "b": 1}, {"a": 100, "b": 100}),
        (affine(5), {"a": 2, "b": 1}, {"a": 100, "b": 50}),
        (affine(5), {"a": 3}, {"a": 100, "b": 0}),
        # All are repelled: the worst gets 0, the others what they have above it.
        (affine(5, anti=True), {"a": 1, "b": 1}, {"a": 0, "b": 0}),
        (affine(5, anti=True), {"a": 3, "b": 2}, {"a": 0, "b": 30}),
    ],
)
def test_affinity_is_measured_from_zero(
    affinity: Affinity, on: dict[str, int], want: dict[str, int]
) -> None:
    cluster = MirroredCluster([make_node("a"), make_node("b")])
    for name, number in on.items():
        for index in range(number):
            cluster.bind(make_pod(f"{name}-{index}", labels={"app": "db"}), name)
    assert affinity_scores(cluster, make_pod("p", affinity=affinity)) == want


def test_a_pod_without_terms_is_not_scored_by_affinity() -> None:
    cluster = MirroredCluster([make_node("a")])
    nodes = existing_nodes(cluster.snapshot())
    plugin = InterPodAffinityPriority(InterPodAffinityArgs())
    assert plugin.pre_score(CycleState(), cluster.info(make_pod("p")), nodes).is_skip


def affinity_scores(cluster: MirroredCluster, pod: Pod, **args: Any) -> dict[str, int]:
    plugin = InterPodAffinityPriority(InterPodAffinityArgs(**args))
    state, info, nodes = CycleState(), cluster.info(pod), existing_nodes(cluster.snapshot())
    assert plugin.pre_score(state, info, nodes).is_success
    found = plugin.normalize_score(state, info, nodes, plugin.score(state, info, nodes))
    return dict(zip(nodes.names, found.tolist(), strict=True))
