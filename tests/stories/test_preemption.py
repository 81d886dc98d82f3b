"""Preemption: the victims, the order of evictions, and the retry of the preemptor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from stowage.api.events import (
    AssignedPodSeen,
    BindFailed,
    BindSucceeded,
    PendingPodGone,
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
from stowage.api.objects.pod import Affinity, PodAffinity
from stowage.api.status import SUCCESS, Code, Status
from stowage.framework import PluginTraits
from tests.stories.preemption_driver import HIGHER, LOW, PreemptionDriver, names
from tests.support.builders import HOSTNAME, affinity_term, label_selector, make_pod
from tests.support.engines import of_type


@pytest.fixture
def driver() -> Iterator[PreemptionDriver]:
    driver = PreemptionDriver()
    yield driver
    driver.check_replay()


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
    driver.add_nodes("n0")
    for name in ("a", "b"):
        driver.show_running(name, "n0")
    driver.show_pending("p", cpu="2")
    (first,) = of_type(EvictPod, driver.schedule_next())
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
    driver.add_nodes("n0")
    for name in ("a", "b"):
        driver.show_running(name, "n0")
    driver.show_pending("p", cpu="2")
    (first,) = of_type(EvictPod, driver.schedule_next())
    driver.remove("a")
    driver.remove("b")
    assert of_type(BindPod, driver.schedule_next(after_s=20)) == []
    answer = driver.finish_eviction(first)
    assert of_type(EvictPod, answer) == []
    assert of_type(BindPod, driver.schedule_next())


def test_a_failed_eviction_requeues_the_preemptor_at_once(
    driver: PreemptionDriver,
) -> None:
    driver.add_nodes("n0")
    for name in ("a", "b"):
        driver.show_running(name, "n0")
    driver.show_pending("p", cpu="2")
    (first,) = of_type(EvictPod, driver.schedule_next())
    answer = driver.finish_eviction(first, error="no leave to delete")
    assert of_type(EvictPod, answer) == []
    assert of_type(PreemptionFinished, answer)[0].is_error
    assert "no leave to delete" in of_type(ReportProblem, answer)[0].text
    assert names(of_type(EvictPod, driver.schedule_next())) == ["a"]


def test_no_other_pod_is_evicted_while_victims_terminate(driver: PreemptionDriver) -> None:
    driver.add_nodes("n0", "n1")
    for name, node in (("a", "n0"), ("b", "n0"), ("c", "n1"), ("d", "n1")):
        driver.show_running(name, node)
    driver.show_pending("p", cpu="2")
    (first,) = of_type(EvictPod, driver.schedule_next())
    (last,) = of_type(EvictPod, driver.finish_eviction(first))
    node = of_type(PreemptionFinished, driver.finish_eviction(last))[0].node_name
    driver.show_nomination("p", node)
    driver.show_terminating(first.victim.name)
    driver.show_terminating(last.victim.name)
    driver.remove(first.victim.name)
    answer = driver.schedule_next(after_s=20)
    assert of_type(EvictPod, answer) == []
    (patch,) = of_type(PatchPodStatus, answer)
    assert patch.nominated_node_name is None
    assert patch.message.endswith(
        "preemption: not eligible due to a terminating pod on the nominated node."
    )
    driver.remove(last.victim.name)
    (bind,) = of_type(BindPod, driver.schedule_next(after_s=20))
    assert bind.node_name == node


def test_a_preemptor_is_retried_once_its_terminating_victim_is_gone(
    driver: PreemptionDriver,
) -> None:
    driver.add_nodes("n0", cpu="4")
    web = affinity_term(HOSTNAME, label_selector({"app": "web"}))
    alone = Affinity(pod_anti_affinity=PodAffinity((web,)))
    driver.show_running("guard", "n0", priority=HIGHER, affinity=alone)
    driver.show_running("v", "n0")
    driver.show_terminating("v")
    driver.show_pending("p", labels={"app": "web"}, nominated_node="n0")
    (patch,) = of_type(PatchPodStatus, driver.schedule_next())
    assert patch.message.endswith("a terminating pod on the nominated node.")
    driver.remove("v")
    assert of_type(PreemptionAttempted, driver.schedule_next(after_s=20))


def test_the_deletion_of_the_last_victim_requeues_the_preemptor_after_any_rejection(
    driver: PreemptionDriver,
) -> None:
    driver.add_nodes("n0")
    driver.show_running("with the port", "n0", cpu="1", host_ports=[80], priority=LOW + 1)
    driver.show_running("large", "n0", cpu="1")
    driver.show_pending("p", cpu="2", host_ports=[80])
    answer = driver.schedule_next()
    assert "free ports" in of_type(PatchPodStatus, answer)[0].message
    (first,) = of_type(EvictPod, answer)
    driver.remove(first.victim.name)
    (last,) = of_type(EvictPod, driver.finish_eviction(first))
    assert last.victim.name == "large"
    driver.show_terminating("large")
    driver.finish_eviction(last)
    driver.remove("large")
    (bind,) = of_type(BindPod, driver.schedule_next(after_s=20))
    assert bind.pod.name == "p"


@pytest.mark.parametrize("is_deleted", [True, False])
def test_a_pod_with_anti_affinity_to_a_nominated_pod_is_retried_when_the_nomination_ends(
    driver: PreemptionDriver, *, is_deleted: bool
) -> None:
    driver.add_nodes("n0")
    driver.show_running("v", "n0", cpu="2")
    driver.show_terminating("v")
    driver.show_pending("q", labels={"app": "web"}, cpu="2", priority=HIGHER, nominated_node="n0")
    web = affinity_term(HOSTNAME, label_selector({"app": "web"}))
    alone = Affinity(pod_anti_affinity=PodAffinity((web,)))
    driver.show_pending("p", cpu="0", affinity=alone)
    assert of_type(BindPod, [*driver.schedule_next(), *driver.schedule_next()]) == []
    assert driver.queue_of("p") == "unschedulable"
    if is_deleted:
        driver.handle(PendingPodGone("default", "q", "uid-q"))
    else:
        driver.show_nomination("q", "")
    assert driver.queue_of("p") == "backoff"


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


def test_a_preemptor_of_higher_priority_clears_the_nomination_of_a_lower_one(
    driver: PreemptionDriver,
) -> None:
    driver.add_nodes("n0")
    driver.show_running("a", "n0")
    driver.show_running("b", "n0")
    driver.show_pending("p", cpu="1")
    assert len(of_type(EvictPod, driver.schedule_next())) == 1
    driver.show_nomination("p", "n0")
    driver.show_pending("q", cpu="2", priority=HIGHER)
    answer = driver.schedule_next()
    assert [each.pod.name for each in of_type(ClearNomination, answer)] == ["p"]
    assert len(of_type(EvictPod, answer)) == 1


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


def test_the_nomination_is_cleared_if_preemption_does_not_help(
    driver: PreemptionDriver,
) -> None:
    driver.add_nodes("n0")
    driver.show_running("a", "n0", cpu="2", priority=HIGHER)
    pod = driver.show_pending("p")
    driver.show_nomination(pod.metadata.name, "n0")
    (patch,) = of_type(PatchPodStatus, driver.schedule_next())
    assert patch.nominated_node_name == ""
    assert patch.message == (
        "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, "
        "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
    )


def test_a_nomination_is_cleared_even_if_no_watch_event_has_shown_it(
    driver: PreemptionDriver,
) -> None:
    driver.add_nodes("n0")
    driver.show_running("a", "n0")
    driver.show_running("b", "n0")
    driver.show_pending("p")
    (eviction,) = of_type(EvictPod, driver.schedule_next())
    driver.remove(eviction.victim.name)
    driver.finish_eviction(eviction)
    for name in ("c", "d"):
        driver.show_running(name, "n0", cpu="2", priority=HIGHER)
    driver.remove("a" if eviction.victim.name == "b" else "b")
    (patch,) = of_type(PatchPodStatus, driver.schedule_next(after_s=20))
    assert patch.nominated_node_name == ""


def nominate_unseen(driver: PreemptionDriver) -> None:
    """Let `p` evict `a`; `q` finds no room because of its nomination, which no event shows."""
    driver.add_nodes("n0")
    driver.show_running("a", "n0")
    driver.show_running("b", "n0")
    driver.show_pending("p", labels={"app": "web"})
    (eviction,) = of_type(EvictPod, driver.schedule_next())
    driver.remove(eviction.victim.name)
    driver.finish_eviction(eviction)
    driver.show_pending("q", priority=LOW)
    assert of_type(BindPod, driver.schedule_next()) == []
    assert driver.queue_of("q") == "unschedulable"


def test_clearing_a_nomination_that_no_event_has_shown_requeues_pods(
    driver: PreemptionDriver,
) -> None:
    nominate_unseen(driver)
    web = affinity_term(HOSTNAME, label_selector({"app": "web"}))
    alone = Affinity(pod_anti_affinity=PodAffinity((web,)))
    driver.show_running("c", "n0", cpu="0", priority=HIGHER, affinity=alone)
    (patch,) = of_type(PatchPodStatus, driver.schedule_next(after_s=20))
    assert (patch.pod.name, patch.nominated_node_name) == ("p", "")
    (bind,) = of_type(BindPod, driver.schedule_next(after_s=20))
    assert (bind.pod.name, bind.node_name) == ("q", "n0")
    assert driver.queue_of("p") == "unschedulable"


def test_a_nomination_that_no_event_has_shown_lasts_while_a_victim_terminates(
    driver: PreemptionDriver,
) -> None:
    driver.add_nodes("n0")
    for name in ("a", "b"):
        driver.show_running(name, "n0")
    driver.show_pending("p", cpu="2")
    (first,) = of_type(EvictPod, driver.schedule_next())
    (last,) = of_type(EvictPod, driver.finish_eviction(first))
    driver.finish_eviction(last)
    for victim in (first.victim.name, last.victim.name):
        driver.show_terminating(victim)
    driver.remove(first.victim.name)
    (patch,) = of_type(PatchPodStatus, driver.schedule_next(after_s=20))
    assert patch.message.endswith("not eligible due to a terminating pod on the nominated node.")
    driver.show_pending("q", priority=LOW)
    assert of_type(BindPod, driver.schedule_next()) == []
    driver.remove(last.victim.name)
    (bind,) = of_type(BindPod, driver.schedule_next(after_s=20))
    assert bind.pod.name == "p"


def test_a_nomination_that_another_preemptor_took_away_is_written_when_it_is_made_again(
    driver: PreemptionDriver,
) -> None:
    driver.add_nodes("n0")
    for name in ("a", "b"):
        driver.show_running(name, "n0")
    driver.show_pending("p")
    (first,) = of_type(EvictPod, driver.schedule_next())
    driver.finish_eviction(first)
    driver.show_pending("x", cpu="2", priority=HIGHER)
    (cleared,) = of_type(ClearNomination, driver.schedule_next())
    assert cleared.pod.name == "p"
    for name in ("a", "b"):
        driver.remove(name)
    driver.handle(PendingPodGone("default", "x", "uid-x"))
    driver.show_running("c", "n0", cpu="2")
    (patch,) = of_type(PatchPodStatus, driver.schedule_next(after_s=20))
    assert (patch.pod.name, patch.nominated_node_name) == ("p", "n0")


def test_deleting_a_pod_whose_nomination_no_event_has_shown_requeues_pods(
    driver: PreemptionDriver,
) -> None:
    nominate_unseen(driver)
    driver.handle(PendingPodGone("default", "p", "uid-p"))
    (bind,) = of_type(BindPod, driver.schedule_next(after_s=20))
    assert (bind.pod.name, bind.node_name) == ("q", "n0")


def test_the_last_victim_is_not_evicted_if_the_preemptor_is_gone(
    driver: PreemptionDriver,
) -> None:
    driver.add_nodes("n0")
    for name in ("a", "b"):
        driver.show_running(name, "n0")
    pod = driver.show_pending("p", cpu="2")
    (first,) = of_type(EvictPod, driver.schedule_next())
    driver.handle(PendingPodGone("default", "p", pod.metadata.uid))
    answer = driver.finish_eviction(first)
    assert of_type(EvictPod, answer) == []
    assert of_type(PreemptionFinished, answer)


def test_a_pod_that_is_being_bound_is_evicted_through_the_api_server(
    driver: PreemptionDriver,
) -> None:
    driver.add_nodes("n0")
    driver.show_pending("a", cpu="2", priority=LOW)
    (bind,) = of_type(BindPod, driver.schedule_next())
    driver.show_pending("p")
    assert names(of_type(EvictPod, driver.schedule_next())) == ["a"]
    driver.handle(BindSucceeded(bind.pod.uid, "n0"))


class HoldsBeforeBinding:
    """Pods named waits wait at Permit; pods named prepares have PreBind work."""

    name = "HoldsBeforeBinding"
    traits = PluginTraits()

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


@pytest.mark.parametrize(
    ("name", "reason", "message"),
    [
        ("waits", "Unschedulable", "0/1 nodes are available: 1 preempted."),
        (
            "prepares",
            "SchedulerError",
            'running PreBind plugin "HoldsBeforeBinding": preempted by DefaultPreemption',
        ),
    ],
)
def test_a_victim_without_a_binding_is_requeued_instead_of_evicted(
    name: str, reason: str, message: str
) -> None:
    driver = PreemptionDriver(plugins=[HoldsBeforeBinding()])
    driver.add_nodes("n0")
    victim = driver.show_pending(name, cpu="2", priority=LOW)
    first = driver.schedule_next()
    assert of_type(BindPod, first) == []
    driver.show_pending("p")
    answer = driver.schedule_next()
    assert of_type(EvictPod, answer) == []
    assert len(of_type(StopPreBind, answer)) == (name == "prepares")
    assert of_type(PreemptionFinished, answer)
    written = {
        event.reason: event for event in of_type(EmitEvent, answer) if event.pod.name == name
    }
    assert set(written) == {"Preempted", "FailedScheduling"}
    assert written["FailedScheduling"].note == message
    assert [
        (patch.reason, patch.message)
        for patch in of_type(PatchPodStatus, answer)
        if patch.pod.name == name
    ] == [(reason, message)]
    if of_type(RunPreBind, first):
        assert driver.handle(PreBindFinished(victim.metadata.uid, 1, Code.SUCCESS)) == []
    binds = [bind for _ in range(2) for bind in of_type(BindPod, driver.schedule_next(after_s=20))]
    assert [(bind.pod.name, bind.node_name) for bind in binds] == [("p", "n0")]
    assert (
        driver.engine.pending_counts()["unschedulable"] + driver.engine.pending_counts()["backoff"]
        == 1
    )


def _preemptor_of_last(driver: PreemptionDriver) -> EvictPod:
    """A preemptor that NodePorts rejects; its last victim is ``last``, which has no host port."""
    driver.show_running("with the port", "n0", cpu="1", host_ports=[80], priority=LOW + 1)
    driver.show_pending("p", cpu="2", host_ports=[80])
    answer = driver.schedule_next()
    assert "free ports" in of_type(PatchPodStatus, answer)[0].message
    (first,) = of_type(EvictPod, answer)
    assert first.victim.name == "with the port"
    driver.remove(first.victim.name)
    return first


def _bound_after(driver: PreemptionDriver) -> list[str]:
    return [each.pod.name for each in of_type(BindPod, driver.schedule_next(after_s=20))]


def test_the_failed_binding_of_the_last_victim_requeues_the_preemptor_after_any_rejection(
    driver: PreemptionDriver,
) -> None:
    driver.add_nodes("n0")
    victim = driver.show_pending("binds", cpu="1", priority=LOW)
    assert of_type(BindPod, driver.schedule_next())
    (last,) = of_type(EvictPod, driver.finish_eviction(_preemptor_of_last(driver)))
    assert last.victim.name == "binds"
    driver.finish_eviction(last)
    assert _bound_after(driver) == []
    driver.handle(BindFailed(victim.metadata.uid, "n0", "refused"))
    assert _bound_after(driver) == ["p"]


def test_the_last_victim_that_waited_at_permit_requeues_the_preemptor_after_any_rejection() -> None:
    driver = PreemptionDriver(plugins=[HoldsBeforeBinding()])
    driver.add_nodes("n0")
    driver.show_pending("waits", cpu="1", priority=LOW)
    assert of_type(BindPod, driver.schedule_next()) == []
    driver.finish_eviction(_preemptor_of_last(driver))
    assert _bound_after(driver) == ["p"]
