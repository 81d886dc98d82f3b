"""Which of the feasible placements of a pod group are best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest

from stowage.framework import PluginTraits
from stowage.framework.placements import PlacedMembers, PlacementRun
from stowage.framework.verdict import Int64Array
from stowage.state import Snapshot
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
