"""Instructions of the engine for one pod, from its creation to its binding."""

from __future__ import annotations

from msgspec.structs import replace

from stowage.api.events import (
    AssignedPodGone,
    AssignedPodSeen,
    BindFailed,
    BindSucceeded,
    NodeSeen,
    PendingPodGone,
    PendingPodSeen,
)
from stowage.api.instructions import (
    AttemptResult,
    BindPod,
    EmitEvent,
    PatchPodStatus,
    PodBound,
    ReadPod,
    ReportProblem,
)
from stowage.api.objects.meta import Condition
from stowage.api.objects.node import NodeSelectorRequirement, NodeSelectorTerm
from stowage.api.objects.pod import Affinity, NodeAffinity, PreferredSchedulingTerm
from stowage.engine import Engine
from tests.support.builders import make_node, make_pod
from tests.support.engines import DEFAULT_PROFILE, default_engine, of_type


def bind_first(engine: Engine, now: float = 0.0) -> BindPod:
    """Let the engine schedule one pod and return its binding."""
    (bind,) = of_type(BindPod, engine.schedule(now, 1))
    return bind


def test_a_pod_is_bound_to_a_node_that_it_fits(engine: Engine) -> None:
    engine.handle([NodeSeen(make_node("small", cpu="1")), NodeSeen(make_node("big", cpu="8"))], 0.0)
    engine.handle([PendingPodSeen(make_pod("p", cpu="4"))], 0.0)
    bind = bind_first(engine)
    assert (bind.pod.key, bind.node_name) == ("default/p", "big")


def test_a_scheduled_event_is_written_once_the_binding_succeeded(engine: Engine) -> None:
    engine.handle([NodeSeen(make_node("n")), PendingPodSeen(make_pod("p"))], 0.0)
    bind = bind_first(engine)
    answer = engine.handle([BindSucceeded(bind.pod.uid, "n")], 2.0)
    (event,) = of_type(EmitEvent, answer)
    assert (event.event_type, event.reason, event.action) == ("Normal", "Scheduled", "Binding")
    assert event.note == "Successfully assigned default/p to n"
    (bound,) = of_type(PodBound, answer)
    assert (bound.attempts, bound.since_first_attempt_s) == (1, 2.0)


def test_a_pod_counts_on_its_node_from_the_moment_it_is_assumed(engine: Engine) -> None:
    engine.handle([NodeSeen(make_node("n", cpu="1"))], 0.0)
    engine.handle([PendingPodSeen(make_pod(name, cpu="800m")) for name in ("p", "q")], 0.0)
    assert bind_first(engine).pod.name == "p"
    assert of_type(BindPod, engine.schedule(0.0, 1)) == []
    assert engine.cache_counts()["assumed_pods"] == 1


def test_an_unschedulable_pod_gets_a_condition_and_an_event_with_the_same_message(
    engine: Engine,
) -> None:
    pod = make_pod("p", cpu="2", resource_version="7")
    engine.handle([NodeSeen(make_node("n", cpu="1")), PendingPodSeen(pod)], 0.0)
    answer = engine.schedule(0.0, 1)
    (patch,) = of_type(PatchPodStatus, answer)
    (event,) = of_type(EmitEvent, answer)
    assert patch.reason == "Unschedulable"
    assert patch.message.startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert (event.reason, event.note) == ("FailedScheduling", patch.message)
    assert event.resource_version == "7"
    assert engine.pending_counts()["unschedulable"] == 1


def test_a_condition_names_the_generation_of_the_pod_that_was_tried(engine: Engine) -> None:
    pod = make_pod("p", cpu="2")
    pod = replace(pod, metadata=replace(pod.metadata, generation=3))
    engine.handle([NodeSeen(make_node("n", cpu="1")), PendingPodSeen(pod)], 0.0)
    (patch,) = of_type(PatchPodStatus, engine.schedule(0.0, 1))
    assert patch.observed_generation == 3


