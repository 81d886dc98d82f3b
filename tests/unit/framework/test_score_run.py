from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from stowage.api.config.extenders import EXTENDER_PLUGIN
from stowage.api.status import Code
from stowage.framework import (
    CycleState,
    Framework,
    PluginFailed,
    PluginTraits,
    Reads,
    ScoreResult,
    default_normalize_score,
)
from stowage.framework.verdict import Int64Array
from stowage.state import NodeView, PodInfo
from tests.support.builders import make_node, make_pod
from tests.support.mirrored_cluster import MirroredCluster
from tests.support.plugins.small_plugins import Raises, Rates, framework_of

NODES = ("n0", "n1", "n2")


@dataclass
class Normalized(Rates):
    """Scales its scores to 0..100."""

    def normalize_score(
        self, state: CycleState, pod: PodInfo, nodes: NodeView, scores: Int64Array
    ) -> Int64Array:
        return default_normalize_score(scores)


@pytest.fixture
def cluster() -> MirroredCluster:
    return MirroredCluster([make_node(name) for name in NODES])


def _score(framework: Framework, cluster: MirroredCluster, *names: str) -> ScoreResult:
    snapshot = cluster.snapshot()
    rows = sorted(row for name in names or NODES if (row := snapshot.row_of(name)) is not None)
    pod = cluster.info(make_pod("p"))
    return framework.run_score(CycleState(), pod, snapshot, np.array(rows, dtype=np.int64))


@pytest.mark.parametrize("reads", list(Reads))
@pytest.mark.parametrize("cache_size", [0, 16])
def test_totals_are_weighted_sums_of_normalised_scores(
    cluster: MirroredCluster, reads: Reads, cache_size: int
) -> None:
    plain = Rates("Plain", {"n0": 100, "n1": 40}, PluginTraits(score_reads=reads))
    wide = Normalized("Wide", {"n1": 500, "n2": 1000}, PluginTraits(score_reads=reads))
    framework = framework_of(
        plain, wide, weights={"Plain": 2, "Wide": 3}, class_cache_size=cache_size
    )
    result = _score(framework, cluster)
    assert result.total.tolist() == [200, 80 + 150, 300]
    by_name = {scores.plugin: scores for scores in result.per_plugin()}
    assert by_name["Wide"].raw.tolist() == [0, 500, 1000]
    assert by_name["Wide"].normalized.tolist() == [0, 50, 100]
    assert by_name["Wide"].weighted.tolist() == [0, 150, 300]


@pytest.mark.parametrize("weight", [10, 10**3, 10**8])
def test_totals_of_high_weights_are_exact(weight: int) -> None:
    """The totals need 16, 32 or 64 bits."""
    names = [f"n{index}" for index in range(60)]
    cluster = MirroredCluster([make_node(name) for name in names])
    framework = framework_of(
        Rates("Node", {"n0": 100, "n1": 99}, PluginTraits(score_reads=Reads.NODE)),
        Rates("Usage", {"n0": 100, "n2": 98}, PluginTraits(score_reads=Reads.USAGE)),
        Normalized("Wide", {"n0": 1000, "n3": 970}, PluginTraits(score_reads=Reads.NODE)),
        Rates("Asked", {"n0": 100, "n4": 96}, PluginTraits(score_reads=Reads.CLUSTER)),
        weights=dict.fromkeys(("Node", "Usage", "Wide", "Asked"), weight),
    )
    for _ in range(2):
        total = _score(framework, cluster, *names).total.tolist()
        assert total == [each * weight for each in (400, 99, 98, 97, 96, *[0] * 55)]


def test_scores_are_normalised_over_feasible_nodes_only() -> None:
    cluster = MirroredCluster([make_node(f"n{index}") for index in range(60)])
    scores = {f"n{index}": index for index in range(60)}
    framework = framework_of(Normalized("A", scores, PluginTraits(score_reads=Reads.NODE)))
    names = [f"n{index}" for index in range(51)]
    total = _score(framework, cluster, *names).total
    assert (total[25], total[50]) == (50, 100)


