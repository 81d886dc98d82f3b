from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stowage.api.config.types import Percentage
from stowage.engine.scheduling import SchedulingRequest, TieBreaker
from stowage.engine.scheduling.feasible_nodes import (
    FeasibleNodes,
    find_nodes_that_fit_pod,
    num_feasible_nodes_to_find,
)
from stowage.framework import CycleState, PreFilterOutcome
from stowage.framework.extension_points import Plugin
from tests.support.builders import make_node, make_pod
from tests.support.mirrored_cluster import MirroredCluster
from tests.support.plugins.small_plugins import Refuses, framework_of
from tests.support.scalar.search_order import first_feasible, nodes_zone_by_zone


def _find(
    cluster: MirroredCluster,
    *plugins: Plugin,
    nominated: str = "",
    percentage: Percentage | None = None,
    start: int = 0,
    takes_first: bool = False,
    node_names: frozenset[str] | None = None,
) -> FeasibleNodes:
    request = SchedulingRequest(
        framework_of(*plugins),
        cluster.snapshot(),
        cluster.info(make_pod("p", nominated_node=nominated)),
        CycleState(),
        TieBreaker(lambda _: 0),
        percentage=percentage,
        start=start,
        takes_first=takes_first,
        node_names=node_names,
    )
    return find_nodes_that_fit_pod(request, PreFilterOutcome())


@pytest.mark.parametrize(
    ("percentage", "nodes", "want"),
    [
        (None, 5000, 5000),
        (0, 5000, 5000),
        (100, 5000, 5000),
        (50, 99, 99),
        (10, 200, 100),
        (40, 5000, 2000),
        ("adaptive", 99, 99),
        ("adaptive", 100, 100),
        ("adaptive", 400, 188),
        ("adaptive", 1000, 420),
        ("adaptive", 6000, 300),
    ],
)
def test_all_nodes_are_searched_unless_a_percentage_is_set(
    percentage: Percentage | None, nodes: int, want: int
) -> None:
    assert num_feasible_nodes_to_find(percentage, nodes) == want


def test_a_limited_search_starts_after_the_last_searched_node() -> None:
    cluster = MirroredCluster([make_node(f"n{index:03}") for index in range(250)])
    refuses = Refuses("A", {"n000", "n001"})
    first = _find(cluster, refuses, percentage=40)
    assert (first.rows[0], first.rows[-1], len(first.rows)) == (2, 101, 100)
    assert first.num_evaluated == 102
    second = _find(cluster, refuses, percentage=40, start=200)
    assert len(second.rows) == 100
    assert second.rows[0] == 2
    assert second.rows[-1] == 249
    assert second.num_evaluated == 102


@given(
    st.lists(st.sampled_from("abc"), min_size=101, max_size=130),
    st.sets(st.integers(0, 129)),
    st.sampled_from([None, 1, 90, "adaptive"]),
    st.integers(0, 200),
)
def test_a_limited_search_equals_its_scalar_twin(
    zones: list[str], refused: set[int], percentage: Percentage | None, start: int
) -> None:
    nodes = [make_node(f"n{index}", zone=zone) for index, zone in enumerate(zones)]
    names = {f"n{index}" for index in refused}
    found = _find(MirroredCluster(nodes), Refuses("A", names), percentage=percentage, start=start)
    order = nodes_zone_by_zone([(node.metadata.name, node.metadata.labels) for node in nodes])
    wanted = num_feasible_nodes_to_find(percentage, len(nodes))
    feasible, visited = first_feasible(order, lambda name: name not in names, wanted, start)
    assert {found.filtered.asked.names[row] for row in found.rows.tolist()} == set(feasible)
    if len(feasible) < wanted or wanted == len(nodes):
        visited = len(nodes)
    assert found.num_evaluated == visited


def test_a_feasible_nominated_node_ends_the_search() -> None:
    cluster = MirroredCluster([make_node("n0"), make_node("n1")])
    found = _find(cluster, Refuses("A", {"n0"}), nominated="n1")
    assert found.via_nomination
    assert (found.rows.tolist(), found.num_evaluated) == ([cluster.snapshot().row_of("n1")], 1)


@pytest.mark.parametrize("nominated", ["n0", "gone"])
def test_all_nodes_are_searched_if_the_nominated_node_does_not_fit(nominated: str) -> None:
    cluster = MirroredCluster([make_node("n0"), make_node("n1")])
    found = _find(cluster, Refuses("A", {"n0"}), nominated=nominated)
    assert not found.via_nomination
    assert found.rows.tolist() == [cluster.snapshot().row_of("n1")]


@given(
    st.lists(st.sampled_from("abc"), min_size=1, max_size=12),
    st.sets(st.integers(0, 11)),
    st.sampled_from([None, 50, "adaptive"]),
    st.integers(0, 30),
)
def test_a_search_for_the_first_node_equals_its_scalar_twin(
    zones: list[str], refused: set[int], percentage: Percentage | None, start: int
) -> None:
    nodes = [make_node(f"n{index}", zone=zone) for index, zone in enumerate(zones)]
    names = {f"n{index}" for index in refused}
    found = _find(
        MirroredCluster(nodes),
        Refuses("A", names),
        percentage=percentage,
        start=start,
        takes_first=True,
    )
    order = nodes_zone_by_zone([(node.metadata.name, node.metadata.labels) for node in nodes])
    feasible, visited = first_feasible(order, lambda name: name not in names, 1, start)
    assert [found.filtered.asked.names[row] for row in found.rows.tolist()] == feasible
    assert found.num_evaluated == visited
    assert found.first_fit == (len(set(order) - names) > 1)


@pytest.mark.parametrize(("left", "found_there"), [({"n1", "n2"}, True), ({"n0", "n2"}, False)])
def test_a_nominated_node_counts_only_among_the_nodes_that_the_pod_may_go_to(
    left: set[str], found_there: bool
) -> None:
    cluster = MirroredCluster([make_node(name) for name in ("n0", "n1", "n2")])
    found = _find(cluster, nominated="n1", node_names=frozenset(left))
    assert found.via_nomination is found_there
    names = {cluster.snapshot().node_names[row] for row in found.rows.tolist()}
    assert names == ({"n1"} if found_there else left)
