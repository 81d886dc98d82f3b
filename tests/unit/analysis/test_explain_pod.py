"""A pod's explanation names every rejecting plugin, every score and what would help."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from stowage.analysis.explain_pod import NotInCluster, explain_pod
from stowage.api.objects.meta import Condition
from stowage.api.objects.node import (
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Taint,
)
from stowage.api.objects.pod import Affinity, NodeAffinity, PodStatus
from tests.support.builders import make_node, make_pod
from tests.support.clusters import loaded_cluster

GPU = Taint(key="gpu", value="yes", effect="NoSchedule")


def test_a_pending_pod_lists_every_plugin_that_rejects_each_node() -> None:
    cluster = loaded_cluster(
        make_node("small", cpu="1"),
        make_node("tainted", cpu="1", taints=[GPU]),
        make_pod("p", cpu="2"),
    )
    small, tainted = explain_pod(cluster, "default/p").decision.nodes
    assert small.rejected_by is not None
    assert (small.node, small.rejected_by.plugin) == ("small", "NodeResourcesFit")
    assert small.also_rejected_by == ()
    assert tainted.rejected_by is not None
    assert tainted.rejected_by.plugin == "TaintToleration"
    (other,) = tainted.also_rejected_by
    assert (other.plugin, other.reasons) == ("NodeResourcesFit", ("Insufficient cpu",))


def test_the_answer_repeats_what_the_scheduler_in_charge_said() -> None:
    pod = make_pod("p", cpu="8")
    said = Condition(type="PodScheduled", status="False", message="0/9 nodes are available")
    pod = msgspec.structs.replace(pod, status=PodStatus(conditions=(said,)))
    explained = explain_pod(loaded_cluster(make_node("n"), pod), "default/p")
    assert explained.condition == "0/9 nodes are available"
    assert explained.decision.message.startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert explained.basis == "evaluated against the cluster as it is now"


def test_a_placed_pod_is_scored_as_if_it_were_not_there_yet() -> None:
    cluster = loaded_cluster(
        make_node("one", cpu="4"), make_node("two", cpu="4"), make_pod("p", cpu="4", node="one")
    )
    before = cluster.engine.dump()
    explained = explain_pod(cluster, "default/p")
    assert explained.decision.outcome == "Scheduled"
    assert [each.node for each in explained.decision.ranked] == ["one", "two"]
    assert explained.decision.best == ("one", "two")
    assert explained.runner_up is not None
    assert (explained.runner_up.node, explained.runner_up.behind) == ("two", 0)
    assert cluster.engine.dump() == before
    cluster.engine.validate()


def test_a_running_pod_is_judged_with_its_node_affinity() -> None:
    ssd = NodeSelectorTerm((NodeSelectorRequirement("disk", "In", ("ssd",)),))
    affinity = Affinity(NodeAffinity(NodeSelector((ssd,))))
    cluster = loaded_cluster(
        make_node("plain"),
        make_node("quick", labels={"disk": "ssd"}),
        make_pod("p", node="quick", phase="Running", affinity=affinity),
    )
    decision = explain_pod(cluster, "default/p").decision
    assert [each.node for each in decision.ranked] == ["quick"]
    (rejected,) = [each.rejected_by for each in decision.nodes if each.node == "plain"]
    assert rejected is not None
    assert rejected.plugin == "NodeAffinity"
    cluster.engine.validate()


def test_the_scores_of_each_node_add_up_to_its_total() -> None:
    cluster = loaded_cluster(
        make_node("one"), make_node("two"), make_pod("old", cpu="2", node="two"), make_pod("p")
    )
    explained = explain_pod(cluster, "default/p")
    assert explained.decision.chosen == "one"
    for verdict in explained.decision.ranked:
        assert sum(each.weighted for each in verdict.scores) == verdict.total
    lost = explained.runner_up
    assert lost is not None
    assert lost.behind > 0
    assert sum(lost.by_plugin.values()) == lost.behind


def test_a_placed_pod_that_would_go_elsewhere_today_says_so() -> None:
    cluster = loaded_cluster(
        make_node("full"),
        make_node("empty"),
        make_pod("old", cpu="3", node="full"),
        make_pod("p", cpu="1", node="full"),
    )
    assert "a new decision would choose empty" in explain_pod(cluster, "default/p").notes


def test_a_gated_pod_names_the_plugin_that_holds_it_back() -> None:
    cluster = loaded_cluster(make_node("n"), make_pod("p", gates=["example.com/wait"]))
    decision = explain_pod(cluster, "default/p").decision
    assert decision.outcome == "Gated"
    assert decision.pre_enqueue is not None
    assert decision.pre_enqueue.plugin == "SchedulingGates"


def test_preemption_candidates_are_listed_with_their_victims() -> None:
    cluster = loaded_cluster(
        make_node("n", cpu="2"),
        make_pod("low", cpu="2", node="n", priority=1),
        make_pod("high", cpu="2", priority=10),
    )
    answer = explain_pod(cluster, "default/high").decision.preemption
    assert answer is not None
    assert answer.nominated_node == "n"
    assert [each.victims for each in answer.candidates] == [("default/low",)]


def test_a_pending_pod_says_what_would_wake_it() -> None:
    cluster = loaded_cluster(make_node("n", taints=[GPU]), make_pod("p"))
    decision = explain_pod(cluster, "default/p").decision
    waits = {each.plugin: each.events for each in decision.waits_for}
    assert waits["TaintToleration"] == ("NodeAdd", "NodeUpdateNodeTaint", "PodUpdatePodToleration")


def test_the_first_profile_answers_for_other_schedulers() -> None:
    cluster = loaded_cluster(make_node("n"), make_pod("p", scheduler_name="other"))
    explained = explain_pod(cluster, "default/p")
    assert explained.decision.chosen == "n"
    assert (explained.scheduler_name, explained.profile) == ("other", "stowage")
    assert explained.notes[0] == (
        "no profile has the scheduler name other: the profile stowage answers"
    )


def test_a_pod_that_no_scheduler_has_reported_about_says_so() -> None:
    note = (
        "no scheduler has reported about it (it has no PodScheduled condition): if this lasts, "
        "check that a scheduler with the name other runs"
    )
    pending = make_pod("p", scheduler_name="other")
    assert note in explain_pod(loaded_cluster(make_node("n"), pending), "default/p").notes
    told = PodStatus(conditions=(Condition(type="PodScheduled", status="False"),))
    for other in (
        msgspec.structs.replace(pending, status=told),
        make_pod("p", scheduler_name="other", node="n"),
        make_pod("p", scheduler_name="other", gates=("wait",)),
    ):
        assert note not in explain_pod(loaded_cluster(make_node("n"), other), "default/p").notes


def test_a_pod_that_is_being_deleted_is_not_scheduled() -> None:
    cluster = loaded_cluster(make_node("n"), make_pod("p", terminating=True))
    with pytest.raises(NotInCluster, match="pod default/p is being deleted: it is not scheduled"):
        explain_pod(cluster, "default/p")


def test_a_problem_names_its_object_once() -> None:
    (problem,) = loaded_cluster(make_pod("p", cpu="abc")).problems
    assert problem.count("Pod default/p") == 1


def test_an_unknown_pod_is_named_with_those_of_other_namespaces() -> None:
    cluster = loaded_cluster(make_pod("p", namespace="shop"), make_pod("q"))
    with pytest.raises(NotInCluster, match=r"^there is no pod default/p; there is shop/p$"):
        explain_pod(cluster, "default/p")
    with pytest.raises(NotInCluster, match=r"^there is no pod default/r$"):
        explain_pod(cluster, "default/r")


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_finished_pod_has_no_explanation(phase: str) -> None:
    cluster = loaded_cluster(make_node("n"), make_pod("p", node="n", phase=phase))
    with pytest.raises(NotInCluster, match=f"pod default/p is {phase}"):
        explain_pod(cluster, "default/p")


def test_an_unknown_pod_is_named() -> None:
    with pytest.raises(NotInCluster, match="there is no pod default/p"):
        explain_pod(loaded_cluster(), "default/p")


ALL_ALIKE = {"score": {"disabled": [{"name": "*"}], "enabled": [{"name": "EqualPriority"}]}}
BEST_FIT = {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}}


@pytest.mark.parametrize(
    ("ties", "chosen", "text"),
    [
        ({}, "n0", "tie of 12 nodes, broken by Random"),
        ({"type": "RoundRobin"}, "n0", "tie of 12 nodes, broken by RoundRobin"),
        ({"type": "FixedOrder", "seed": 5}, "n2", "tie of 12 nodes, broken by FixedOrder"),
        (
            {"scorePlugins": [BEST_FIT]},
            "n7",
            "tie of 12 nodes, broken by NodeResourcesFit best fit",
        ),
        (
            {"scorePlugins": [{"name": "NodeResourcesFit"}], "type": "RoundRobin"},
            "n0",
            "tie of 12 nodes, broken by NodeResourcesFit worst fit (11 left), RoundRobin",
        ),
    ],
)
def test_a_tie_says_how_it_is_broken(ties: dict[str, Any], chosen: str, text: str) -> None:
    profile = {"schedulerName": "default-scheduler", "plugins": ALL_ALIKE, "tieBreaking": ties}
    cluster = loaded_cluster(
        *(make_node(f"n{number}") for number in range(12)),
        make_pod("old", cpu="1", node="n7"),
        make_pod("p", cpu="1"),
        profile=profile,
    )
    decision = explain_pod(cluster, "default/p").decision
    assert decision.tie is not None
    assert (decision.chosen, decision.tie.text) == (chosen, text)
    assert len(decision.best) == decision.tie.nodes == 12


def test_without_a_tie_there_is_nothing_to_break() -> None:
    cluster = loaded_cluster(
        make_node("one"), make_node("two"), make_pod("old", cpu="2", node="two"), make_pod("p")
    )
    assert explain_pod(cluster, "default/p").decision.tie is None