def test_equal_raw_scores_of_all_nodes_are_normalised_only_once() -> None:
    names = [f"n{index}" for index in range(60)]
    cluster = MirroredCluster([make_node(name) for name in names])
    normalized: list[int] = []

    class Even(Normalized):
        def normalize_score(
            self, state: CycleState, pod: PodInfo, nodes: NodeView, scores: Int64Array
        ) -> Int64Array:
            normalized.append(len(scores))
            return super().normalize_score(state, pod, nodes, scores)

    framework = framework_of(
        Even("A", dict.fromkeys(names, 7), PluginTraits(score_reads=Reads.NODE)), weights={"A": 2}
    )
    first = cluster.info(make_pod("p"))  # keeps the class alive
    for _ in range(3):
        assert _score(framework, cluster, *names).total.tolist() == [200] * 60
    assert normalized == [1]
    assert first.pod_class is cluster.info(make_pod("q")).pod_class


@pytest.mark.parametrize("num_nodes", [3, 60])
def test_the_scores_of_picked_nodes_equal_those_of_all_plugins(num_nodes: int) -> None:
    names = [f"n{index}" for index in range(num_nodes)]
    cluster = MirroredCluster([make_node(name) for name in names])
    framework = framework_of(
        Rates("Plain", {"n1": 4, "n2": 9}, PluginTraits(score_reads=Reads.NODE)),
        Rates("Usage", {"n0": 6, "n2": 8}, PluginTraits(score_reads=Reads.USAGE)),
        Rates("Asked", {"n0": 5, "n1": 1}, PluginTraits(score_reads=Reads.CLUSTER)),
        Normalized("Even", dict.fromkeys(names, 7), PluginTraits(score_reads=Reads.NODE)),
        Normalized("Wide", {"n2": 300, "n1": 150}, PluginTraits(score_reads=Reads.NODE)),
        weights={"Asked": 3},
    )
    result = _score(framework, cluster, *names)
    positions = np.array([1, 2], dtype=np.int64)
    picked = result.pick(positions)
    expected = {
        each.plugin: (each.raw[positions].tolist(), each.normalized[positions].tolist())
        for each in result.per_plugin()
    }
    plain = dict(zip(picked.plain_plugins, picked.plain.tolist(), strict=True))
    found = {name: (scores, scores) for name, scores in plain.items()}
    for name, (raw, normalized) in picked.others.items():
        repeat = len(positions) // len(raw)
        found[name] = list(raw) * repeat, list(normalized) * repeat
    assert found == expected
    assert picked.weights == tuple(
        (name, 3 if name == "Asked" else 1) for name in ("Plain", "Usage", "Asked", "Even", "Wide")
    )


def test_for_a_second_pod_of_the_class_only_changed_nodes_are_scored() -> None:
    cluster = MirroredCluster([make_node(f"n{index}") for index in range(60)])
    names = [f"n{index}" for index in range(60)]
    node, usage = (
        Rates("Node", {}, PluginTraits(score_reads=Reads.NODE)),
        Rates("Usage", {"n3": 5}, PluginTraits(score_reads=Reads.USAGE)),
    )
    every = Rates("Nodes", {}, PluginTraits(score_reads=Reads.NODES))
    framework = framework_of(node, usage, every)
    first = cluster.info(make_pod("p"))  # keeps the class alive
    _score(framework, cluster, *names)
    rows = cluster.snapshot().num_rows
    cluster.bind(make_pod("other", cpu="1"), "n7")
    result = _score(framework, cluster, *names)
    assert (node.asked, usage.asked, every.asked) == ([rows], [rows, 1], [rows])
    assert result.total.sum() == 5
    cluster.update_node(make_node("n8", labels={"new": "label"}))
    _score(framework, cluster, *names)
    assert first.pod_class is cluster.info(make_pod("q")).pod_class
    assert node.asked == [rows, rows], "a plugin that reads all nodes scores all again"


