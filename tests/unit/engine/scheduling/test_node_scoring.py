from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stowage.engine.scheduling import SchedulingRequest, TieBreaker
from stowage.engine.scheduling.node_scoring import best_nodes, select_host
from stowage.framework import BrokenTie, CycleState, ScoreResult
from stowage.framework.runtime.score_result import NodeScores
from stowage.framework.verdict import Int64Array
from tests.support.builders import make_pod
from tests.support.mirrored_cluster import MirroredCluster
from tests.support.plugins.small_plugins import framework_of


def _pick(positions: Int64Array) -> NodeScores:
    """A plugin whose raw score of a node is its position."""
    raw = positions.tolist()
    scores = {"Position": (tuple(raw), tuple(2 * each for each in raw))}
    return NodeScores((("Position", 2),), (), np.empty((0, 0), dtype=np.uint8), scores)


def _scores(rows: list[int], total: list[int]) -> ScoreResult:
    return ScoreResult(
        np.array(rows, dtype=np.int64), np.array(total, dtype=np.int64), tuple, _pick
    )


def _request(ties: TieBreaker) -> SchedulingRequest:
    cluster = MirroredCluster()
    pod = cluster.info(make_pod("p"))
    return SchedulingRequest(framework_of(), cluster.snapshot(), pod, CycleState(), ties)


def test_the_node_with_the_highest_score_is_picked() -> None:
    def never(ties: int) -> int:
        raise AssertionError(f"asked about {ties} ties")

    request = _request(TieBreaker(never))
    assert select_host(request, _scores([3, 5, 8], [10, 30, 20])) == (1, None)


@pytest.mark.parametrize(("choice", "want"), [(0, 0), (1, 2)])
def test_a_tie_is_broken_by_the_callers_choice(choice: int, want: int) -> None:
    scores = _scores([3, 5, 8], [30, 10, 30])
    ties = TieBreaker(lambda _: choice)
    assert select_host(_request(ties), scores) == (want, BrokenTie(2, (), "Random"))
    assert (ties.sizes, ties.choices) == ([2], [choice])


def test_the_best_nodes_are_the_chosen_one_and_the_next_totals_by_row() -> None:
    best = best_nodes(_scores([1, 2, 4, 5], [30, 50, 30, 50]), 3, list("abcdef"))

    assert (best.names, best.totals) == (("f", "c", "b", "e"), (50, 50, 30, 30))
    scores = [each.scores[0] for each in best.scored_nodes()]
    assert [(each.raw, each.normalized, each.weighted) for each in scores] == [
        (3, 6, 12),
        (1, 2, 4),
        (0, 0, 0),
        (2, 4, 8),
    ]


def test_of_many_equal_nodes_the_chosen_one_is_among_the_ten() -> None:
    names = [f"n{row}" for row in range(50)]
    best = best_nodes(_scores(list(range(50)), [7] * 50), 30, names)

    assert best.names == ("n30", *names[:9])


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=12),
    st.integers(10_001, 10_600),
    st.integers(0, 10_000),
)
def test_the_best_of_many_nodes_are_those_of_a_stable_sort(
    pattern: list[int], num_nodes: int, chosen: int
) -> None:
    totals = [0] * num_nodes
    for index, total in enumerate(pattern):
        totals[index * 997 % num_nodes] = total
    totals[chosen] = 10
    rows = list(range(num_nodes))
    best = best_nodes(_scores(rows, totals), chosen, [str(row) for row in rows])
    others = sorted(set(rows) - {chosen}, key=lambda row: (-totals[row], row))
    assert best.names == tuple(map(str, [chosen, *others[: len(best.names) - 1]]))


@settings(max_examples=25, deadline=None)
@given(st.integers(10_001, 13_000), st.sets(st.integers(0, 12_999), min_size=1, max_size=40))
def test_the_tied_of_many_nodes_are_all_with_the_highest_total(
    num_nodes: int, highest: set[int]
) -> None:
    tied = sorted({position % num_nodes for position in highest})
    totals = [5] * num_nodes
    for position in tied:
        totals[position] = 8
    found = _scores(list(range(num_nodes)), totals).tied()
    assert found.all().tolist() == tied
    assert [found.position(index) for index in range(len(found))] == tied
