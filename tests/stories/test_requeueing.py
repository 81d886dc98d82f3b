"""Watch events requeue the unschedulable pods that they may help, and no others."""

from __future__ import annotations

from msgspec.structs import replace

from stowage.api.events import AssignedPodSeen, NodeSeen, PendingPodGone, PendingPodSeen
from stowage.api.instructions import BindPod, EmitEvent, EvictPod
from stowage.api.objects.node import Taint
from stowage.api.objects.pod import Pod, Toleration
from stowage.engine import Engine
from tests.support.builders import make_node, make_pod
from tests.support.engines import of_type

DEDICATED = Taint("dedicated", "db", "NoSchedule")


def make_unschedulable(engine: Engine, *pods: Pod) -> None:
    """Schedule pods that fit on no node."""
    engine.handle([PendingPodSeen(pod) for pod in pods], 0.0)
    assert of_type(BindPod, engine.schedule(0.0, len(pods))) == []
    assert engine.pending_counts()["unschedulable"] == len(pods)
    engine.validate()


def unschedulable(engine: Engine) -> int:
    engine.validate()
    return engine.pending_counts()["unschedulable"]


def test_an_event_that_does_not_help_requeues_no_pod(engine: Engine) -> None:
    engine.handle([NodeSeen(make_node("n", cpu="1"))], 0.0)
    make_unschedulable(engine, make_pod("p", cpu="8"), make_pod("q", cpu="8"))
    engine.handle([NodeSeen(make_node("n", cpu="2"))], 60.0)
    engine.handle([NodeSeen(make_node("small", cpu="4"))], 60.0)
    engine.handle([NodeSeen(make_node("n", cpu="2", labels={"a": "b"}))], 60.0)
    assert unschedulable(engine) == 2


def test_a_node_that_grows_requeues_every_pod_that_fits_it(engine: Engine) -> None:
    engine.handle([NodeSeen(make_node("n", cpu="1"))], 0.0)
    make_unschedulable(engine, *(make_pod(f"p{number}", cpu="8") for number in range(3)))
    engine.handle([NodeSeen(make_node("n", cpu="16"))], 60.0)
    assert unschedulable(engine) == 0
    bindings = of_type(BindPod, engine.schedule(60.0, 3))
    assert [each.pod.name for each in bindings] == ["p0", "p1"]


def test_a_changed_taint_requeues_every_pod_that_waits_for_nodes(
    engine: Engine,
) -> None:
    engine.handle([NodeSeen(make_node("n", cpu="1"))], 0.0)
    make_unschedulable(engine, make_pod("p", cpu="8"))
    engine.handle([NodeSeen(make_node("n", cpu="1", taints=[DEDICATED]))], 60.0)
    assert unschedulable(engine) == 0