class PrefersHome:
    """Scores the node that a label of the pod names."""

    name = "PrefersHome"
    traits = PluginTraits(score_reads=Reads.NODE)

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Int64Array:
        return np.array([9 * (name == pod.labels["home"]) for name in nodes.names], dtype=np.int64)


def test_each_class_has_kept_scores_of_its_own() -> None:
    cluster = MirroredCluster([make_node(f"n{index}") for index in range(60)])
    framework, snapshot = framework_of(PrefersHome()), cluster.snapshot()
    rows = np.flatnonzero(snapshot.exists)
    homes = ["n3", "n5"]
    pods = [cluster.info(make_pod("p", labels={"home": home})) for home in homes]
    for _ in range(2):
        scored = [framework.run_score(CycleState(), pod, snapshot, rows) for pod in pods]
        best = [int(result.rows[int(result.total.argmax())]) for result in scored]
        assert [snapshot.node_names[row] for row in best] == homes


def test_a_score_that_depends_on_all_nodes_changes_on_nodes_that_did_not_change() -> None:
    cluster = MirroredCluster([make_node(f"n{index}") for index in range(60)])
    names = [f"n{index}" for index in range(60)]
    every = Rates("Nodes", {"n1": 10, "n2": 20}, PluginTraits(score_reads=Reads.NODES))
    usage = Rates("Usage", {"n1": 3}, PluginTraits(score_reads=Reads.USAGE))
    framework = framework_of(every, usage)
    first = cluster.info(make_pod("p"))  # keeps the class alive
    assert _score(framework, cluster, *names).total[:4].tolist() == [0, 13, 20, 0]
    every.scores = {"n1": 70, "n2": 5}
    cluster.update_node(make_node("n8", labels={"new": "label"}))
    assert _score(framework, cluster, *names).total[:4].tolist() == [0, 73, 5, 0]
    assert first.pod_class is cluster.info(make_pod("q")).pod_class


@pytest.mark.parametrize("reads", list(Reads))
def test_a_normalised_score_follows_the_nodes_that_changed(reads: Reads) -> None:
    cluster = MirroredCluster([make_node(f"n{index}") for index in range(60)])
    names = [f"n{index}" for index in range(60)]
    scaled = Normalized("Scaled", {"n1": 10}, PluginTraits(score_reads=reads))
    framework = framework_of(scaled)
    first = cluster.info(make_pod("p"))  # keeps the class alive
    assert _score(framework, cluster, *names).total[:4].tolist() == [0, 100, 0, 0]
    scaled.scores = {"n1": 10, "n2": 20}
    cluster.bind(make_pod("other", cpu="1"), "n2")
    cluster.update_node(make_node("n2", labels={"new": "label"}))
    assert _score(framework, cluster, *names).total[:4].tolist() == [0, 50, 100, 0]
    assert first.pod_class is cluster.info(make_pod("q")).pod_class


@pytest.mark.parametrize("reads", list(Reads))
@pytest.mark.parametrize("score", [-1, 101, 2**40])
@pytest.mark.parametrize("num_nodes", [3, 60])
def test_a_score_out_of_range_is_an_error(reads: Reads, score: int, num_nodes: int) -> None:
    names = [f"n{index}" for index in range(num_nodes)]
    cluster = MirroredCluster([make_node(name) for name in names])
    framework = framework_of(Rates("Wild", {"n1": score}, PluginTraits(score_reads=reads)))
    with pytest.raises(PluginFailed) as caught:
        _score(framework, cluster, *names)
    status = caught.value.status
    assert (status.code, status.plugin) == (Code.ERROR, "Wild")
    assert status.message == (
        'applying score defaultWeights on Score plugins: plugin "Wild" returns an invalid score '
        f"{score}, it should in the range of [0, 100] after normalizing"
    )