def test_an_unchanged_condition_is_not_written_again(engine: Engine) -> None:
    engine.handle([NodeSeen(make_node("n", cpu="1")), PendingPodSeen(make_pod("p", cpu="2"))], 0.0)
    engine.schedule(0.0, 1)
    engine.handle([], 400.0)
    again = engine.schedule(400.0, 1)
    assert of_type(AttemptResult, again)[0].attempts == 2
    assert of_type(PatchPodStatus, again) == []


def test_a_condition_that_an_earlier_process_wrote_is_not_written_again(engine: Engine) -> None:
    engine.handle([NodeSeen(make_node("n", cpu="1")), PendingPodSeen(make_pod("p", cpu="2"))], 0.0)
    (patch,) = of_type(PatchPodStatus, engine.schedule(0.0, 1))
    pod = make_pod("q", cpu="2")
    condition = Condition("PodScheduled", "False", patch.reason, patch.message)
    shown = replace(pod, status=replace(pod.status, conditions=(condition,)))
    engine.handle([PendingPodSeen(shown)], 1.0)
    answer = engine.schedule(1.0, 1)
    assert [each.pod.name for each in of_type(AttemptResult, answer)] == ["q"]
    assert of_type(PatchPodStatus, answer) == []


def test_an_unschedulable_pod_is_bound_when_a_fitting_node_arrives(engine: Engine) -> None:
    engine.handle([NodeSeen(make_node("n", cpu="1")), PendingPodSeen(make_pod("p", cpu="2"))], 0.0)
    engine.schedule(0.0, 1)
    engine.handle([NodeSeen(make_node("m", cpu="4"))], 60.0)
    assert bind_first(engine, 60.0).node_name == "m"


def test_an_unschedulable_pod_is_bound_when_another_pod_is_deleted(engine: Engine) -> None:
    running = make_pod("r", cpu="3", node="n")
    engine.handle([NodeSeen(make_node("n", cpu="4")), AssignedPodSeen(running)], 0.0)
    engine.handle([PendingPodSeen(make_pod("p", cpu="2"))], 0.0)
    assert of_type(BindPod, engine.schedule(0.0, 1)) == []
    engine.handle([AssignedPodGone("default", "r", "uid-r")], 30.0)
    assert bind_first(engine, 30.0).pod.name == "p"


def test_a_refused_binding_forgets_the_pod_and_retries_it(engine: Engine) -> None:
    engine.handle([NodeSeen(make_node("n")), PendingPodSeen(make_pod("p"))], 0.0)
    bind = bind_first(engine)
    answer = engine.handle([BindFailed(bind.pod.uid, "n", "refused by the server")], 0.0)
    (patch,) = of_type(PatchPodStatus, answer)
    assert patch.reason == "SchedulerError"
    assert "refused by the server" in patch.message
    assert engine.cache_counts()["assumed_pods"] == 0
    engine.handle([], 3.0)
    assert bind_first(engine, 3.0).pod.name == "p"


def test_a_refused_binding_wakes_a_pod_that_waits_for_the_room(engine: Engine) -> None:
    pods = [make_pod(name, cpu="3") for name in ("p", "q")]
    engine.handle([NodeSeen(make_node("n", cpu="4")), *map(PendingPodSeen, pods)], 0.0)
    bind = bind_first(engine)
    assert of_type(BindPod, engine.schedule(0.0, 1)) == []
    assert engine.pending_counts()["unschedulable"] == 1
    engine.handle([BindFailed(bind.pod.uid, "n", "refused by the server")], 30.0)
    assert engine.pending_counts()["unschedulable"] == 0


def test_a_pod_that_leaves_the_pending_watch_stays_assumed_until_its_binding_is_answered(
    engine: Engine,
) -> None:
    engine.handle([NodeSeen(make_node("n")), PendingPodSeen(make_pod("p"))], 0.0)
    bind = bind_first(engine)
    engine.handle([PendingPodGone("default", "p", bind.pod.uid)], 0.0)
    assert engine.in_flight() == 1
    engine.handle([BindSucceeded(bind.pod.uid, "n")], 0.0)
    assert engine.in_flight() == 0
    assert engine.cache_counts()["pods"] == 1


