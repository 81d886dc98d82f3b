from __future__ import annotations

import pytest

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


def _find(
    cluster: MirroredCluster,
    *plugins: Plugin,
    nominated: str = "",
    percentage: int | None = None,
    start_row: int = 0,
) -> FeasibleNodes:
    request = SchedulingRequest(
        framework_of(*plugins),
        cluster.snapshot(),
        cluster.info(make_pod("p", nominated_node=nominated)),
        CycleState(),
        TieBreaker(lambda _: 0),
        percentage=percentage,
        start_row=start_row,
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
    ],
)
def test_all_nodes_are_searched_unless_a_percentage_is_set(
    percentage: int | None, nodes: int, want: int
) -> None:
    assert num_feasible_nodes_to_find(percentage, nodes) == want


def test_a_limited_search_starts_after_the_last_searched_node() -> None:
    cluster = MirroredCluster([make_node(f"n{index:03}") for index in range(250)])
    refuses = Refuses("A", {"n000", "n001"})
    first = _find(cluster, refuses, percentage=40)
    assert (first.rows[0], first.rows[-1], len(first.rows)) == (2, 101, 100)
    assert (first.num_evaluated, first.next_start_row) == (102, 102)
    second = _find(cluster, refuses, percentage=40, start_row=200)
    assert len(second.rows) == 100
    assert second.rows[0] == 2
    assert second.rows[-1] == 249
    assert (second.num_evaluated, second.next_start_row) == (102, 52)


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
