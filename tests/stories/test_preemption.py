"""Preemption in the engine: who is evicted, in which order, and when the preemptor comes back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace
from stowage.api.events import (
    AssignedPodGone,
    AssignedPodSeen,
    BindSucceeded,
    DisruptionBudgetSeen,
    Event,
    EvictionFinished,
    NodeSeen,
    PendingPodGone,
    PendingPodSeen,
    PreBindFinished,
)
from stowage.api.instructions import (
    BindPod,
    ClearNomination,
    EmitEvent,
    EvictPod,
    PatchPodStatus,
    PreemptionAttempted,
    PreemptionFinished,
    ReportProblem,
    RunPreBind,
    StopPreBind,
)
from stowage.api.objects.meta import Condition, LabelSelector, ObjectMeta
from stowage.api.objects.pod import Affinity, Pod, PodAffinity
from stowage.api.objects.policy import (
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
    PodDisruptionBudgetStatus,
)
from stowage.api.status import SUCCESS, Code, Status
from stowage.engine import Journal, replay
from stowage.framework import PluginFactory, PluginTraits
from stowage.plugins import in_tree_registry

from tests.support.builders import HOSTNAME, affinity_term, label_selector, make_node, make_pod
from tests.support.engines import default_engine, of_type

LOW, HIGH, HIGHER = 0, 100, 1000


class World:
    """An engine, the pods it was shown, and the shell's part in evictions."""

    def __init__(self, **options: Any) -> None:
        self.journal = Journal()
        self.engine = default_engine(journal=self.journal, **options)
        self.now = 0.0
        self.pods: dict[str, Pod] = {}

    def see(self, *events: Event) -> list[Any]:
        return list(self.engine.handle(events, self.now))

    def nodes(self, *names: str, **fields: Any) -> None:
        self.see(*(NodeSeen(make_node(name, **{"cpu": "2", **fields})) for name in names))

    def running(self, name: str, node: str, **fields: Any) -> Pod:
        """A pod that runs on a node; the later it is shown, the later it started."""
        started = f"2026-01-01T00:{len(self.pods):02d}:00Z"
        pod = make_pod(name, node=node, **{"cpu": "1", "priority": LOW, **fields})
        pod = replace(pod, status=replace(pod.status, start_time=started, phase="Running"))
        self.pods[name] = pod
        self.see(AssignedPodSeen(pod))
        return pod

    def pending(self, name: str, **fields: Any) -> Pod:
        pod = make_pod(name, **{"cpu": "1", "priority": HIGH, **fields})
        self.pods[name] = pod
        self.see(PendingPodSeen(pod))
        return pod

    def schedule(self, after_s: float = 0.0) -> list[Any]:
        self.now += after_s
        return list(self.engine.schedule(self.now, 1))

    def evicted(self, eviction: EvictPod, *, error: str = "") -> list[Any]:
        """The API server has taken the DELETE, or has not."""
        answer = EvictionFinished(
            eviction.preemptor.uid, eviction.victim, was_deleted=not error, error=error
        )
        return self.see(answer)

    def terminating(self, name: str) -> list[Any]:
        pod = self.pods[name]
        condition = Condition("DisruptionTarget", "True", "PreemptionByScheduler")
        pod = replace(
            pod,
            metadata=replace(pod.metadata, deletion_timestamp="2026-01-02T00:00:00Z"),
            status=replace(pod.status, conditions=(condition,)),
        )
        self.pods[name] = pod
        return self.see(AssignedPodSeen(pod))

    def gone(self, name: str) -> list[Any]:
        meta = self.pods[name].metadata
        return self.see(AssignedPodGone(meta.namespace, meta.name, meta.uid))

    def nomination_shown(self, name: str, node: str) -> None:
        pod = self.pods[name]
        self.pods[name] = replace(pod, status=replace(pod.status, nominated_node_name=node))
        self.see(PendingPodSeen(self.pods[name]))


