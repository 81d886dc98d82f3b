"""Settings of a profile that kube-scheduler v1.36 does not have."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from msgspec import convert

from stowage.api.config.loading import KubeSchedulerProfile
from stowage.api.events import AssignedPodSeen, NodeSeen, PendingPodSeen
from stowage.api.instructions import AttemptResult, EvictPod
from stowage.api.objects.node import NodeSelectorRequirement, NodeSelectorTerm, Taint
from stowage.api.objects.pod import Affinity, NodeAffinity, Pod, PreferredSchedulingTerm
from stowage.engine import Engine, Journal, make_engine, replay
from stowage.framework import Framework, build_profile
from stowage.plugins import in_tree_registry
from tests.support.builders import ZONE, make_node, make_pod
from tests.support.engines import DEFAULT_PROFILE, default_engine, of_type

UNTOLERATED = "node(s) had untolerated taint(s)"


def engine_with(**settings: Any) -> Engine:
    return default_engine(profile={**DEFAULT_PROFILE, **settings})


@pytest.mark.parametrize(
    ("always", "reasons"),
    [
        (False, {"Insufficient cpu": 1, UNTOLERATED: 1}),
        (True, {"Insufficient cpu": 2, "Insufficient memory": 1, UNTOLERATED: 1}),
    ],
)
def test_with_always_check_all_predicates_each_rejecting_plugin_counts(
    always: bool, reasons: dict[str, int]
) -> None:
    engine = engine_with(alwaysCheckAllPredicates=always, disablePreemption=True)
    tainted = make_node("a", cpu="1", memory="1Gi", taints=[Taint("key", "", "NoSchedule")])
    engine.handle([NodeSeen(tainted), NodeSeen(make_node("b", cpu="1"))], 0.0)
    engine.handle([PendingPodSeen(make_pod("p", cpu="2", memory="2Gi"))], 0.0)
    (attempt,) = of_type(AttemptResult, engine.schedule(0.0, 1))
    assert attempt.reason_counts == reasons
    assert attempt.unschedulable_plugins == ("NodeResourcesFit", "TaintToleration")


@pytest.mark.parametrize("disabled", [False, True])
def test_with_disable_preemption_no_pod_is_evicted(disabled: bool) -> None:
    engine = engine_with(disablePreemption=disabled)
    engine.handle([NodeSeen(make_node("n", cpu="1"))], 0.0)
    engine.handle([AssignedPodSeen(make_pod("low", cpu="1", node="n", priority=1))], 0.0)
    engine.handle([PendingPodSeen(make_pod("high", cpu="1", priority=2))], 0.0)
    instructions = engine.schedule(0.0, 1)
    assert bool(of_type(EvictPod, instructions)) is not disabled
    (attempt,) = of_type(AttemptResult, instructions)
    assert attempt.nominated_node_name == ("" if disabled else "n")


def test_disable_preemption_wins_over_a_profile_that_enables_the_plugin() -> None:
    enabled = {"postFilter": {"enabled": [{"name": "DefaultPreemption"}]}}
    engine = engine_with(disablePreemption=True, plugins=enabled)
    names = engine.state.frameworks["default-scheduler"].profile.instances
    assert "DefaultPreemption" not in names


def prefers_zone(zone: str) -> Affinity:
    wanted = NodeSelectorTerm(match_expressions=(NodeSelectorRequirement(ZONE, "In", (zone,)),))
    preferred = (PreferredSchedulingTerm(1, wanted),)
    return Affinity(NodeAffinity(preferred_during_scheduling_ignored_during_execution=preferred))


def test_a_profile_says_which_share_of_many_nodes_is_scored() -> None:
    engine = engine_with(percentageOfNodesToScore=50)
    engine.handle([NodeSeen(make_node(f"n{number}")) for number in range(202)], 0.0)
    engine.handle([PendingPodSeen(make_pod("p"))], 0.0)
    (result,) = of_type(AttemptResult, engine.schedule(0.0, 1))
    assert result.evaluated_nodes == 101


def test_a_limited_search_leaves_out_nodes_of_all_zones_alike() -> None:
    """400 nodes in the order of their zones; half of them are scored."""
    engine = engine_with(percentageOfNodesToScore=50)
    zones = ["a"] * 150 + ["b"] * 150 + ["c"] * 100
    nodes = [make_node(f"{zone}{number}", zone=zone) for number, zone in enumerate(zones)]
    engine.handle(map(NodeSeen, nodes), 0.0)
    for attempt in range(12):
        pod = make_pod(f"p{attempt}", affinity=prefers_zone("c"))
        engine.handle([PendingPodSeen(pod)], 0.0)
        (result,) = of_type(AttemptResult, engine.schedule(0.0, 1))
        assert result.node_name[0] == "c"
        assert (result.evaluated_nodes, result.feasible_nodes) == (200, 200)


#: All nodes get one point, so every pod meets a tie.
ALL_ALIKE = {"score": {"disabled": [{"name": "*"}], "enabled": [{"name": "EqualPriority"}]}}
BEST_FIT = {
    "name": "NodeResourcesFit",
    "args": {"scoringStrategy": {"type": "MostAllocated"}},
}


def tied_profile(name: str = "default-scheduler", **ties: Any) -> dict[str, Any]:
    return {"schedulerName": name, "plugins": ALL_ALIKE, "tieBreaking": ties}


def placed(engine: Engine, *pods: Pod) -> list[str]:
    """The nodes of pods that are scheduled one after the other."""
    nodes = []
    for pod in pods:
        engine.handle([PendingPodSeen(pod)], 0.0)
        (result,) = of_type(AttemptResult, engine.schedule(0.0, 1))
        nodes.append(result.node_name)
    return nodes


def never(num_nodes: int) -> int:
    raise AssertionError(f"asked to choose among {num_nodes} nodes")


def three_nodes() -> list[NodeSeen]:
    return [NodeSeen(make_node(name, cpu="4", zone=name[0])) for name in ("a1", "a2", "b1")]


def some_pods(number: int, cpu: str = "1") -> list[Pod]:
    return [make_pod(f"p{index}", cpu=cpu) for index in range(number)]


def test_round_robin_takes_the_best_nodes_in_turn_and_replays() -> None:
    profile = tied_profile(type="RoundRobin")
    journal = Journal()
    engine = default_engine(never, profile=profile, journal=journal)
    engine.handle(three_nodes(), 0.0)
    assert placed(engine, *some_pods(5)) == ["a1", "b1", "a2", "a1", "b1"]
    replay(journal, partial(default_engine, profile=profile))


def test_each_profile_takes_its_own_turns() -> None:
    profiles = [tied_profile(name, type="RoundRobin") for name in ("one", "other")]
    registry = in_tree_registry()
    frameworks = [
        Framework(build_profile(convert(each, KubeSchedulerProfile), registry)) for each in profiles
    ]
    engine = make_engine(frameworks, never)
    engine.handle(three_nodes(), 0.0)
    pods = [make_pod(f"p{turn}", scheduler_name=("one", "other")[turn % 2]) for turn in range(6)]
    assert placed(engine, *pods) == ["a1", "a1", "b1", "b1", "a2", "a2"]


def test_the_fixed_order_fills_the_first_node_of_the_order_before_the_next() -> None:
    engine = default_engine(never, profile=tied_profile(type="FixedOrder", seed=1))
    engine.handle(three_nodes(), 0.0)
    first, *others = placed(engine, *some_pods(8))
    assert others[:3] == [first] * 3
    assert len({*others[3:7]}) == 1
    assert others[3] != first


def test_best_fit_among_the_tied_packs_pods() -> None:
    profile = tied_profile(scorePlugins=[BEST_FIT])
    engine = default_engine(lambda _num_ties: 0, profile=profile)
    engine.handle(three_nodes(), 0.0)
    engine.handle([AssignedPodSeen(make_pod("old", cpu="2", node="b1"))], 0.0)
    assert placed(engine, *some_pods(3)) == ["b1", "b1", "a1"]


def test_a_tie_breaking_plugin_has_the_arguments_of_the_profile_or_its_own() -> None:
    of_profile = [{"name": "NodeResourcesFit", "args": BEST_FIT["args"]}]
    worst = {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "LeastAllocated"}}}
    nodes = {}
    for entry in ({"name": "NodeResourcesFit"}, worst):
        profile = {**tied_profile(scorePlugins=[entry]), "pluginConfig": of_profile}
        engine = default_engine(profile=profile)
        engine.handle(three_nodes(), 0.0)
        engine.handle([AssignedPodSeen(make_pod("old", cpu="2", node="b1"))], 0.0)
        (nodes[str(entry)],) = placed(engine, *some_pods(1))
    assert list(nodes.values()) == ["b1", "a1"]


def test_a_tie_of_many_nodes_is_broken_among_them_only() -> None:
    """More nodes than are scored afresh in each cycle, and one node that is worse."""
    plugins = {"score": {"disabled": [{"name": "*"}], "enabled": [{"name": "TaintToleration"}]}}
    ties = {"type": "RoundRobin", "scorePlugins": [BEST_FIT]}
    engine = engine_with(plugins=plugins, tieBreaking=ties)
    disliked = [Taint("key", "", "PreferNoSchedule")]
    nodes = [make_node(f"n{number:02}") for number in range(40)]
    engine.handle(map(NodeSeen, [make_node("bad", taints=disliked), *nodes]), 0.0)
    engine.handle([AssignedPodSeen(make_pod("old", cpu="2", node="bad"))], 0.0)
    assert placed(engine, *some_pods(5)) == ["n00"] * 4 + ["n05"]
