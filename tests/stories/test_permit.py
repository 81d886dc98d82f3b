"""Permit: the plugins that a pod waits for, timeouts, and the requeueing of rejected pods."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from stowage.api.cluster_events import ActionType, ClusterEvent, EventResource
from stowage.api.config.feature_gates import parse_feature_gates
from stowage.api.events import (
    BindSucceeded,
    Event,
    NodeSeen,
    PendingPodGone,
    WaitingPodAllowed,
    WaitingPodRejected,
)
from stowage.api.instructions import BindPod, EmitEvent, PatchPodStatus, RunPreBind
from stowage.api.status import SUCCESS, WAIT, Code, Status, error, unschedulable
from stowage.framework import Handle, Timings
from tests.stories.plugin_driver import PluginDriver, driver_of_pod, driver_with_refused_pod, full
from tests.support.builders import make_node
from tests.support.durations import Unobserved
from tests.support.engines import default_engine
from tests.support.models.engine_driver import EngineDriver, reference
from tests.support.plugins.scripted_plugin import ScriptedBinder, ScriptedPlugin

NODE_ADD = ClusterEvent(EventResource.NODE, ActionType.ADD)


def waits(seconds: float, name: str = "Scripted", **more: Any) -> ScriptedPlugin:
    """A plugin that lets every pod wait, or the one named by ``only``."""
    return ScriptedPlugin(name, {"permit": (WAIT, seconds)}, **more)


def condition_written(driver: PluginDriver) -> tuple[str, str]:
    """Reason and message of the one condition written."""
    (patch,) = (each for each in driver.take(PatchPodStatus) if each.reason)
    return patch.reason, patch.message


def test_a_waiting_pod_is_bound_when_all_plugins_have_allowed_it() -> None:
    driver = driver_of_pod(waits(60, "A"), waits(90, "B"))
    driver.handle(WaitingPodAllowed("uid-p", "A"))
    assert driver.take(BindPod) == []
    assert driver.engine.waiting_pods()[0].plugins == {"B"}
    driver.handle(WaitingPodAllowed("uid-p", "B"))
    assert driver.take(BindPod) == [BindPod(reference("p"), "n")]


def test_each_plugin_has_its_own_timeout_and_the_first_one_rejects_the_pod() -> None:
    driver = driver_of_pod(waits(60, "A"), waits(90, "B"))
    driver.handle(WaitingPodAllowed("uid-p", "A"))
    driver.advance(60.0)
    assert len(driver.engine.waiting_pods()) == 1
    driver.advance(30.0)
    assert condition_written(driver) == (
        "Unschedulable",
        "0/1 nodes are available: 1 rejected due to timeout after waiting 1m30s at plugin B.",
    )
    assert driver.engine.unschedulable_counts() == {("test", "B"): 1}


def test_a_pod_rejected_without_a_plugin_waits_for_the_periodic_flush() -> None:
    driver = driver_of_pod(waits(60))
    driver.handle(WaitingPodRejected("uid-p", "", "rejected by the operator"))
    assert condition_written(driver) == (
        "Unschedulable",
        "0/1 nodes are available: 1 rejected by the operator.",
    )
    assert driver.queue_of("p") == "unschedulable"
    driver.advance(60.0)
    driver.handle(NodeSeen(make_node("another")))
    assert driver.queue_of("p") == "unschedulable"
    driver.advance(290.0)
    assert driver.queue_of("p") == "active"


def test_a_permit_wait_ends_after_fifteen_minutes() -> None:
    driver = driver_of_pod(waits(10**6))
    assert driver.engine.next_deadline() == 900.0
    driver.advance(900.0)
    assert condition_written(driver)[1].endswith(
        "1 rejected due to timeout after waiting 15m0s at plugin Scripted."
    )


@pytest.mark.parametrize(
    ("event", "result"),
    [
        (WaitingPodAllowed("uid-p", "Scripted"), "Success"),
        (WaitingPodRejected("uid-p", "Scripted", "no"), "Unschedulable"),
    ],
)
def test_the_wait_of_a_pod_at_permit_is_measured_with_its_result(event: Event, result: str) -> None:
    class PermitWaits(Unobserved):
        def observe_permit_wait(self, *durations: Any) -> None:
            observed.append(durations)

    observed: list[tuple[Any, ...]] = []
    driver = driver_of_pod(waits(60))
    driver.engine.take_durations(Timings(lambda: 0.0, PermitWaits()))
    driver.now = 7.0
    driver.handle(event)
    assert observed == [(result, 7.0)]


def test_other_pods_are_scheduled_while_one_waits_at_permit() -> None:
    driver = PluginDriver(waits(60, only="p"))
    driver.add_nodes("n")
    driver.create_pods("p", "q")
    driver.schedule()
    assert driver.take(BindPod) == [BindPod(reference("q"), "n")]


def test_plugins_can_list_reject_and_allow_waiting_pods_through_the_handle() -> None:
    handle = Handle()
    driver = PluginDriver(waits(60), handle=handle)
    driver.add_nodes("n")
    driver.create_pods("p", "q")
    driver.schedule()
    assert [each.pod.name for each in handle.waiting_pods()] == ["p", "q"]
    waiting = handle.waiting_pod("uid-q")
    assert waiting is not None
    assert (waiting.node_name, waiting.plugins) == ("n", frozenset({"Scripted"}))
    handle.reject("uid-p", "Gang", "a member is missing")
    handle.allow("uid-q", "Scripted")
    driver.deliver_requests()
    assert condition_written(driver)[1] == "0/1 nodes are available: 1 a member is missing."
    assert driver.engine.unschedulable_counts() == {("test", "Gang"): 1}
    assert driver.take(BindPod) == [BindPod(reference("q"), "n")]
    assert handle.waiting_pod("uid-q") is None


def test_deleting_a_waiting_pod_requeues_unschedulable_pods() -> None:
    holder = waits(60, only="p")
    driver = PluginDriver(holder, full(only="q"))
    driver.add_nodes("n")
    driver.create_pods("p")
    driver.schedule()
    driver.create_pods("q")
    driver.schedule()
    assert driver.queue_of("q") == "unschedulable"
    driver.take(EmitEvent)
    driver.advance(20.0)
    driver.handle(PendingPodGone("default", "p", "uid-p"))
    assert holder.log[-1] == "unreserve p by Scripted"
    assert driver.queue_of("q") == "active"
    assert driver.take(EmitEvent) == []


def test_rejecting_a_waiting_pod_requeues_other_pods_but_not_itself() -> None:
    """Forgetting the pod is an event that helps other pods, but must not requeue the pod itself."""
    driver = PluginDriver(waits(60, only="p"), full(only="q"))
    driver.add_nodes("n")
    driver.create_pods("p", "q")
    driver.schedule()
    driver.advance(60.0)
    assert driver.queue_of("p") == "unschedulable"
    assert driver.queue_of("q") == "active"


@pytest.mark.parametrize("point", ["reserve", "permit"])
def test_a_rejection_by_reserve_or_permit_makes_the_pod_unschedulable(point: str) -> None:
    no = unschedulable("no quota")
    scripted = ScriptedPlugin(answers={point: no if point == "reserve" else (no, 0.0)})
    driver = driver_of_pod(scripted)
    assert condition_written(driver) == ("Unschedulable", "0/1 nodes are available: 1 no quota.")
    assert driver.queue_of("p") == "unschedulable"
    assert scripted.log.count("unreserve p by Scripted") == 1
    assert driver.engine.cache_counts()["assumed_pods"] == 0


def test_the_error_of_a_permit_plugin_has_its_name() -> None:
    driver = driver_of_pod(ScriptedPlugin(answers={"permit": (error("no answer"), 0.0)}))
    assert condition_written(driver) == (
        "SchedulerError",
        'running Permit plugin "Scripted": no answer',
    )
    assert driver.queue_of("p") == "backoff"


def test_unreserve_runs_once_in_reverse_order() -> None:
    log: list[str] = []
    first = ScriptedPlugin("A", log=log)
    second = ScriptedPlugin("B", {"permit": (unschedulable("no"), 0.0)}, log=log)
    driver_of_pod(first, second)
    assert [each for each in log if "reserve" in each] == [
        "reserve p by A",
        "reserve p by B",
        "unreserve p by B",
        "unreserve p by A",
    ]


def test_a_pod_that_waits_at_permit_is_nominated() -> None:
    driver = driver_of_pod(waits(60))
    assert driver.take(PatchPodStatus) == [PatchPodStatus(reference("p"), nominated_node_name="n")]


def test_a_pod_that_waits_at_permit_is_not_nominated_while_the_gate_is_off() -> None:
    gates = parse_feature_gates(["NominatedNodeNameForExpectation=false"])
    driver = EngineDriver(partial(default_engine, plugins=[waits(60)], gates=gates))
    driver.add_nodes("n")
    driver.create_pods("p")
    driver.schedule()
    assert [each.node_name for each in driver.engine.waiting_pods()] == ["n"]
    assert driver.take(PatchPodStatus) == []


def test_a_pod_without_waits_is_nominated_only_for_pre_bind_work() -> None:
    driver = PluginDriver(ScriptedPlugin(answers={"pre_bind_pre_flight": SUCCESS}, only="p"))
    driver.add_nodes("n")
    driver.create_pods("p", "q")
    driver.schedule()
    assert driver.take(PatchPodStatus) == [PatchPodStatus(reference("p"), nominated_node_name="n")]
    assert [each.pod for each in driver.take(RunPreBind)] == [reference("p")]
    assert [each.pod for each in driver.take(BindPod)] == [reference("q")]


def test_the_nomination_of_a_waiting_pod_is_cleared_when_it_is_rejected() -> None:
    driver = driver_of_pod(waits(60))
    driver.advance(60.0)
    written = [each.nominated_node_name for each in driver.take(PatchPodStatus)]
    assert written == ["n", ""]


def test_an_unsupported_pre_flight_status_is_an_error() -> None:
    driver = driver_of_pod(ScriptedPlugin(answers={"pre_bind_pre_flight": unschedulable("no")}))
    text = (
        'PreBindPreFlight Scripted returned "Unschedulable", which is unsupported. '
        "It is supposed to return Success, Skip, or Error status"
    )
    assert condition_written(driver) == ("SchedulerError", text)


def test_pods_that_permit_activates_become_active_once_the_pod_has_passed_permit() -> None:
    def name_q(state: Any, pod: Any, node_name: str) -> tuple[Any, float]:
        state.activate("uid-q")
        return SUCCESS, 0.0

    driver = driver_with_refused_pod(ScriptedPlugin("Activates", {"permit": name_q}, only="p"))
    assert driver.queue_of("q") == "active"


def test_pods_that_post_bind_activates_become_active_once_the_pod_is_bound() -> None:
    def name_q(state: Any, pod: Any, node_name: str) -> None:
        state.activate("uid-q")

    driver = driver_with_refused_pod(ScriptedPlugin("Activates", {"post_bind": name_q}, only="p"))
    assert driver.queue_of("q") == "unschedulable"
    driver.handle(BindSucceeded("uid-p", "n"))
    assert driver.queue_of("q") == "active"


def test_a_plugin_can_activate_pods_at_any_time_through_the_handle() -> None:
    handle = Handle()
    driver = PluginDriver(full(), handle=handle)
    driver.add_nodes("n")
    driver.create_pods("q")
    driver.schedule()
    handle.activate(["uid-q", "uid-unknown"])
    driver.deliver_requests()
    assert driver.queue_of("q") == "active"


def test_a_pod_whose_binding_fails_once_it_is_allowed_is_tried_again_after_its_backoff() -> None:
    driver = driver_of_pod(waits(60), ScriptedBinder(problem=RuntimeError("the disk is on fire")))
    driver.now = 5.0
    driver.handle(WaitingPodAllowed("uid-p", "Scripted"))
    assert driver.queue_of("p") == "backoff"
    driver.advance(20.0)
    assert driver.queue_of("p") == "active"


@pytest.mark.parametrize(
    ("status", "queue"), [(Code.PENDING, "active"), (Code.UNSCHEDULABLE, "backoff")]
)
def test_only_a_pod_that_permit_left_pending_skips_its_backoff(status: Code, queue: str) -> None:
    answers = {"permit": (Status(status, ("later",)), 0.0)}
    driver = driver_of_pod(ScriptedPlugin(answers=answers, registered=(NODE_ADD,)))
    assert driver.queue_of("p") == "unschedulable"
    driver.handle(NodeSeen(make_node("m")))
    assert driver.queue_of("p") == queue