@pytest.fixture
def world() -> Iterator[World]:
    built = World()
    yield built
    built.engine.validate()
    replay(built.journal, default_engine)


def names(evictions: list[EvictPod]) -> list[str]:
    return [each.victim.name for each in evictions]


def test_the_cheapest_victim_goes_and_the_preemptor_lands_on_its_nominated_node(
    world: World,
) -> None:
    world.nodes("n0", "n1")
    for name, node, priority in (("a", "n0", 10), ("b", "n0", 10), ("c", "n1", 5), ("d", "n1", 7)):
        world.running(name, node, priority=priority)
    world.pending("p")
    answer = world.schedule()
    (eviction,) = of_type(EvictPod, answer)
    assert (eviction.victim.name, eviction.preemptor.name) == ("c", "p")
    (patch,) = of_type(PatchPodStatus, answer)
    assert (patch.reason, patch.nominated_node_name) == ("Unschedulable", "n1")
    assert patch.message == "0/2 nodes are available: 2 Insufficient cpu."
    (attempted,) = of_type(PreemptionAttempted, answer)
    assert (attempted.node_name, attempted.num_victims) == ("n1", 1)
    (event,) = of_type(EmitEvent, world.evicted(eviction))
    assert (event.pod.name, event.event_type, event.reason, event.action) == (
        "c",
        "Normal",
        "Preempted",
        "Preempting",
    )
    assert event.note == f"Preempted by pod {eviction.preemptor.uid} on node n1"
    assert event.related == eviction.preemptor
    world.nomination_shown("p", "n1")
    world.gone("c")
    (bind,) = of_type(BindPod, world.schedule(after_s=20))
    assert (bind.pod.name, bind.node_name) == ("p", "n1")


def test_the_last_victim_goes_last_and_the_preemptor_is_gated_until_then(world: World) -> None:
    world.nodes("n0")
    for name in ("a", "b"):
        world.running(name, "n0")
    world.pending("p", cpu="2")
    (first,) = of_type(EvictPod, world.schedule())
    assert first.victim.name == "a"
    world.gone("a")
    assert world.engine.pending_counts()["gated"] == 1
    answer = world.evicted(first)
    (last,) = of_type(EvictPod, answer)
    assert last.victim.name == "b"
    world.terminating("b")
    (finished,) = of_type(PreemptionFinished, world.evicted(last))
    assert not finished.is_error
    world.gone("b")
    (bind,) = of_type(BindPod, world.schedule(after_s=20))
    assert bind.node_name == "n0"


def test_the_end_of_the_last_victim_opens_the_gate_before_the_shell_has_answered(
    world: World,
) -> None:
    world.nodes("n0")
    world.running("a", "n0", cpu="2")
    world.pending("p")
    (eviction,) = of_type(EvictPod, world.schedule())
    world.gone("a")
    assert of_type(BindPod, world.schedule(after_s=20))
    assert of_type(PreemptionFinished, world.evicted(eviction))


def test_a_preemptor_that_another_ones_victim_wakes_does_not_preempt_twice(world: World) -> None:
    """Its own victim is gone for the API server, but the watch has not said so yet."""
    world.nodes("n0", "n1", "n2")
    for name, node in (("a", "n0"), ("b", "n1"), ("c", "n2")):
        world.running(name, node, cpu="2")
    victim_of, node_of = {}, {}
    for name in ("p", "q"):
        world.pending(name, cpu="2")
        answer = world.schedule()
        (victim_of[name],) = of_type(EvictPod, answer)
        node_of[name] = of_type(PatchPodStatus, answer)[0].nominated_node_name
    for eviction in victim_of.values():
        assert of_type(PreemptionFinished, world.evicted(eviction))
    world.engine.validate()
    world.gone(victim_of["q"].victim.name)
    answer = world.schedule(after_s=20)
    assert of_type(EvictPod, answer) == []
    assert [bind.pod.name for bind in of_type(BindPod, answer)] == ["q"]
    world.gone(victim_of["p"].victim.name)
    (bind,) = of_type(BindPod, world.schedule(after_s=20))
    assert (bind.pod.name, bind.node_name) == ("p", node_of["p"])


