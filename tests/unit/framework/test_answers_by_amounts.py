"""Answers that depend only on amounts are cached for nodes with equal amounts."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from stowage.framework import (
    CycleState,
    FilterVerdict,
    Framework,
    PluginFailed,
    PluginTraits,
    Reads,
    Rejection,
)
from stowage.framework.verdict import Int64Array
from stowage.state import NodeView, PodInfo
from tests.support.builders import make_node, make_pod
from tests.support.mirrored_cluster import MirroredCluster
from tests.support.plugins.small_plugins import framework_of

NUM_NODES = 64

USAGE = PluginTraits(filter_reads=Reads.USAGE, score_reads=Reads.USAGE)
BY_AMOUNTS = replace(USAGE, reads_only_amounts=True)


@dataclass
class ByPods:
    """Rejects nodes with two pods; scores 50, less one point for each pod.

    Attributes:
        invalid_at: A number of pods for which the score is out of range.
        asked: The number of nodes of each call.
    """

    traits: PluginTraits
    invalid_at: int = -1
    name: str = "ByPods"
    asked: list[int] = field(default_factory=list)

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> FilterVerdict:
        self.asked.append(len(nodes))
        return FilterVerdict((Rejection("full", nodes.num_pods >= 2),))

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Int64Array:
        scores: Int64Array = np.where(nodes.num_pods == self.invalid_at, 1000, 50 - nodes.num_pods)
        return scores


@pytest.fixture
def cluster() -> MirroredCluster:
    nodes = [make_node(f"n{index}") for index in range(NUM_NODES)]
    # A class and its cached answers live as long as one of its pods.
    return MirroredCluster(nodes, [make_pod("lasting", node="elsewhere")])


def _ask(framework: Framework, cluster: MirroredCluster) -> tuple[list[int], list[int]]:
    """Feasible rows and their totals."""
    pod, snapshot, state = cluster.info(make_pod("p")), cluster.snapshot(), CycleState()
    rows = framework.run_filter(state, pod, snapshot).rows
    return rows.tolist(), framework.run_score(state, pod, snapshot, rows).total.tolist()


def test_a_plugin_is_not_called_again_for_known_amounts(cluster: MirroredCluster) -> None:
    plugin = ByPods(BY_AMOUNTS)
    framework = framework_of(plugin)
    _ask(framework, cluster)
    for index in range(6):
        cluster.bind(make_pod(f"first{index}"), f"n{index}")
        _ask(framework, cluster)
    assert plugin.asked[1:] == [1], "nodes with one pod have equal amounts"
    for index in range(3):
        cluster.bind(make_pod(f"second{index}"), f"n{index}")
        _ask(framework, cluster)
    assert plugin.asked[2:] == [1]
    cluster.remove_pod("uid-second0")
    rows, totals = _ask(framework, cluster)
    assert plugin.asked[3:] == []
    names = cluster.snapshot().node_names
    found = {names[row]: total for row, total in zip(rows, totals, strict=True)}
    assert found["n0"] == 49
    assert "n1" not in found


def test_cached_answers_equal_computed_ones(cluster: MirroredCluster) -> None:
    by_amounts, asked = (framework_of(ByPods(each)) for each in (BY_AMOUNTS, USAGE))
    for index in range(120):
        where = index * 7 % 23 if index % 3 else index * 5 % NUM_NODES
        cluster.bind(make_pod(f"p{index}"), f"n{where}")
        if index % 4 == 0:
            assert _ask(by_amounts, cluster) == _ask(asked, cluster)


def test_many_changed_nodes_are_evaluated_in_one_call(cluster: MirroredCluster) -> None:
    plugin = ByPods(BY_AMOUNTS)
    framework = framework_of(plugin)
    for count in (0, 16, 17, 33):
        for index in range(count):
            cluster.bind(make_pod(f"p{count}-{index}"), f"n{index}")
        _ask(framework, cluster)
    every_row = cluster.snapshot().num_rows
    assert plugin.asked == [every_row, 16, 17, every_row]


def test_a_score_out_of_range_is_an_error_each_time(cluster: MirroredCluster) -> None:
    framework = framework_of(ByPods(BY_AMOUNTS, invalid_at=1))
    _ask(framework, cluster)
    for index in range(3):
        cluster.bind(make_pod(f"p{index}"), f"n{index}")
        with pytest.raises(PluginFailed, match="invalid score"):
            _ask(framework, cluster)
    for index in range(3):
        cluster.remove_pod(f"uid-p{index}")
    assert _ask(framework, cluster)[1] == [50] * NUM_NODES
