"""Which unschedulable pods a watch event moves, and which it does not."""

from __future__ import annotations

from stowage.api.events import AssignedPodSeen, NodeSeen, PendingPodGone, PendingPodSeen
from stowage.api.instructions import BindPod
from stowage.api.objects.node import Taint
from stowage.api.objects.pod import Pod
from stowage.engine import Engine
from tests.support.builders import make_node, make_pod
from tests.support.engines import of_type

DEDICATED = Taint("dedicated", "db", "NoSchedule")


def turn_away(engine: Engine, *pods: Pod) -> None:
    """Have pods tried that fit nowhere."""
    engine.handle([PendingPodSeen(pod) for pod in pods], 0.0)
    assert of_type(BindPod, engine.schedule(0.0, len(pods))) == []
    assert engine.pending_counts()["unschedulable"] == len(pods)
    engine.validate()


def unschedulable(engine: Engine) -> int:
    engine.validate()
    return engine.pending_counts()["unschedulable"]


def test_a_change_that_does_not_help_leaves_pods_where_they_are(engine: Engine) -> None:
    engine.handle([NodeSeen(make_node("n", cpu="1"))], 0.0)
    turn_away(engine, make_pod("p", cpu="8"), make_pod("q", cpu="8"))
    engine.handle([NodeSeen(make_node("n", cpu="2"))], 60.0)
    engine.handle([NodeSeen(make_node("small", cpu="4"))], 60.0)
    engine.handle([NodeSeen(make_node("n", cpu="2", labels={"a": "b"}))], 60.0)
    assert unschedulable(engine) == 2


def test_a_node_that_grows_enough_brings_back_all_pods_it_could_take(engine: Engine) -> None:
    engine.handle([NodeSeen(make_node("n", cpu="1"))], 0.0)
    turn_away(engine, *(make_pod(f"p{number}", cpu="8") for number in range(3)))
    engine.handle([NodeSeen(make_node("n", cpu="16"))], 60.0)
    assert unschedulable(engine) == 0
    bindings = of_type(BindPod, engine.schedule(60.0, 3))
    assert [each.pod.name for each in bindings] == ["p0", "p1"]


def test_a_changed_taint_requeues_every_pod_that_waits_for_nodes(
    engine: Engine,
) -> None:
    engine.handle([NodeSeen(make_node("n", cpu="1"))], 0.0)
    turn_away(engine, make_pod("p", cpu="8"))
    engine.handle([NodeSeen(make_node("n", cpu="1", taints=[DEDICATED]))], 60.0)
    assert unschedulable(engine) == 0


def test_a_label_brings_back_only_pods_that_wanted_it(engine: Engine) -> None:
    engine.handle([NodeSeen(make_node("n"))], 0.0)
    turn_away(
        engine,
        make_pod("ssd", node_selector={"disk": "ssd"}),
        make_pod("hdd", node_selector={"disk": "hdd"}),
    )
    engine.handle([NodeSeen(make_node("n", labels={"disk": "ssd"}))], 60.0)
    (bind,) = of_type(BindPod, engine.schedule(60.0, 2))
    assert bind.pod.name == "ssd"
    assert unschedulable(engine) == 1


def test_a_bound_pod_requeues_no_pod_that_needs_resources(engine: Engine) -> None:
    engine.handle([NodeSeen(make_node("n", cpu="1"))], 0.0)
    turn_away(engine, make_pod("p", cpu="8"))
    engine.handle([AssignedPodSeen(make_pod("r", node="n"))], 60.0)
    assert unschedulable(engine) == 1


def nominated(name: str, node: str, priority: int) -> Pod:
    return make_pod(name, cpu="8", priority=priority, nominated_node=node)


def test_a_nominated_pod_that_goes_brings_back_pods_of_no_higher_priority(engine: Engine) -> None:
    engine.handle([NodeSeen(make_node("n", cpu="1"))], 0.0)
    low, high = make_pod("low", cpu="7", priority=5), make_pod("high", cpu="7", priority=6)
    turn_away(engine, nominated("p", "n", priority=5), low, high)
    engine.handle([PendingPodGone("default", "p", "uid-p")], 60.0)
    assert unschedulable(engine) == 1
    assert [pod.name for pod in engine.pods()] == ["low", "high"]


def test_a_nomination_that_moves_counts_as_one_that_goes(engine: Engine) -> None:
    engine.handle([NodeSeen(make_node("n", cpu="1")), NodeSeen(make_node("m", cpu="1"))], 0.0)
    turn_away(engine, nominated("p", "n", priority=5), make_pod("low", cpu="7"))
    engine.handle([PendingPodSeen(nominated("p", "n", priority=5))], 60.0)
    assert unschedulable(engine) == 2
    engine.handle([PendingPodSeen(nominated("p", "m", priority=5))], 60.0)
    assert unschedulable(engine) == 0


def test_a_first_nomination_releases_nothing(engine: Engine) -> None:
    engine.handle([NodeSeen(make_node("n", cpu="1"))], 0.0)
    turn_away(engine, make_pod("p", cpu="8", priority=5), make_pod("low", cpu="7"))
    engine.handle([PendingPodSeen(nominated("p", "n", priority=5))], 60.0)
    assert unschedulable(engine) == 2


def test_plugins_are_counted_by_the_pods_and_nodes_they_were_asked_about(engine: Engine) -> None:
    engine.handle([NodeSeen(make_node("n")), NodeSeen(make_node("m", cpu="1"))], 0.0)
    engine.handle([PendingPodSeen(make_pod("p", cpu="2"))], 0.0)
    engine.schedule(0.0, 1)
    counts = engine.evaluation_counts()
    assert counts["NodeResourcesFit", "PreFilter", "default-scheduler"] == 1
    assert counts["NodeResourcesFit", "Filter", "default-scheduler"] == 2
    assert ("NodePorts", "Filter", "default-scheduler") not in counts