def test_a_new_label_requeues_only_pods_that_require_it(engine: Engine) -> None:
    engine.handle([NodeSeen(make_node("n"))], 0.0)
    make_unschedulable(
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
    make_unschedulable(engine, make_pod("p", cpu="8"))
    engine.handle([AssignedPodSeen(make_pod("r", node="n"))], 60.0)
    assert unschedulable(engine) == 1


def nominated(name: str, node: str, priority: int) -> Pod:
    return make_pod(name, cpu="8", priority=priority, nominated_node=node)


def test_deleting_a_nominated_pod_requeues_pods_of_the_same_or_lower_priority(
    engine: Engine,
) -> None:
    engine.handle([NodeSeen(make_node("n", cpu="1"))], 0.0)
    low, high = make_pod("low", cpu="7", priority=5), make_pod("high", cpu="7", priority=6)
    make_unschedulable(engine, nominated("p", "n", priority=5), low, high)
    engine.handle([PendingPodGone("default", "p", "uid-p")], 60.0)
    assert unschedulable(engine) == 1
    assert [pod.name for pod in engine.pods()] == ["low", "high"]


def test_a_changed_nomination_requeues_like_a_deleted_one(engine: Engine) -> None:
    engine.handle([NodeSeen(make_node("n", cpu="1")), NodeSeen(make_node("m", cpu="1"))], 0.0)
    make_unschedulable(engine, nominated("p", "n", priority=5), make_pod("low", cpu="7"))
    engine.handle([PendingPodSeen(nominated("p", "n", priority=5))], 60.0)
    assert unschedulable(engine) == 2
    engine.handle([PendingPodSeen(nominated("p", "m", priority=5))], 60.0)
    assert unschedulable(engine) == 0


def test_a_first_nomination_requeues_no_pod(engine: Engine) -> None:
    engine.handle([NodeSeen(make_node("n", cpu="1"))], 0.0)
    make_unschedulable(engine, make_pod("p", cpu="8", priority=5), make_pod("low", cpu="7"))
    engine.handle([PendingPodSeen(nominated("p", "n", priority=5))], 60.0)
    assert unschedulable(engine) == 2


def show_rivals(engine: Engine) -> Pod:
    """Make `low` unschedulable: it could take the place of `victim`, were `p` not nominated there.

    Returns:
        The pod `p`, which comes next. It tolerates the node `m`, and its place on `n` is not free.
    """
    nodes = make_node("n", cpu="4"), make_node("m", cpu="4", taints=(DEDICATED,))
    running = (
        make_pod("kept", cpu="2", priority=9, node="n"),
        make_pod("victim", cpu="2", priority=0, node="n"),
    )
    nominated_pod = make_pod(
        "p",
        cpu="2",
        priority=5,
        nominated_node="n",
        tolerations=(Toleration(operator="Exists"),),
    )
    engine.handle([NodeSeen(node) for node in nodes], 0.0)
    engine.handle([AssignedPodSeen(pod) for pod in running], 0.0)
    engine.handle([PendingPodSeen(make_pod("low", cpu="2", priority=5))], 0.0)
    engine.handle([PendingPodSeen(nominated_pod)], 1.0)
    assert of_type(EvictPod, engine.schedule(1.0, 1)) == []
    assert unschedulable(engine) == 1
    return nominated_pod


def test_a_nominated_pod_that_finds_another_node_requeues_pods_that_preempt_at_its_place(
    engine: Engine,
) -> None:
    show_rivals(engine)
    (bind,) = of_type(BindPod, engine.schedule(1.0, 1))
    assert (bind.pod.name, bind.node_name) == ("p", "m")
    assert unschedulable(engine) == 0
    (eviction,) = of_type(EvictPod, engine.schedule(60.0, 1))
    assert (eviction.preemptor.name, eviction.victim.name) == ("low", "victim")


def test_a_nominated_pod_that_another_client_binds_elsewhere_requeues_pods(
    engine: Engine,
) -> None:
    pod = show_rivals(engine)
    bound = replace(pod, spec=replace(pod.spec, node_name="m"))
    engine.handle([AssignedPodSeen(bound)], 2.0)
    assert unschedulable(engine) == 0


def test_a_nominated_pod_that_is_bound_to_its_node_requeues_no_pod(engine: Engine) -> None:
    pod = show_rivals(engine)
    bound = replace(pod, spec=replace(pod.spec, node_name="n"))
    engine.handle([AssignedPodSeen(bound)], 2.0)
    assert unschedulable(engine) == 1


def test_deleting_a_nominated_pod_that_was_skipped_requeues_pods(engine: Engine) -> None:
    """A pod with a finalizer terminates for a while: it is not tried, but keeps its nomination."""
    pod = show_rivals(engine)
    metadata = replace(pod.metadata, deletion_timestamp="2026-01-01T01:00:00Z")
    engine.handle([PendingPodSeen(replace(pod, metadata=metadata))], 2.0)
    (skipped,) = of_type(EmitEvent, engine.schedule(2.0, 1))
    assert skipped.note == "skip schedule deleting pod: default/p"
    assert unschedulable(engine) == 1
    engine.handle([PendingPodGone("default", "p", "uid-p")], 60.0)
    assert unschedulable(engine) == 0
    (eviction,) = of_type(EvictPod, engine.schedule(60.0, 1))
    assert eviction.preemptor.name == "low"


def test_plugin_evaluations_are_counted_by_pods_and_nodes(engine: Engine) -> None:
    engine.handle([NodeSeen(make_node("n")), NodeSeen(make_node("m", cpu="1"))], 0.0)
    engine.handle([PendingPodSeen(make_pod("p", cpu="2"))], 0.0)
    engine.schedule(0.0, 1)
    counts = engine.evaluation_counts()
    assert counts["NodeResourcesFit", "PreFilter", "default-scheduler"] == 1
    assert counts["NodeResourcesFit", "Filter", "default-scheduler"] == 2
    assert ("NodePorts", "Filter", "default-scheduler") not in counts