def test_a_last_victim_that_went_by_itself_does_not_leave_the_preemptor_waiting(
    world: World,
) -> None:
    world.nodes("n0")
    for name in ("a", "b"):
        world.running(name, "n0")
    world.pending("p", cpu="2")
    (first,) = of_type(EvictPod, world.schedule())
    world.gone("a")
    world.gone("b")
    assert of_type(BindPod, world.schedule(after_s=20)) == []
    answer = world.evicted(first)
    assert of_type(EvictPod, answer) == []
    assert of_type(BindPod, world.schedule())


def test_a_victim_that_cannot_be_evicted_brings_the_preemptor_back_at_once(world: World) -> None:
    world.nodes("n0")
    for name in ("a", "b"):
        world.running(name, "n0")
    world.pending("p", cpu="2")
    (first,) = of_type(EvictPod, world.schedule())
    answer = world.evicted(first, error="no leave to delete")
    assert of_type(EvictPod, answer) == []
    assert of_type(PreemptionFinished, answer)[0].is_error
    assert "no leave to delete" in of_type(ReportProblem, answer)[0].text
    assert names(of_type(EvictPod, world.schedule())) == ["a"]


def test_while_victims_take_their_time_nobody_else_is_evicted(world: World) -> None:
    world.nodes("n0", "n1")
    for name, node in (("a", "n0"), ("b", "n0"), ("c", "n1"), ("d", "n1")):
        world.running(name, node)
    world.pending("p", cpu="2")
    (first,) = of_type(EvictPod, world.schedule())
    (last,) = of_type(EvictPod, world.evicted(first))
    node = of_type(PreemptionFinished, world.evicted(last))[0].node_name
    world.nomination_shown("p", node)
    world.terminating(first.victim.name)
    world.terminating(last.victim.name)
    world.gone(first.victim.name)
    answer = world.schedule(after_s=20)
    assert of_type(EvictPod, answer) == []
    (patch,) = of_type(PatchPodStatus, answer)
    assert patch.nominated_node_name is None
    assert patch.message.endswith(
        "preemption: not eligible due to a terminating pod on the nominated node."
    )
    world.gone(last.victim.name)
    (bind,) = of_type(BindPod, world.schedule(after_s=20))
    assert bind.node_name == node


def test_a_preemptor_is_tried_again_once_the_victim_it_waited_for_is_gone(world: World) -> None:
    world.nodes("n0", cpu="4")
    web = affinity_term(HOSTNAME, label_selector({"app": "web"}))
    alone = Affinity(pod_anti_affinity=PodAffinity((web,)))
    world.running("guard", "n0", priority=HIGHER, affinity=alone)
    world.running("v", "n0")
    world.terminating("v")
    world.pending("p", labels={"app": "web"}, nominated_node="n0")
    (patch,) = of_type(PatchPodStatus, world.schedule())
    assert patch.message.endswith("a terminating pod on the nominated node.")
    world.gone("v")
    assert of_type(PreemptionAttempted, world.schedule(after_s=20))


def test_the_end_of_the_last_victim_brings_the_preemptor_back_whatever_refused_it(
    world: World,
) -> None:
    world.nodes("n0")
    world.running("with the port", "n0", cpu="1", host_ports=[80], priority=LOW + 1)
    world.running("large", "n0", cpu="1")
    world.pending("p", cpu="2", host_ports=[80])
    answer = world.schedule()
    assert "free ports" in of_type(PatchPodStatus, answer)[0].message
    (first,) = of_type(EvictPod, answer)
    world.gone(first.victim.name)
    (last,) = of_type(EvictPod, world.evicted(first))
    assert last.victim.name == "large"
    world.terminating("large")
    world.evicted(last)
    world.gone("large")
    (bind,) = of_type(BindPod, world.schedule(after_s=20))
    assert bind.pod.name == "p"


