"""PodTopologySpread: raw and normalised scores."""

from __future__ import annotations

import pytest

from stowage.api.objects.pod import Pod
from tests.support.builders import HOSTNAME, ZONE
from tests.support.mirrored_cluster import MirroredCluster
from tests.unit.plugins.single_plugin import Scores
from tests.unit.plugins.spread_pods import incoming, placed, scored, spread, zones

SCORE_CASES: dict[str, tuple[list[Pod], Pod, Scores | None]] = {
    "a pod without soft constraints is not scored": (placed("a1"), incoming(spread()), None),
    # log(2 zones + 2) = 1.386: 2 * 1.386 = 2.77 -> 3; 1 * 1.386 -> 1; (3 + 1 - 3) * 100 // 3
    "the emptier zone scores higher, and nodes without the key score 0": (
        placed("a1", "a2", "b1"),
        incoming(spread(soft=True)),
        {"a1": (3, 33), "a2": (3, 33), "b1": (1, 100), "bare": (0, 0)},
    ),
    # 2.77 + 4 = 6.77 -> 7; 1.386 + 4 -> 5; (7 + 5 - 7) * 100 // 7
    "a larger maxSkew reduces the difference": (
        placed("a1", "a2", "b1"),
        incoming(spread(soft=True, max_skew=5)),
        {"a1": (7, 71), "a2": (7, 71), "b1": (5, 100), "bare": (0, 0)},
    ),
    "without any matching pod all rated nodes get 100": (
        [],
        incoming(spread(soft=True)),
        {"a1": (0, 100), "a2": (0, 100), "b1": (0, 100), "bare": (0, 0)},
    ),
    # log(4 nodes + 2) = 1.79 per pod on the node itself
    "by hostname each node counts its own pods": (
        placed("a1", "a1", "b1"),
        incoming(spread(HOSTNAME, soft=True)),
        {"a1": (4, 0), "a2": (0, 100), "b1": (2, 50), "bare": (0, 100)},
    ),
    "counts by hostname ignore node affinity": (
        placed("b1"),
        incoming(spread(HOSTNAME, soft=True), node_selector={ZONE: "a"}),
        {"a1": (0, 100), "a2": (0, 100), "b1": (2, 0), "bare": (0, 100)},
    ),
    "counts by zone leave out nodes that node affinity excludes": (
        placed("b1"),
        incoming(spread(ZONE, soft=True), node_selector={ZONE: "a"}),
        {"a1": (0, 100), "a2": (0, 100), "b1": (0, 100), "bare": (0, 0)},
    ),
}


@pytest.mark.parametrize("sentence", SCORE_CASES)
def test_nodes_of_domains_with_fewer_pods_score_more(sentence: str) -> None:
    pods, pod, want = SCORE_CASES[sentence]
    assert scored(MirroredCluster(zones(), pods), pod) == want


def test_the_weight_depends_on_the_number_of_domains_of_feasible_nodes() -> None:
    cluster = MirroredCluster(zones(), placed("a1", "a2", "a2"))
    # one zone among the feasible nodes: 3 * log(1 + 2) = 3.3 -> 3; with two it would be 4
    got = scored(cluster, incoming(spread(soft=True)), feasible=["a1", "a2"])
    assert got == {"a1": (3, 100), "a2": (3, 100)}


def test_no_node_is_scored_if_no_feasible_node_has_the_keys() -> None:
    cluster = MirroredCluster(zones(), placed("a1"))
    assert scored(cluster, incoming(spread(soft=True)), feasible=["bare"]) == {"bare": (0, 0)}
