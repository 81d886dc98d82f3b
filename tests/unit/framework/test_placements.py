"""Which of the feasible placements of a pod group are best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest

from stowage.framework import PluginTraits, Prospects
from stowage.framework.placement_outlook import likeness
from stowage.framework.placements import PlacedMembers, PlacementRun
from stowage.framework.verdict import Int64Array
from stowage.state import Snapshot
from stowage.state.pods.pod_class import PodClass
from tests.support.builders import make_node, make_pod
from tests.support.mirrored_cluster import MirroredCluster
from tests.support.plugins.small_plugins import NO_TRAITS

SNAPSHOT = MirroredCluster().snapshot()
PLACEMENTS = [PlacedMembers(np.array([row]), (), 0) for row in range(3)]


@dataclass
class Scores:
    """Scores the placements as given."""

    name: str
    scores: tuple[int, ...]
    traits: PluginTraits = NO_TRAITS

    def score_placements(
        self, snapshot: Snapshot, placements: Sequence[PlacedMembers]
    ) -> Int64Array:
        return np.array(self.scores, dtype=np.int64)


@dataclass
class Breaks:
    """Prefers the placement on the highest row; notes what was tied."""

    name: str
    traits: PluginTraits = NO_TRAITS
    tied: list[int] = field(default_factory=list)

    def rank_placements(
        self, snapshot: Snapshot, placements: Sequence[PlacedMembers]
    ) -> Int64Array:
        self.tied = [int(each.rows[0]) for each in placements]
        return np.array(self.tied, dtype=np.int64)


@pytest.mark.parametrize(
    ("weights", "best"),
    [({}, [2]), ({"A": 2}, [0, 2]), ({"A": 3}, [0]), ({"B": 9}, [2]), ({"A": 2, "B": 2}, [2])],
)
def test_the_weighted_sum_of_the_scores_decides(weights: dict[str, int], best: list[int]) -> None:
    run = PlacementRun([Scores("A", (10, 0, 0)), Scores("B", (0, 5, 20))], weights)
    assert run.best(SNAPSHOT, PLACEMENTS) == best


@pytest.mark.parametrize(
    ("scores", "tied", "best"), [((5, 5, 1), [0, 1], [1]), ((5, 1, 1), [], [0])]
)
def test_a_tie_is_broken_among_the_tied_placements_alone(
    scores: tuple[int, ...], tied: list[int], best: list[int]
) -> None:
    breaker = Breaks("C")
    assert PlacementRun([breaker, Scores("A", scores)], {}).best(SNAPSHOT, PLACEMENTS) == best
    assert breaker.tied == tied


@dataclass
class KnowsAll:
    """Knows room, quorum and scores; notes for how many members it is asked."""

    name: str
    room_of: tuple[int, ...]
    least: int
    traits: PluginTraits = NO_TRAITS
    asked: list[int] = field(default_factory=list)

    def room(self, snapshot: Snapshot, rows: Int64Array, pod_class: PodClass) -> Int64Array:
        return np.array(self.room_of)

    def least_members(self, snapshot: Snapshot, prospects: Prospects) -> int:
        return self.least

    def score_placements(
        self, snapshot: Snapshot, placements: Sequence[PlacedMembers]
    ) -> Int64Array:
        raise NotImplementedError

    def highest_scores(
        self, snapshot: Snapshot, prospects: Prospects, most: Int64Array
    ) -> Int64Array:
        self.asked = most.tolist()
        return most * 10


def test_placements_without_room_for_enough_members_count_as_if_they_took_none() -> None:
    cluster = MirroredCluster([make_node(name) for name in "abc"])
    members = tuple(cluster.info(make_pod(name)) for name in ("p", "q", "r"))
    prospects = Prospects(np.arange(3), np.arange(3), members, 0)
    plugin = KnowsAll("A", (9, 2, 1), least=2)
    run = PlacementRun([plugin], {"A": 3}, [plugin], [plugin])
    outlook = run.outlook(cluster.snapshot(), prospects, None)
    assert outlook is not None
    assert plugin.asked == [3, 2, 0]
    assert outlook.most.tolist() == [3, 2, 1]
    assert outlook.highest.tolist() == [90, 60, 0]
    assert outlook.least == 2
    assert outlook.known_by == {"A"}


def test_nothing_is_known_beforehand_if_a_plugin_that_scores_knows_nothing() -> None:
    cluster = MirroredCluster()
    members = (cluster.info(make_pod("p")),)
    prospects = Prospects(np.array([0]), np.array([0]), members, 0)
    assert PlacementRun([Scores("A", (1,))], {}).outlook(SNAPSHOT, prospects, None) is None


def test_placements_are_alike_if_their_nodes_have_equal_amounts_in_any_order() -> None:
    cluster = MirroredCluster()
    for name, cpu in (("a", "4"), ("b", "8"), ("c", "8"), ("d", "4"), ("e", "4"), ("f", "8")):
        cluster.update_node(make_node(name, cpu=cpu))
    cluster.update_pod(make_pod("p", cpu="1", node="f"))
    snapshot = cluster.snapshot()
    rows = np.array([snapshot.row_of(name) for name in "abcdef"])
    first, second, third = likeness(snapshot, Prospects(rows, np.array([0, 2, 4]), (), 0)).tolist()
    assert first == second
    assert third != first
