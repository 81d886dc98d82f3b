"""A node's answer shows its room, its pods, and the decisions about it."""

from __future__ import annotations

import pytest

from stowage.analysis.explain_pod import NotInCluster
from stowage.api.objects.node import Taint
from stowage.console.answers.node_answer import MAX_JUDGED, node_answer
from tests.support.builders import make_node, make_pod
from tests.support.consoles import decision, live_cluster, moment_of


def test_a_node_shows_what_is_free_and_who_is_there() -> None:
    taint = Taint(key="node.kubernetes.io/memory-pressure", effect="NoSchedule")
    moment = moment_of(
        make_node("n", cpu="4", pods=10, taints=[taint]),
        make_pod("minor", cpu="500m", node="n"),
        make_pod("major", node="n", priority=5),
    )
    answer = node_answer(moment, "n")
    by_name = {each.name: each for each in answer.resources}
    cpu = by_name["cpu"]
    assert (cpu.unit, cpu.allocatable, cpu.requested, cpu.free) == ("milli", 4000, 500, 3500)
    assert (cpu.text.allocatable, cpu.text.free) == ("4", "3500m")
    assert (by_name["pods"].requested, by_name["pods"].free) == (2, 8)
    assert [each.pod for each in answer.pods] == ["default/major", "default/minor"]
    assert answer.pressure == ["memory"]
    assert answer.taints == ("node.kubernetes.io/memory-pressure:NoSchedule",)


def test_only_some_of_many_pending_pods_are_judged() -> None:
    pods = [make_pod(f"p{number}", cpu="9") for number in range(MAX_JUDGED + 3)]
    answer = node_answer(moment_of(make_node("n"), make_pod("fits"), *pods), "n")
    assert answer.judged == len(answer.rejects) + len(answer.fits) == MAX_JUDGED
    assert answer.pending_total == MAX_JUDGED + 4
    assert {by.plugin for each in answer.rejects for by in each.rejected_by} == {"NodeResourcesFit"}


def test_a_node_shows_the_decisions_for_it() -> None:
    cluster = live_cluster(make_node("n"))
    cluster.history.add(decision(1, node_name="n"))
    cluster.history.add(decision(2, node_name="other"))
    cluster.history.add(decision(3, node_name="n"))
    answer = node_answer(cluster.moment(0.0), "n")
    assert [each.id for each in answer.decisions] == ["d-3", "d-1"]


def test_an_unknown_node_is_named() -> None:
    with pytest.raises(NotInCluster, match="there is no node x"):
        node_answer(moment_of(make_node("n")), "x")
