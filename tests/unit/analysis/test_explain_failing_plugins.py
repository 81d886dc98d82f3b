"""A decision is explained although a plugin fails where the decision did not ask it."""

from __future__ import annotations

from dataclasses import dataclass

from stowage.analysis.cluster_objects import ClusterObjects
from stowage.analysis.explain_pod import explain_pod
from stowage.analysis.explanation import SchedulingExplanation
from stowage.analysis.loaded_cluster import load_cluster
from stowage.api.objects.meta import ApiStruct
from stowage.cli.ask.explain_tables import rejection_parts
from stowage.framework import CycleState, FilterVerdict, PluginTraits
from stowage.framework.extension_points import Plugin
from stowage.framework.verdict import Int64Array
from stowage.state import NodeView, PodInfo
from tests.support.builders import make_node, make_pod
from tests.support.plugins.small_plugins import NO_TRAITS, Raises, framework_of


@dataclass
class RaisesInScore:
    """Raises an exception in Score."""

    name: str = "RaisesInScore"
    traits: PluginTraits = NO_TRAITS

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Int64Array:
        raise RuntimeError("no score")


@dataclass
class RaisesBeyondOneNode:
    """Accepts a node, and raises an exception if it is asked about others."""

    name: str = "RaisesBeyondOneNode"
    traits: PluginTraits = NO_TRAITS

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> FilterVerdict:
        if len(nodes) > 1:
            raise RuntimeError("too many nodes")
        return FilterVerdict(())


def _decision(plugin: Plugin, *objects: ApiStruct) -> SchedulingExplanation:
    known = ClusterObjects()
    for each in objects:
        known.add(each)
    return explain_pod(load_cluster(known, [framework_of(plugin)]), "default/p").decision


def test_the_only_feasible_node_is_shown_without_scores_if_a_score_plugin_fails() -> None:
    decision = _decision(RaisesInScore(), make_node("n"), make_pod("p", scheduler_name="test"))
    assert (decision.outcome, decision.chosen, decision.scored) == ("Scheduled", "n", False)
    assert [each.node for each in decision.nodes] == ["n"]
    assert decision.ranked == ()


def test_a_nominated_node_is_shown_if_a_filter_plugin_fails_on_others() -> None:
    pod = make_pod("p", scheduler_name="test", nominated_node="n")
    decision = _decision(RaisesBeyondOneNode(), make_node("n"), make_node("other"), pod)
    assert (decision.outcome, decision.chosen) == ("Scheduled", "n")
    assert decision.via_nomination
    assert decision.nodes == ()


def test_an_error_says_that_the_pod_waits_for_its_backoff() -> None:
    decision = _decision(Raises(), make_node("n"), make_pod("p", scheduler_name="test"))
    *_, last = rejection_parts(decision, False, said=decision.message)
    assert last == "it is tried again after its backoff, by default 1 to 10 seconds"