def test_an_out_of_range_score_of_an_infeasible_node_is_ignored() -> None:
    cluster = MirroredCluster([make_node(f"n{index}") for index in range(60)])
    framework = framework_of(Rates("Wild", {"n59": 1000}, PluginTraits(score_reads=Reads.USAGE)))
    names = [f"n{index}" for index in range(59)]
    assert _score(framework, cluster, *names).total.tolist() == [0] * 59


@pytest.mark.parametrize("reads", list(Reads))
def test_the_error_of_a_plugin_has_its_name_and_message(
    cluster: MirroredCluster, reads: Reads
) -> None:
    with pytest.raises(PluginFailed) as caught:
        _score(framework_of(Raises(traits=PluginTraits(score_reads=reads))), cluster)
    assert caught.value.status.message == (
        'running Score plugins: plugin "Raises" failed with: the disk is on fire'
    )


def test_the_scores_of_extenders_come_last_and_have_a_weight_of_one(
    cluster: MirroredCluster,
) -> None:
    result = _score(framework_of(Rates("A", {"n1": 4}), weights={"A": 2}), cluster)
    extended = result.with_extender_scores(np.array([3, 0, 30], dtype=np.int64))
    assert extended.total.tolist() == [3, 8, 30]
    assert [(each.plugin, each.weighted.tolist()) for each in extended.per_plugin()] == [
        ("A", [0, 8, 0]),
        (EXTENDER_PLUGIN, [3, 0, 30]),
    ]
    picked = extended.pick(np.array([2], dtype=np.int64))
    assert picked.weights == (("A", 2), (EXTENDER_PLUGIN, 1))
    assert picked.others[EXTENDER_PLUGIN] == ((30,), (30,))


def test_the_error_of_a_normalisation_has_the_name_of_its_plugin(
    cluster: MirroredCluster,
) -> None:
    class Divides(Rates):
        def normalize_score(
            self, state: CycleState, pod: PodInfo, nodes: NodeView, scores: Int64Array
        ) -> Int64Array:
            raise ZeroDivisionError("no spread")

    with pytest.raises(
        PluginFailed, match=r'^running Normalize on Score plugins: plugin "A" failed with'
    ):
        _score(framework_of(Divides("A", {})), cluster)


def test_scores_that_are_equal_no_more_are_normalised_again() -> None:
    names = [f"n{index}" for index in range(60)]
    cluster = MirroredCluster([make_node(name) for name in names])
    scaled = Normalized("A", dict.fromkeys(names, 7), PluginTraits(score_reads=Reads.NODE))
    framework = framework_of(scaled)
    first = cluster.info(make_pod("p"))  # keeps the class alive
    assert _score(framework, cluster, *names).total.tolist() == [100] * 60
    scaled.scores = {**dict.fromkeys(names, 7), "n2": 14}
    cluster.update_node(make_node("n2", labels={"new": "label"}))
    assert _score(framework, cluster, *names).total[:4].tolist() == [50, 50, 100, 50]
    scaled.scores = dict.fromkeys(names, 7)
    cluster.update_node(make_node("n2", labels={"newer": "label"}))
    assert _score(framework, cluster, *names).total.tolist() == [100] * 60
    assert first.pod_class is cluster.info(make_pod("q")).pod_class


def test_one_score_of_all_nodes_is_normalised_with_a_node() -> None:
    names = [f"n{index}" for index in range(60)]
    cluster = MirroredCluster([make_node(name) for name in names])

    class ByNode(Normalized):
        def normalize_score(
            self, state: CycleState, pod: PodInfo, nodes: NodeView, scores: Int64Array
        ) -> Int64Array:
            return np.where(nodes.exists, scores * 3, 0)

    framework = framework_of(
        ByNode("A", dict.fromkeys(names, 7), PluginTraits(score_reads=Reads.NODE))
    )
    assert _score(framework, cluster, *names).total.tolist() == [21] * 60
