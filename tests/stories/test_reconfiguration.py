"""A new configuration takes effect between two scheduling cycles."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from stowage.api.config.extenders import Extenders
from stowage.api.config.types import Extender
from stowage.api.events import (
    AssignedPodSeen,
    BindFailed,
    BindSucceeded,
    ClaimsWritten,
    DeviceObjectSeen,
    EvictionFinished,
    ExtendersAnswered,
    NodeSeen,
    PendingPodSeen,
    PodGroupSeen,
    PreBindFinished,
    WaitingPodAllowed,
)
from stowage.api.instructions import (
    AttemptResult,
    BindClaims,
    BindPod,
    ConfigurationApplied,
    ConfigurationFailed,
    ConsultExtenders,
    EvictPod,
    Instruction,
    PodBound,
    ReleaseClaims,
    ReportProblem,
    RunPreBind,
)
from stowage.api.status import Code
from stowage.engine import Engine, Journal, replay
from stowage.framework.authoring import SUCCESS, WAIT, CycleState, PodInfo, Status
from tests.stories.claim_driver import written
from tests.stories.gang_driver import make_group, make_member
from tests.support.builders import make_node, make_pod
from tests.support.device_builders import make_claim, make_class, make_slice, pod_with_claims
from tests.support.engines import (
    change_to,
    configurable_engine,
    default_engine,
    fit_profile,
    of_type,
)

SPREADING = fit_profile("LeastAllocated")
PACKING = fit_profile("MostAllocated")


class WaitsAndWorks:
    """Makes each pod wait at Permit and has PreBind work for it."""

    name = "WaitsAndWorks"

    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> tuple[Status, float]:
        return WAIT, 600.0

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        return SUCCESS


def two_nodes() -> list[NodeSeen]:
    return [NodeSeen(make_node("big", cpu="8")), NodeSeen(make_node("small", cpu="2"))]


def schedule_one(engine: Engine, name: str, now: float = 0.0, **fields: Any) -> list[Instruction]:
    engine.handle([PendingPodSeen(make_pod(name, cpu="1", **fields))], now)
    return engine.schedule(now, 1)


def node_chosen(instructions: list[Instruction]) -> str:
    (bind,) = of_type(BindPod, instructions)
    return bind.node_name


def with_waits_and_works(profile: Mapping[str, Any]) -> dict[str, Any]:
    plugins = {**profile["plugins"], "multiPoint": {"enabled": [{"name": "WaitsAndWorks"}]}}
    return {**profile, "plugins": plugins}


def test_the_next_pod_is_scored_by_the_new_configuration() -> None:
    engine = configurable_engine(SPREADING)
    engine.handle(two_nodes(), 0.0)
    assert node_chosen(schedule_one(engine, "before")) == "big"
    change = change_to(PACKING)
    (applied,) = engine.handle([change], 1.0)
    assert applied == ConfigurationApplied(change.hash, ("default-scheduler",))
    # Both pods have the same class, so a cached answer of the old configuration would show.
    assert node_chosen(schedule_one(engine, "after", 1.0)) == "small"
    engine.validate()


def test_every_attempt_names_its_configuration() -> None:
    engine = configurable_engine(SPREADING)
    engine.handle(two_nodes(), 0.0)
    (before,) = of_type(AttemptResult, schedule_one(engine, "before"))
    change = change_to(PACKING)
    engine.handle([change], 1.0)
    instructions = schedule_one(engine, "after", 1.0)
    (after,) = of_type(AttemptResult, instructions)
    (bind,) = of_type(BindPod, instructions)
    refused = engine.handle([BindFailed(bind.pod.uid, bind.node_name, "no")], 1.0)
    (binding,) = of_type(AttemptResult, refused)
    assert before.configuration == change_to(SPREADING).hash
    assert after.configuration == change.hash
    assert (binding.result, binding.configuration) == ("error", change.hash)
    assert len(before.configuration) == 12


def test_a_binding_pod_keeps_the_configuration_of_its_attempt() -> None:
    engine = configurable_engine(with_waits_and_works(SPREADING), plugins=[WaitsAndWorks()])
    engine.handle(two_nodes(), 0.0)
    assert of_type(BindPod, schedule_one(engine, "p")) == []
    engine.handle([change_to(PACKING)], 1.0)
    # The new configuration has no WaitsAndWorks; the pod still waits for that of the old one.
    assert [waiting.plugins for waiting in engine.waiting_pods()] == [{"WaitsAndWorks"}]
    (run,) = of_type(RunPreBind, engine.handle([WaitingPodAllowed("uid-p", "WaitsAndWorks")], 2.0))
    assert run.plugins == ("WaitsAndWorks",)
    work = engine.pre_bind("uid-p", "WaitsAndWorks")
    assert work is not None
    assert asyncio.run(work).is_success
    bound = engine.handle([PreBindFinished("uid-p", 1, Code.SUCCESS)], 3.0)
    assert node_chosen(bound) == "big"
    assert of_type(PodBound, engine.handle([BindSucceeded("uid-p", "big")], 4.0))
    engine.validate()


def test_queue_and_cache_survive_a_new_configuration() -> None:
    engine = configurable_engine(SPREADING)
    placed = AssignedPodSeen(make_pod("placed", cpu="1", node="big"))
    waiting = [PendingPodSeen(make_pod(name, cpu="1")) for name in ("a", "b")]
    gated = PendingPodSeen(make_pod("gated", gates=["example.com/quota"]))
    engine.handle([*two_nodes(), placed, *waiting, gated], 0.0)
    before = engine.dump()
    engine.handle([change_to(PACKING)], 1.0)
    assert engine.dump() == before
    assert [bind.pod.name for bind in of_type(BindPod, engine.schedule(1.0, 5))] == ["a", "b"]
    engine.validate()


def test_an_unschedulable_pod_is_retried_under_a_new_configuration() -> None:
    strict = {**SPREADING, "schedulerName": "default-scheduler"}
    lenient_filter = {"filter": {"disabled": [{"name": "NodeResourcesFit"}]}}
    lenient = {**strict, "plugins": {**strict["plugins"], **lenient_filter}}
    engine = configurable_engine(strict)
    engine.handle([NodeSeen(make_node("n", cpu="1"))], 0.0)
    engine.handle([PendingPodSeen(make_pod("large", cpu="3"))], 0.0)
    (rejected,) = of_type(AttemptResult, engine.schedule(0.0, 1))
    assert rejected.unschedulable_plugins == ("NodeResourcesFit",)
    assert engine.pending_counts()["unschedulable"] == 1
    engine.handle([change_to(lenient)], 60.0)
    assert node_chosen(engine.schedule(60.0, 1)) == "n"
    assert engine.incoming_counts()["active", "ConfigurationChanged"] == 1


def test_pre_enqueue_runs_again_under_a_new_configuration() -> None:
    ungated = {**SPREADING, "plugins": {**SPREADING["plugins"]}}
    ungated["plugins"]["preEnqueue"] = {"disabled": [{"name": "SchedulingGates"}]}
    engine = configurable_engine(SPREADING)
    gated = PendingPodSeen(make_pod("gated", gates=["example.com/quota"]))
    engine.handle([*two_nodes(), gated], 0.0)
    engine.handle([change_to(ungated)], 1.0)
    assert engine.pending_counts()["active"] == 1
    engine.handle([change_to(SPREADING)], 2.0)
    assert engine.pending_counts() == {"active": 0, "backoff": 0, "unschedulable": 0, "gated": 1}
    engine.validate()


def test_a_preemptor_waits_for_its_evictions_under_a_new_configuration() -> None:
    engine = configurable_engine(SPREADING)
    victims = [
        AssignedPodSeen(make_pod(name, cpu="500m", node="n", phase="Running")) for name in "ab"
    ]
    engine.handle([NodeSeen(make_node("n", cpu="1")), *victims], 0.0)
    (first,) = of_type(EvictPod, schedule_one(engine, "p", priority=100))
    engine.handle([change_to(PACKING)], 1.0)
    assert engine.pending_counts()["gated"] == 1
    assert engine.schedule(1.0, 1) == []
    done = EvictionFinished(first.preemptor.uid, first.victim, was_deleted=True)
    assert len(of_type(EvictPod, engine.handle([done], 2.0))) == 1
    engine.validate()


def test_backoffs_follow_the_new_configuration() -> None:
    engine = configurable_engine(SPREADING)
    engine.handle(two_nodes(), 0.0)
    bound = schedule_one(engine, "p")
    # An error backs off and is not popped early.
    engine.handle([BindFailed("uid-p", node_chosen(bound), "no")], 0.0)
    assert engine.next_deadline() == 2.0
    slow = {"podInitialBackoffSeconds": 7, "podMaxBackoffSeconds": 7}
    engine.handle([change_to(SPREADING, **slow)], 0.5)
    assert engine.next_deadline() == 8.0
    assert engine.schedule(7.9, 1) == []
    assert node_chosen(engine.schedule(8.0, 1)) == "big"


@pytest.mark.parametrize(
    "wrong",
    [
        change_to({**SPREADING, "plugins": {"score": {"enabled": [{"name": "NoSuchPlugin"}]}}}),
        change_to(SPREADING, podMaxBackoffSeconds=0),
        change_to(SPREADING, SPREADING),
    ],
    ids=["unknown plugin", "value out of range", "two profiles of one name"],
)
def test_an_invalid_configuration_changes_nothing(wrong: Any) -> None:
    engine = configurable_engine(SPREADING)
    engine.handle([*two_nodes(), PendingPodSeen(make_pod("p", cpu="1"))], 0.0)
    before = engine.dump()
    failed, problem = engine.handle([wrong], 1.0)
    assert isinstance(failed, ConfigurationFailed)
    assert failed.hash == wrong.hash
    assert "expected" in failed.text
    assert isinstance(problem, ReportProblem)
    assert problem.subject == "ConfigurationChanged"
    assert engine.dump() == before
    (attempt,) = of_type(AttemptResult, engine.schedule(1.0, 1))
    assert (attempt.node_name, attempt.configuration) == ("big", change_to(SPREADING).hash)
    engine.validate()


def test_an_engine_without_live_configuration_reports_a_problem() -> None:
    (problem,) = of_type(ReportProblem, default_engine().handle([change_to(PACKING)], 0.0))
    assert "an engine that can be configured" in problem.text


def test_pods_of_a_removed_profile_leave_the_queue_and_are_reported() -> None:
    engine = configurable_engine(SPREADING, fit_profile(scheduler_name="batch"))
    ours = PendingPodSeen(make_pod("ours", cpu="1"))
    theirs = [
        PendingPodSeen(make_pod(name, cpu="1", scheduler_name="batch", gates=gates))
        for name, gates in (("job", ()), ("gated-job", ("example.com/quota",)))
    ]
    engine.handle([*two_nodes(), ours, *theirs], 0.0)
    answer = engine.handle([change_to(SPREADING)], 1.0)
    (problem,) = of_type(ReportProblem, answer)
    assert problem.subject == "scheduler name batch"
    assert "2 pods leave the queue" in problem.text
    assert of_type(ConfigurationApplied, answer)[0].dropped == {"batch": 2}
    assert [bind.pod.name for bind in of_type(BindPod, engine.schedule(1.0, 5))] == ["ours"]
    assert sum(engine.pending_counts().values()) == 0
    engine.validate()


def test_an_attempt_that_waits_for_extenders_ends_with_its_profile() -> None:
    picky = Extender(url_prefix="http://picky", filter_verb="filter")
    batch = fit_profile(scheduler_name="batch")
    engine = configurable_engine(SPREADING, batch, extenders=Extenders((picky,), 16))
    engine.handle(two_nodes(), 0.0)
    schedule_one(engine, "ours")
    (asked,) = of_type(ConsultExtenders, schedule_one(engine, "job", scheduler_name="batch"))
    answer = engine.handle([change_to(SPREADING)], 1.0)
    assert of_type(ConfigurationApplied, answer)[0].dropped == {"batch": 1}
    engine.handle([ExtendersAnswered(asked.pod.uid, asked.number, asked.node_names)], 2.0)
    assert engine.schedule(2.0, 1) == []
    engine.validate()


def test_members_of_a_removed_profile_do_not_count_in_their_group() -> None:
    engine = configurable_engine(SPREADING, fit_profile(scheduler_name="batch"))
    members = [make_member("ours"), make_member("theirs", scheduler_name="batch")]
    engine.handle([PodGroupSeen(make_group(min_count=3)), *map(PendingPodSeen, members)], 0.0)
    group = engine.state.cache.pod_groups.members("default/g")
    assert group.num_all == 2
    engine.handle([change_to(SPREADING)], 1.0)
    assert list(group.unscheduled) == ["uid-ours"]


def test_a_binding_pod_of_a_removed_profile_is_bound_or_dropped() -> None:
    batch = fit_profile(scheduler_name="batch")
    engine = configurable_engine(SPREADING, batch)
    engine.handle(two_nodes(), 0.0)
    first = schedule_one(engine, "first", scheduler_name="batch")
    second = schedule_one(engine, "second", scheduler_name="batch")
    engine.handle([change_to(SPREADING)], 1.0)
    assert of_type(PodBound, engine.handle([BindSucceeded("uid-first", node_chosen(first))], 2.0))
    failed = engine.handle([BindFailed("uid-second", node_chosen(second), "no")], 2.0)
    (problem,) = of_type(ReportProblem, failed)
    assert problem.subject == "Pod default/second"
    assert sum(engine.pending_counts().values()) == 0
    engine.validate()


def test_pods_of_an_added_profile_are_scheduled() -> None:
    engine = configurable_engine(SPREADING)
    engine.handle(two_nodes(), 0.0)
    assert schedule_one(engine, "job", scheduler_name="batch") == []
    engine.handle([change_to(SPREADING, fit_profile("MostAllocated", "batch"))], 1.0)
    assert node_chosen(schedule_one(engine, "job", 1.0, scheduler_name="batch")) == "small"


def test_a_replay_applies_the_same_configurations() -> None:
    journal = Journal()
    engine = configurable_engine(SPREADING, journal=journal)
    engine.handle(two_nodes(), 0.0)
    schedule_one(engine, "a")
    engine.handle([change_to(PACKING, fit_profile(scheduler_name="batch"))], 1.0)
    schedule_one(engine, "b", 1.0)
    engine.handle([change_to(PACKING, podMaxBackoffSeconds=0)], 2.0)
    engine.handle([BindFailed("uid-b", "small", "no"), change_to(SPREADING)], 3.0)
    schedule_one(engine, "c", 10.0)
    replayed: list[Engine] = []

    def rebuild(choose: Any, _wall_clock: Any) -> Engine:
        replayed.append(configurable_engine(SPREADING, choose=choose))
        return replayed[-1]

    replay(journal, rebuild)
    assert replayed[0].dump() == engine.dump()


def test_the_plugins_of_a_new_configuration_read_the_claims_of_the_cluster() -> None:
    engine = configurable_engine(SPREADING)
    engine.handle(two_nodes(), 0.0)
    objects = (make_class(), make_slice("small", ["gpu-0"]), make_claim("c"))
    engine.handle([*(DeviceObjectSeen(each) for each in objects), change_to(PACKING)], 0.0)
    pod = pod_with_claims("p", "c")
    engine.handle([PendingPodSeen(pod)], 0.0)
    (writes,) = of_type(BindClaims, engine.schedule(0.0, 1))
    assert writes.node_name == "small"


def test_a_reservation_that_was_given_back_is_made_again_under_a_new_configuration() -> None:
    engine = configurable_engine(SPREADING)
    objects = (make_class(), make_slice("small", ["gpu-0"]), make_claim("c"))
    engine.handle([*two_nodes(), *(DeviceObjectSeen(each) for each in objects)], 0.0)
    engine.handle([PendingPodSeen(pod_with_claims("p", "c"))], 0.0)
    (writes,) = of_type(BindClaims, engine.schedule(0.0, 1))
    engine.handle([ClaimsWritten("uid-p", writes.number, tuple(written(writes)))], 0.0)
    failed = engine.handle([BindFailed("uid-p", "small", "no")], 0.0)
    assert len(of_type(ReleaseClaims, failed)) == 1
    engine.handle([change_to(PACKING)], 1.0)
    # The watch has not shown yet that the reservation is gone.
    (again,) = of_type(BindClaims, engine.schedule(15.0, 1))
    (wanted,) = again.claims
    assert wanted.claim.status.reserved_for == ()