def test_a_pod_deleted_before_its_binding_is_forgotten(engine: Engine) -> None:
    engine.handle([NodeSeen(make_node("n")), PendingPodSeen(make_pod("p"))], 0.0)
    bind = bind_first(engine)
    engine.handle([PendingPodGone("default", "p", bind.pod.uid)], 0.0)
    answer = engine.handle([BindFailed(bind.pod.uid, "n", 'pods "p" not found')], 0.0)
    assert of_type(EmitEvent, answer) == []
    assert engine.cache_counts()["pods"] == 0
    assert sum(engine.pending_counts().values()) == 0


def test_a_pod_that_was_bound_to_another_node_counts_there(engine: Engine) -> None:
    engine.handle([NodeSeen(make_node(name, cpu="1")) for name in ("m", "n")], 0.0)
    engine.handle([PendingPodSeen(make_pod("p", cpu="1"))], 0.0)
    ours = bind_first(engine).node_name
    theirs = "m" if ours == "n" else "n"
    elsewhere = make_pod("p", cpu="1", node=theirs)
    (problem,) = of_type(ReportProblem, engine.handle([AssignedPodSeen(elsewhere)], 0.0))
    assert problem.text == f"assumed on node {ours}, but bound to {theirs}"
    engine.handle([BindFailed("uid-p", ours, "already assigned")], 0.0)
    engine.handle([PendingPodSeen(make_pod("q", cpu="1"))], 0.0)
    assert bind_first(engine).node_name == ours


def test_a_pod_that_ended_is_not_bound_again_if_the_pending_watch_lags(engine: Engine) -> None:
    pod = make_pod("p")
    engine.handle([NodeSeen(make_node("n")), PendingPodSeen(pod)], 0.0)
    uid = bind_first(engine).pod.uid
    engine.handle([BindSucceeded(uid, "n"), AssignedPodSeen(make_pod("p", node="n"))], 0.0)
    engine.handle([AssignedPodGone("default", "p", uid)], 1.0)
    engine.handle([PendingPodSeen(pod)], 1.0)
    assert of_type(BindPod, engine.schedule(1.0, 1)) == []


def test_a_pod_is_read_back_if_no_watch_event_confirms_its_binding(engine: Engine) -> None:
    engine.handle([NodeSeen(make_node("n")), PendingPodSeen(make_pod("p"))], 0.0)
    bind = bind_first(engine)
    engine.handle([BindSucceeded(bind.pod.uid, "n")], 1.0)
    assert engine.next_deadline() == 31.0
    assert of_type(ReadPod, engine.handle([], 31.0)) == [ReadPod(bind.pod)]
    engine.handle([AssignedPodGone("default", "p", bind.pod.uid)], 31.1)
    assert engine.cache_counts()["pods"] == 0


def test_a_pod_with_a_confirmed_binding_is_not_read_back(engine: Engine) -> None:
    engine.handle([NodeSeen(make_node("n")), PendingPodSeen(make_pod("p"))], 0.0)
    bind = bind_first(engine)
    engine.handle([BindSucceeded(bind.pod.uid, "n"), AssignedPodSeen(make_pod("p", node="n"))], 1.0)
    assert of_type(ReadPod, engine.handle([], 100.0)) == []
    assert engine.cache_counts() == {"nodes": 1, "pods": 1, "assumed_pods": 0}


def test_a_terminating_pod_is_not_scheduled(engine: Engine) -> None:
    engine.handle([NodeSeen(make_node("n")), PendingPodSeen(make_pod("p", terminating=True))], 0.0)
    (event,) = engine.schedule(0.0, 1)
    assert isinstance(event, EmitEvent)
    assert event.note == "skip schedule deleting pod: default/p"