def test_who_kept_away_from_a_nominated_pod_is_tried_again_when_that_is_gone(world: World) -> None:
    world.nodes("n0")
    world.running("v", "n0", cpu="2")
    world.terminating("v")
    world.pending("q", labels={"app": "web"}, cpu="2", priority=HIGHER, nominated_node="n0")
    web = affinity_term(HOSTNAME, label_selector({"app": "web"}))
    alone = Affinity(pod_anti_affinity=PodAffinity((web,)))
    world.pending("p", cpu="0", affinity=alone)
    assert of_type(BindPod, [*world.schedule(), *world.schedule()]) == []
    world.see(PendingPodGone("default", "q", "uid-q"))
    (bind,) = of_type(BindPod, world.schedule(after_s=20))
    assert bind.pod.name == "p"


def test_two_preemptors_take_different_nodes(world: World) -> None:
    world.nodes("n0", "n1")
    for name, node in (("a", "n0"), ("b", "n1")):
        world.running(name, node, cpu="2")
    world.pending("p", cpu="2")
    world.pending("q", cpu="2")
    first, second = world.schedule(), world.schedule()
    evictions = of_type(EvictPod, [*first, *second])
    assert sorted(names(evictions)) == ["a", "b"]
    nominated = {
        patch.pod.name: patch.nominated_node_name
        for patch in of_type(PatchPodStatus, [*first, *second])
    }
    assert sorted(nominated) == ["p", "q"]
    assert sorted(map(str, nominated.values())) == ["n0", "n1"]


def test_a_more_important_preemptor_takes_the_place_of_a_nominated_one(world: World) -> None:
    world.nodes("n0")
    world.running("a", "n0")
    world.running("b", "n0")
    world.pending("p", cpu="1")
    (first,) = of_type(EvictPod, world.schedule())
    world.nomination_shown("p", "n0")
    world.pending("q", cpu="2", priority=HIGHER)
    answer = world.schedule()
    assert [each.pod.name for each in of_type(ClearNomination, answer)] == ["p"]
    assert len(of_type(EvictPod, answer)) == 1
    del first


def test_a_pod_that_never_preempts_says_so(world: World) -> None:
    world.nodes("n0")
    world.running("a", "n0", cpu="2")
    world.pending("p", preemption_policy="Never")
    answer = world.schedule()
    assert of_type(EvictPod, answer) == []
    (patch,) = of_type(PatchPodStatus, answer)
    assert patch.message == (
        "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, "
        "preemption: not eligible due to preemptionPolicy=Never."
    )


def test_a_pod_nobody_can_make_room_for_says_so_and_loses_its_nomination(world: World) -> None:
    world.nodes("n0")
    world.running("a", "n0", cpu="2", priority=HIGHER)
    pod = world.pending("p")
    world.nomination_shown(pod.metadata.name, "n0")
    (patch,) = of_type(PatchPodStatus, world.schedule())
    assert patch.nominated_node_name == ""
    assert patch.message == (
        "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, "
        "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
    )


def test_a_nomination_of_no_use_is_cleared_even_if_the_watch_never_showed_it(world: World) -> None:
    world.nodes("n0")
    world.running("a", "n0")
    world.running("b", "n0")
    world.pending("p")
    (eviction,) = of_type(EvictPod, world.schedule())
    world.gone(eviction.victim.name)
    world.evicted(eviction)
    for name in ("c", "d"):
        world.running(name, "n0", cpu="2", priority=HIGHER)
    world.gone("a" if eviction.victim.name == "b" else "b")
    (patch,) = of_type(PatchPodStatus, world.schedule(after_s=20))
    assert patch.nominated_node_name == ""


