"""The recorded scores of a decision equal the table that is computed anew for its explanation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from stowage.analysis.explained_decision import explain_decision
from stowage.api.config.loading import KubeSchedulerProfile
from stowage.api.objects.node import Node
from stowage.api.objects.pod import Pod
from stowage.engine.scheduling import Scheduled, SchedulingRequest, TieBreaker, schedule_pod
from stowage.engine.scheduling.node_scoring import NUM_RECORDED, best_nodes
from stowage.framework import CycleState, Framework, ScoreResult, build_profile
from stowage.framework.runtime.score_result import NodeScores
from stowage.framework.verdict import Int64Array
from stowage.plugins import in_tree_registry
from stowage.state import PodInfo, Snapshot
from tests.support.builders import make_node, make_pod
from tests.support.generators import placement_strategies as some
from tests.support.mirrored_cluster import MirroredCluster, on_node

#: So many feasible nodes that scores are kept, and updated in place after a change.
_QUIET_NODES = [make_node(f"quiet{index}", cpu="4", memory="4Gi") for index in range(40)]
_steps = st.tuples(st.lists(some.changes, max_size=2), st.integers(0, 2), st.integers(0, 10**6))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(some.nodes(), max_size=4),
    st.lists(some.pods(), min_size=3, max_size=3),
    st.lists(_steps, min_size=2, max_size=8),
)
def test_recorded_scores_equal_the_explained_table(
    first_nodes: list[Node],
    templates: list[Pod],
    history: Sequence[tuple[list[some.Change], int, int]],
) -> None:
    cluster = MirroredCluster([*_QUIET_NODES, *first_nodes])
    recording, explaining = _framework(100), _framework(0)
    for happened, which, choice in history:
        for change in happened:
            change(cluster)
        pod = cluster.info(templates[which])
        placed = _check(recording, explaining, cluster.snapshot(), pod, choice)
        if placed and pod.uid not in cluster.plain.pods:
            cluster.update_pod(on_node(templates[which], placed))


def _framework(class_cache_size: int) -> Framework:
    profile = build_profile(KubeSchedulerProfile(), in_tree_registry())
    return Framework(profile, class_cache_size=class_cache_size)


def _check(
    recording: Framework, explaining: Framework, snapshot: Snapshot, pod: PodInfo, choice: int
) -> str:
    """Decide, compare the record with the explanation, and return the chosen node."""
    ties = TieBreaker(lambda num_ties: choice % num_ties)
    result = schedule_pod(SchedulingRequest(recording, snapshot, pod, CycleState(), ties))
    if not isinstance(result, Scheduled):
        return ""
    recorded = result.best_nodes()
    if recorded is None:
        assert result.feasible_nodes == 1
        return result.node_name
    ranked = explain_decision(explaining, snapshot, pod).ranked
    table = {each.node: (each.total, each.scores) for each in ranked}
    nodes = recorded.scored_nodes()
    assert nodes[0].node == result.node_name
    assert {each.node: (each.total, each.scores) for each in nodes} == {
        each.node: table[each.node] for each in nodes
    }
    assert [each.total for each in nodes] == [each.total for each in ranked[:NUM_RECORDED]]
    return result.node_name


@given(st.lists(st.integers(0, 5), min_size=1, max_size=40), st.data())
def test_the_best_nodes_are_those_of_a_plain_sort(totals: list[int], data: st.DataObject) -> None:
    """Two ways to find the ten: passes over an array, and sorting all nodes."""
    highest = [row for row, total in enumerate(totals) if total == max(totals)]
    chosen = data.draw(st.sampled_from(highest))
    names = [f"n{row}" for row in range(len(totals))]
    scores = ScoreResult(np.arange(len(totals)), np.array(totals), tuple, _unscored)

    best = best_nodes(scores, chosen, names)

    others = sorted(
        (row for row in range(len(totals)) if row != chosen), key=lambda row: (-totals[row], row)
    )
    assert best.names == tuple(names[row] for row in [chosen, *others][:NUM_RECORDED])


def _unscored(_positions: Int64Array) -> NodeScores:
    return NodeScores((), (), np.empty((0, 0), dtype=np.uint8), {})


def test_scores_looked_up_by_the_amounts_of_a_node_are_recorded() -> None:
    """Nodes that fill alike get scores that were computed for an earlier node."""
    cluster = MirroredCluster(_QUIET_NODES)
    recording, explaining = _framework(100), _framework(0)
    for number in range(60):
        pod = make_pod(f"p{number}", requests={"cpu": "500m", "memory": "100Mi"})
        placed = _check(recording, explaining, cluster.snapshot(), cluster.info(pod), number)
        cluster.update_pod(on_node(pod, placed))