def test_a_gated_pod_is_scheduled_once_its_gates_are_removed(engine: Engine) -> None:
    engine.handle([NodeSeen(make_node("n"))], 0.0)
    engine.handle([PendingPodSeen(make_pod("p", gates=["example.com/quota"]))], 0.0)
    assert engine.pending_counts()["gated"] == 1
    assert engine.schedule(0.0, 1) == []
    engine.handle([PendingPodSeen(make_pod("p", resource_version="2"))], 1.0)
    assert bind_first(engine, 1.0).pod.name == "p"


def test_a_pod_of_another_scheduler_is_ignored(engine: Engine) -> None:
    engine.handle([NodeSeen(make_node("n"))], 0.0)
    engine.handle([PendingPodSeen(make_pod("p", scheduler_name="other-scheduler"))], 0.0)
    assert engine.schedule(0.0, 1) == []


def test_pods_are_scheduled_by_priority_and_then_by_arrival(engine: Engine) -> None:
    engine.handle([NodeSeen(make_node("n"))], 0.0)
    for arrival, (name, priority) in enumerate([("low", 0), ("high", 5), ("later", 5)]):
        engine.handle([PendingPodSeen(make_pod(name, priority=priority))], float(arrival))
    bound = [bind.pod.name for bind in of_type(BindPod, engine.schedule(9.0, 5))]
    assert bound == ["high", "later", "low"]


def test_an_invalid_pod_is_reported_and_stops_no_other_pod(engine: Engine) -> None:
    engine.handle([NodeSeen(make_node("n"))], 0.0)
    seen = [PendingPodSeen(make_pod("bad", cpu="one")), PendingPodSeen(make_pod("good"))]
    answer = engine.handle(seen, 0.0)
    (problem,) = of_type(ReportProblem, answer)
    assert problem.subject == "Pod default/bad"
    assert '"one"' in problem.text
    assert of_type(EmitEvent, answer)[0].pod.name == "bad"
    assert bind_first(engine).pod.name == "good"


def test_an_invalid_node_is_reported_and_stops_no_pod(engine: Engine) -> None:
    nodes = [NodeSeen(make_node("bad", cpu="many")), NodeSeen(make_node("good"))]
    answer = engine.handle([*nodes, PendingPodSeen(make_pod("p"))], 0.0)
    (problem,) = of_type(ReportProblem, answer)
    assert problem.subject == "Node bad"
    assert bind_first(engine).node_name == "good"


def test_a_limited_search_starts_after_the_last_searched_node() -> None:
    limited = default_engine(profile={**DEFAULT_PROFILE, "percentageOfNodesToScore": 33})
    limited.handle([NodeSeen(make_node(f"n{number:03}")) for number in range(300)], 0.0)
    limited.handle([PendingPodSeen(make_pod(f"p{number}", cpu="1")) for number in range(4)], 0.0)
    bound = [bind.node_name for bind in of_type(BindPod, limited.schedule(0.0, 4))]
    assert [name[:2] for name in bound] == ["n0", "n1", "n2", "n0"]
    limited.validate()


def test_each_pod_goes_to_the_node_that_it_prefers_although_another_was_scored_before(
    engine: Engine,
) -> None:
    engine.handle([NodeSeen(make_node(name, labels={"disk": name})) for name in "abc"], 0.0)
    wanted = ["c", "a", "b", "a"]
    for number, disk in enumerate(wanted):
        here = NodeSelectorRequirement("disk", "In", (disk,))
        term = PreferredSchedulingTerm(100, NodeSelectorTerm((here,)))
        affinity = Affinity(
            NodeAffinity(preferred_during_scheduling_ignored_during_execution=(term,))
        )
        engine.handle([PendingPodSeen(make_pod(f"p{number}", affinity=affinity))], 0.0)
    assert [bind_first(engine).node_name for _ in wanted] == wanted
