"""Scores that nodes share, and plugins that inherit them but score otherwise."""

from __future__ import annotations

import numpy as np
import pytest

from stowage.framework import CycleState, PluginTraits, Reads, default_normalize_score
from stowage.framework.shared_scores import FewScores, SharedScores
from stowage.framework.verdict import Int64Array
from stowage.state import NodeView, PodInfo
from tests.support.builders import make_node, make_pod
from tests.support.mirrored_cluster import MirroredCluster
from tests.support.plugins.small_plugins import framework_of

NAMES = [f"n{index:02}" for index in range(40)]
"""So many that scores are not computed in the short way for a few."""


class Shares:
    """Scores all nodes 1, by the only distinct score; the first node 2 if it is asked for each."""

    name = "Shares"
    traits = PluginTraits(score_reads=Reads.CLUSTER)

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Int64Array:
        return np.array([2] + [1] * (len(nodes) - 1))

    def normalize_score(
        self, state: CycleState, pod: PodInfo, nodes: NodeView, scores: Int64Array
    ) -> Int64Array:
        return default_normalize_score(scores)

    def shared_scores(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> SharedScores:
        return FewScores(np.array([0]), np.array([1]), 1)


class ScoresOtherwise(Shares):
    """Prefers the last node."""

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Int64Array:
        return np.array([0] * (len(nodes) - 1) + [4])


class NormalizesOtherwise(Shares):
    """Scores by the position among all nodes, which distinct scores do not have."""

    def normalize_score(
        self, state: CycleState, pod: PodInfo, nodes: NodeView, scores: Int64Array
    ) -> Int64Array:
        return np.arange(len(nodes))


class SharesAnew(ScoresOtherwise):
    """Its own distinct scores stand for the score that it inherits."""

    def shared_scores(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> SharedScores:
        return FewScores(np.array([len(nodes) - 1]), np.array([4]), 0)


def _totals(plugin: Shares) -> list[int]:
    cluster = MirroredCluster([make_node(name) for name in NAMES])
    snapshot, pod = cluster.snapshot(), cluster.info(make_pod("p"))
    result = framework_of(plugin).run_score(CycleState(), pod, snapshot, snapshot.all_rows[:40])
    totals: list[int] = result.total.tolist()
    return totals


def test_a_plugin_is_asked_for_the_distinct_scores() -> None:
    assert _totals(Shares()) == [100] * 40


@pytest.mark.parametrize(
    ("plugin", "totals"),
    [
        (ScoresOtherwise(), [0] * 39 + [100]),
        (NormalizesOtherwise(), list(range(40))),
        (SharesAnew(), [0] * 39 + [100]),
    ],
)
def test_what_a_subclass_overrides_counts(plugin: Shares, totals: list[int]) -> None:
    assert _totals(plugin) == totals


def test_what_an_object_overrides_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    plugin = Shares()
    monkeypatch.setattr(plugin, "score", ScoresOtherwise().score)
    assert _totals(plugin) == [0] * 39 + [100]


def test_distinct_scores_of_a_subclass_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    plugin = SharesAnew()

    def fail(*_arguments: object) -> Int64Array:
        raise AssertionError("asked for each node")

    monkeypatch.setattr(ScoresOtherwise, "score", fail)
    assert _totals(plugin) == [0] * 39 + [100]


class NormalizesByView(Shares):
    """Normalises each score to the number of nodes that are scored."""

    def normalize_score(
        self, state: CycleState, pod: PodInfo, nodes: NodeView, scores: Int64Array
    ) -> Int64Array:
        return np.full(len(scores), len(nodes), dtype=np.int64)

    def shared_scores(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> SharedScores:
        return FewScores(np.array([0]), np.array([2]), 1)


def test_distinct_scores_are_normalised_with_the_nodes_that_are_scored() -> None:
    assert _totals(NormalizesByView()) == [40] * 40
