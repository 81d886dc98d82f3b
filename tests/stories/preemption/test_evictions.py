"""The evictions of a preemption, their order, and the retry of the preemptor."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from stowage.api.events import AssignedPodSeen, PendingPodGone
from stowage.api.instructions import (
    BindPod,
    EmitEvent,
    EvictPod,
    PatchPodStatus,
    PreemptionAttempted,
    PreemptionFinished,
    ReportProblem,
)
from tests.stories.preemption.driver import PreemptionDriver, names, preempt_two
from tests.support.builders import make_pod
from tests.support.engines import of_type


def test_the_least_important_victim_is_evicted_and_the_preemptor_is_bound_to_its_node(
    driver: PreemptionDriver,
) -> None:
    driver.add_nodes("n0", "n1")
    for name, node, priority in (("a", "n0", 10), ("b", "n0", 10), ("c", "n1", 5), ("d", "n1", 7)):
        driver.show_running(name, node, priority=priority)
    driver.show_pending("p")
    answer = driver.schedule_next()
    (eviction,) = of_type(EvictPod, answer)
    assert (eviction.victim.name, eviction.preemptor.name) == ("c", "p")
    (patch,) = of_type(PatchPodStatus, answer)
    assert (patch.reason, patch.nominated_node_name) == ("Unschedulable", "n1")
    assert patch.message == "0/2 nodes are available: 2 Insufficient cpu."
    (attempted,) = of_type(PreemptionAttempted, answer)
    assert (attempted.node_name, attempted.num_victims) == ("n1", 1)
    (event,) = of_type(EmitEvent, driver.finish_eviction(eviction))
    assert (event.pod.name, event.event_type, event.reason, event.action) == (
        "c",
        "Normal",
        "Preempted",
        "Preempting",
    )
    assert event.note == f"Preempted by pod {eviction.preemptor.uid} on node n1"
    assert event.related == eviction.preemptor
    driver.show_nomination("p", "n1")
    driver.remove("c")
    (bind,) = of_type(BindPod, driver.schedule_next(after_s=20))
    assert (bind.pod.name, bind.node_name) == ("p", "n1")


@pytest.mark.parametrize(("is_gone", "version"), [(False, "5"), (True, "")])
def test_the_event_of_a_victim_names_its_version_unless_it_is_gone(
    driver: PreemptionDriver, *, is_gone: bool, version: str
) -> None:
    driver.add_nodes("n0")
    driver.show_running("a", "n0", cpu="2", resource_version="5")
    driver.show_pending("p", resource_version="7")
    (eviction,) = of_type(EvictPod, driver.schedule_next())
    if is_gone:
        driver.remove("a")
    (event,) = of_type(EmitEvent, driver.finish_eviction(eviction))
    assert (event.resource_version, event.related_resource_version) == (version, "7")


def test_an_eviction_names_the_generation_of_the_victim(driver: PreemptionDriver) -> None:
    driver.add_nodes("n0")
    victim = make_pod("a", node="n0", cpu="2")
    driver.handle(AssignedPodSeen(replace(victim, metadata=replace(victim.metadata, generation=3))))
    driver.show_pending("p")
    (eviction,) = of_type(EvictPod, driver.schedule_next())
    assert eviction.observed_generation == 3


def test_the_preemptor_is_gated_until_the_last_victim_is_being_evicted(
    driver: PreemptionDriver,
) -> None:
    driver.now = 5.0
    first = preempt_two(driver)
    assert first.victim.name == "a"
    driver.remove("a")
    assert driver.engine.pending_counts()["gated"] == 1
    answer = driver.finish_eviction(first)
    (last,) = of_type(EvictPod, answer)
    assert last.victim.name == "b"
    driver.show_terminating("b")
    driver.now += 3.0
    (finished,) = of_type(PreemptionFinished, driver.finish_eviction(last))
    assert (finished.is_error, finished.duration_s) == (False, 3.0)
    driver.remove("b")
    (bind,) = of_type(BindPod, driver.schedule_next(after_s=20))
    assert bind.node_name == "n0"


def test_the_deletion_of_the_last_victim_ungates_the_preemptor_before_the_eviction_is_reported(
    driver: PreemptionDriver,
) -> None:
    driver.add_nodes("n0")
    driver.show_running("a", "n0", cpu="2")
    driver.show_pending("p")
    (eviction,) = of_type(EvictPod, driver.schedule_next())
    driver.remove("a")
    assert of_type(BindPod, driver.schedule_next(after_s=20))
    assert of_type(PreemptionFinished, driver.finish_eviction(eviction))


def test_a_preemptor_that_another_victim_requeues_does_not_preempt_twice(
    driver: PreemptionDriver,
) -> None:
    """The API server has deleted its own victim, but no watch event has shown that yet."""
    driver.add_nodes("n0", "n1", "n2")
    for name, node in (("a", "n0"), ("b", "n1"), ("c", "n2")):
        driver.show_running(name, node, cpu="2")
    victim_of, node_of = {}, {}
    for name in ("p", "q"):
        driver.show_pending(name, cpu="2")
        answer = driver.schedule_next()
        (victim_of[name],) = of_type(EvictPod, answer)
        node_of[name] = of_type(PatchPodStatus, answer)[0].nominated_node_name
    for eviction in victim_of.values():
        assert of_type(PreemptionFinished, driver.finish_eviction(eviction))
    driver.remove(victim_of["q"].victim.name)
    answer = driver.schedule_next(after_s=20)
    assert of_type(EvictPod, answer) == []
    assert [bind.pod.name for bind in of_type(BindPod, answer)] == ["q"]
    driver.remove(victim_of["p"].victim.name)
    (bind,) = of_type(BindPod, driver.schedule_next(after_s=20))
    assert (bind.pod.name, bind.node_name) == ("p", node_of["p"])


def test_the_preemptor_is_bound_if_the_last_victim_was_deleted_by_others(
    driver: PreemptionDriver,
) -> None:
    first = preempt_two(driver)
    driver.remove("a")
    driver.remove("b")
    assert of_type(BindPod, driver.schedule_next(after_s=20)) == []
    answer = driver.finish_eviction(first)
    assert of_type(EvictPod, answer) == []
    assert of_type(BindPod, driver.schedule_next())


def test_a_failed_eviction_requeues_the_preemptor_at_once(
    driver: PreemptionDriver,
) -> None:
    first = preempt_two(driver)
    answer = driver.finish_eviction(first, error="no leave to delete")
    assert of_type(EvictPod, answer) == []
    assert of_type(PreemptionFinished, answer)[0].is_error
    assert "no leave to delete" in of_type(ReportProblem, answer)[0].text
    assert names(of_type(EvictPod, driver.schedule_next())) == ["a"]


def test_two_preemptors_take_different_nodes(driver: PreemptionDriver) -> None:
    driver.add_nodes("n0", "n1")
    for name, node in (("a", "n0"), ("b", "n1")):
        driver.show_running(name, node, cpu="2")
    driver.show_pending("p", cpu="2")
    driver.show_pending("q", cpu="2")
    first, second = driver.schedule_next(), driver.schedule_next()
    evictions = of_type(EvictPod, [*first, *second])
    assert sorted(names(evictions)) == ["a", "b"]
    nominated = {
        patch.pod.name: patch.nominated_node_name
        for patch in of_type(PatchPodStatus, [*first, *second])
    }
    assert sorted(nominated) == ["p", "q"]
    assert sorted(map(str, nominated.values())) == ["n0", "n1"]


def test_the_condition_states_that_a_pod_never_preempts(driver: PreemptionDriver) -> None:
    driver.add_nodes("n0")
    driver.show_running("a", "n0", cpu="2")
    driver.show_pending("p", preemption_policy="Never")
    answer = driver.schedule_next()
    assert of_type(EvictPod, answer) == []
    (patch,) = of_type(PatchPodStatus, answer)
    assert patch.message == (
        "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, "
        "preemption: not eligible due to preemptionPolicy=Never."
    )


def test_the_last_victim_is_not_evicted_if_the_preemptor_is_gone(
    driver: PreemptionDriver,
) -> None:
    first = preempt_two(driver)
    driver.handle(PendingPodGone("default", "p", "uid-p"))
    answer = driver.finish_eviction(first)
    assert of_type(EvictPod, answer) == []
    assert of_type(PreemptionFinished, answer)
