"""The explanation of a pod in columns says what ``stowage explain`` says."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from stowage.analysis.explain_pod import NotInCluster, explain_pod
from stowage.analysis.explanation import NodeVerdict
from stowage.console.answers.pod_answer import (
    MAX_NODES,
    PodAnswer,
    pod_answer,
    recorded_answer,
    verdict_map,
)
from stowage.console.answers.verdict_columns import FITS, LEFT_OUT
from stowage.console.clusters.moment import Moment
from tests.support.builders import make_node, make_pod
from tests.support.consoles import decision, moment_of


def small() -> Moment:
    return moment_of(
        make_node("a", cpu="1"),
        make_node("b", cpu="4"),
        make_node("c", cpu="8", unschedulable=True),
        make_node("d", cpu="1", unschedulable=True),
        make_pod("busy", cpu="2", node="b"),
        make_pod("fits", cpu="1"),
        make_pod("big", cpu="16", priority=5),
        make_pod("pinned", node_selector={"kubernetes.io/hostname": "a"}),
        make_pod("gated", gates=["wait"]),
    )


def _verdicts(answer: PodAnswer) -> list[NodeVerdict]:
    """The records of which the columns were made."""
    table, found = answer.table, []
    for place, (name, code) in enumerate(zip(table.nodes, table.verdict, strict=True)):
        others = tuple(table.rejections[each] for each in table.also.get(str(place), ()))
        rejected = table.rejections[code] if code >= 0 else None
        found.append(NodeVerdict(name, rejected, others, total=table.total[place]))
    return found


@pytest.mark.parametrize("key", ["default/fits", "default/big", "default/pinned", "default/busy"])
def test_the_table_has_the_verdicts_of_explain(key: str) -> None:
    moment = small()
    explained = explain_pod(moment.loaded, key)
    answer = pod_answer(moment, key)
    expected = [
        NodeVerdict(each.node, each.rejected_by, each.also_rejected_by, total=each.total)
        for each in explained.decision.nodes
    ]
    assert _verdicts(answer) == expected
    assert answer.decision.message == explained.decision.message
    assert answer.runner_up == explained.runner_up
    for place, verdict in enumerate(explained.decision.ranked):
        weighted = [column.weighted[place] for column in answer.table.plugins]
        assert weighted == [each.weighted for each in verdict.scores]
        assert sum(weighted) == verdict.total


def test_a_node_that_nobody_judged_is_left_out() -> None:
    moment = moment_of(make_node("a"), make_pod("gated", gates=["wait"]))
    answer = pod_answer(moment, "default/gated")
    assert answer.decision.outcome == "Gated"
    assert (answer.table.nodes, answer.table.verdict) == (["a"], [LEFT_OUT])


def test_the_map_has_the_verdict_of_each_node_by_name() -> None:
    found = verdict_map(small(), "default/fits")
    assert found.names == ["a", "b", "c", "d"]
    plugins = [found.rejections[code].plugin if code >= 0 else code for code in found.verdict]
    assert plugins == [FITS, FITS, "NodeUnschedulable", "NodeUnschedulable"]
    assert found.total[2] is None
    assert found.chosen == max(zip(found.total[:2], found.names, strict=False))[1]


def test_a_near_miss_names_a_few_nodes_and_counts_all() -> None:
    nodes = [make_node(f"n{number:02}", cpu="1") for number in range(MAX_NODES + 5)]
    answer = pod_answer(moment_of(*nodes, make_pod("big", cpu="2")), "default/big")
    (miss,) = answer.decision.near_misses
    assert (len(miss.nodes), miss.num_nodes) == (MAX_NODES, MAX_NODES + 5)


def test_preemption_shows_the_chosen_candidate_first() -> None:
    moment = moment_of(
        make_node("a", cpu="1"),
        make_node("b", cpu="1"),
        make_pod("keep", cpu="1", node="a", priority=3),
        make_pod("low", cpu="1", node="b", priority=1),
        make_pod("high", cpu="1", priority=9),
    )
    preemption = pod_answer(moment, "default/high").decision.preemption
    assert preemption is not None
    assert preemption.nominated_node == preemption.candidates[0].node == "b"
    assert preemption.num_candidates == 2


def test_a_recorded_decision_is_explained_by_its_record() -> None:
    moment = small()
    record = decision(pod="default/fits", node_name="b")
    row = moment.history.add(record)
    detail = recorded_answer(moment, row, record)
    assert detail.explanation.recorded
    assert detail.explanation.node == "b"
    assert detail.explanation.table.nodes == [each.node for each in record.nodes]


def test_a_record_of_the_only_feasible_node_has_the_rejections_of_the_others() -> None:
    moment = small()
    uid = pod_answer(moment, "default/busy").uid
    record = replace(decision(pod="default/busy", node_name="b"), uid=uid)
    record = replace(record, nodes=(), evaluated_nodes=4, feasible_nodes=1)
    explained = recorded_answer(moment, moment.history.add(record), record).explanation
    assert explained.decision.reason_counts == {
        "node(s) were unschedulable": 2,
        "Insufficient cpu": 1,
    }
    assert explained.table.nodes == ["b", "a", "c", "d"]
    assert explained.notes == (
        "4 nodes were evaluated; b was the only one that passed Filter, so none was scored",
        "the rejections of the other nodes are evaluated against the cluster as it is now",
    )
    rejected_now = replace(record, node="c")
    of_another = recorded_answer(moment, moment.history.add(rejected_now), rejected_now).explanation
    assert of_another.table.nodes == ["c", "a", "d"]
    anew = replace(record, uid="another")
    later = recorded_answer(moment, moment.history.add(anew), anew).explanation
    assert later.decision.reason_counts == {}


def test_a_decision_without_a_record_is_evaluated_now() -> None:
    moment = small()
    row = moment.history.add(decision(pod="default/busy", node_name="b"))
    detail = recorded_answer(moment, row, None)
    assert not detail.explanation.recorded
    assert len(detail.explanation.table.nodes) == 4


def test_an_unknown_pod_is_named() -> None:
    with pytest.raises(NotInCluster, match="there is no pod default/x"):
        pod_answer(small(), "default/x")