def test_victims_that_a_budget_protects_are_spared_where_others_will_do(world: World) -> None:
    world.nodes("n0", "n1")
    world.running("guarded", "n0", cpu="2", labels={"app": "db"}, priority=LOW)
    world.running("loose", "n1", cpu="2", labels={"app": "web"}, priority=50)
    budget = PodDisruptionBudget(
        ObjectMeta(name="db", namespace="default"),
        PodDisruptionBudgetSpec(LabelSelector({"app": "db"})),
        PodDisruptionBudgetStatus(0),
    )
    world.see(DisruptionBudgetSeen(budget))
    world.pending("p")
    assert names(of_type(EvictPod, world.schedule())) == ["loose"]


def test_the_last_victim_is_spared_if_the_preemptor_is_gone_by_then(world: World) -> None:
    world.nodes("n0")
    for name in ("a", "b"):
        world.running(name, "n0")
    pod = world.pending("p", cpu="2")
    (first,) = of_type(EvictPod, world.schedule())
    world.see(PendingPodGone("default", "p", pod.metadata.uid))
    answer = world.evicted(first)
    assert of_type(EvictPod, answer) == []
    assert of_type(PreemptionFinished, answer)


def test_a_pod_that_is_being_bound_is_evicted_through_the_api_server(world: World) -> None:
    world.nodes("n0")
    world.pending("a", cpu="2", priority=LOW)
    (bind,) = of_type(BindPod, world.schedule())
    world.pending("p")
    assert names(of_type(EvictPod, world.schedule())) == ["a"]
    world.see(BindSucceeded(bind.pod.uid, "n0"))


class HoldsAtPermit:
    """Makes pods named so wait at Permit."""

    name = "Holds"
    traits = PluginTraits()

    def __init__(self, args: object) -> None:
        del args

    def permit(self, state: object, pod: Any, node_name: str) -> tuple[Status, float]:
        del state, node_name
        waits = pod.name.startswith("waits")
        return (Status(Code.WAIT), 600.0) if waits else (SUCCESS, 0.0)

    def pre_bind_pre_flight(self, state: object, pod: Any, node_name: str) -> Status:
        del state, node_name
        return SUCCESS if pod.name.startswith("prepares") else Status(Code.SKIP)

    async def pre_bind(self, state: object, pod: Any, node_name: str) -> Status:
        del state, pod, node_name
        return SUCCESS


def _holding_world() -> World:
    registry = in_tree_registry().merged_with(PluginFactory("Holds", HoldsAtPermit))
    plugins = {"multiPoint": {"enabled": [{"name": "Holds"}]}}
    profile = {"schedulerName": "default-scheduler", "plugins": plugins}
    return World(profile=profile, registry=registry)


@pytest.mark.parametrize("name", ["waits", "prepares"])
def test_a_pod_without_a_binding_goes_back_to_the_queue_instead(name: str) -> None:
    world = _holding_world()
    world.nodes("n0")
    victim = world.pending(name, cpu="2", priority=LOW)
    first = world.schedule()
    assert of_type(BindPod, first) == []
    world.pending("p")
    answer = world.schedule()
    assert of_type(EvictPod, answer) == []
    assert len(of_type(StopPreBind, answer)) == (name == "prepares")
    assert of_type(PreemptionFinished, answer)
    told = {event.reason: event for event in of_type(EmitEvent, answer) if event.pod.name == name}
    assert set(told) == {"Preempted", "FailedScheduling"}
    if of_type(RunPreBind, first):
        assert world.see(PreBindFinished(victim.metadata.uid, Code.SUCCESS)) == []
    binds = [bind for _ in range(2) for bind in of_type(BindPod, world.schedule(after_s=20))]
    assert [(bind.pod.name, bind.node_name) for bind in binds] == [("p", "n0")]
    world.engine.validate()
    assert (
        world.engine.pending_counts()["unschedulable"] + world.engine.pending_counts()["backoff"]
        == 1
    )
