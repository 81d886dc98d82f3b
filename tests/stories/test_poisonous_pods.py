"""A pod that makes a plugin fail backs off; every other pod is scheduled."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from stowage.api.events import BindFailed, BindSucceeded, PreBindFinished
from stowage.api.instructions import (
    AttemptResult,
    BindPod,
    EmitEvent,
    PatchPodStatus,
    PodBound,
    ReportProblem,
    RunPreBind,
)
from stowage.api.status import SUCCESS, Code, unschedulable
from stowage.framework import PreFilterResult
from tests.stories.plugin_driver import PluginDriver
from tests.support.models.engine_driver import reference
from tests.support.plugins.scripted_plugin import ScriptedBinder, ScriptedPlugin

FIRE = RuntimeError("the disk is on fire")

#: Extension point -> how its failure is worded; ``queue`` where the pod is kept out of the cycle.
CYCLE_POINTS = {
    "pre_filter": 'running PreFilter plugin "Scripted": the disk is on fire',
    "filter": 'running "Scripted" filter plugin: the disk is on fire',
    "pre_score": 'running PreScore plugin "Scripted": the disk is on fire',
    "score": "the disk is on fire",
    "reserve": 'running Reserve plugin "Scripted": the disk is on fire',
    "permit": 'running Permit plugin "Scripted": the disk is on fire',
    "pre_bind_pre_flight": 'running PreBindPreFlight "Scripted": the disk is on fire',
}


def driver_with(*plugins: Any) -> PluginDriver:
    driver = PluginDriver(*plugins)
    driver.add_nodes("m", "n")
    return driver


@pytest.mark.parametrize("point", CYCLE_POINTS)
def test_a_plugin_that_raises_is_an_error_of_that_pod_alone(point: str) -> None:
    driver = driver_with(ScriptedPlugin(answers={point: FIRE}, only="bad"))
    driver.create_pods("bad", "good")
    driver.schedule()
    assert [each.pod for each in driver.take(BindPod)] == [reference("good")]
    patches = [each for each in driver.take(PatchPodStatus) if each.reason]
    assert [(each.pod, each.reason) for each in patches] == [(reference("bad"), "SchedulerError")]
    assert patches[0].message.endswith(CYCLE_POINTS[point])
    assert "Scripted" in patches[0].message
    assert driver.queue_of("bad") == "backoff"
    assert driver.engine.cache_counts()["assumed_pods"] == 1


def test_a_post_filter_that_raises_is_told_with_the_verdict() -> None:
    nowhere = ScriptedPlugin(answers={"post_filter": FIRE}, only="bad")
    driver = PluginDriver(nowhere)
    driver.create_pods("bad")
    driver.add_nodes("n")
    nowhere.answers["pre_filter"] = _unschedulable
    driver.schedule()
    (patch,) = driver.take(PatchPodStatus)
    assert patch.reason == "Unschedulable"
    assert patch.message == (
        "0/1 nodes are available: nowhere. "
        'running PostFilter plugin "Scripted": the disk is on fire'
    )


def test_a_gate_that_raises_keeps_its_pod_out_and_no_other() -> None:
    driver = driver_with(ScriptedPlugin(answers={"pre_enqueue": FIRE}, only="bad"))
    driver.create_pods("bad", "good")
    driver.schedule()
    assert [each.pod for each in driver.take(BindPod)] == [reference("good")]
    assert driver.queue_of("bad") == "unschedulable"


def test_a_plugin_that_raises_when_told_of_a_binding_hides_none() -> None:
    driver = driver_with(ScriptedPlugin(answers={"post_bind": FIRE}))
    driver.create_pods("p")
    driver.schedule()
    driver.handle(BindSucceeded("uid-p", driver.take(BindPod)[0].node_name))
    assert [each.pod for each in driver.take(PodBound)] == [reference("p")]
    assert "the disk is on fire" in driver.take(ReportProblem)[0].text


def test_a_bind_plugin_that_raises_is_an_error_with_its_name() -> None:
    driver = driver_with(ScriptedBinder(problem=FIRE))
    driver.create_pods("p")
    driver.schedule()
    (patch,) = driver.take(PatchPodStatus)
    assert patch.message == 'running Bind plugin "ScriptedBinder": the disk is on fire'


def test_a_binding_that_is_refused_names_the_plugin_that_asked_for_it() -> None:
    driver = driver_with(ScriptedBinder())
    driver.create_pods("p")
    driver.schedule()
    driver.handle(BindFailed("uid-p", "m", 'pods "p" not found'))
    (patch,) = driver.take(PatchPodStatus)
    assert (patch.reason, patch.message) == (
        "SchedulerError",
        'running Bind plugin "ScriptedBinder": pods "p" not found',
    )
    (event,) = driver.take(EmitEvent)
    assert event.note == patch.message


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (Code.ERROR, "SchedulerError"),
        (Code.UNSCHEDULABLE, "Unschedulable"),
        (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, "Unschedulable"),
    ],
)
def test_whatever_pre_bind_answers_the_pod_is_tried_again_after_a_backoff(
    code: Code, reason: str
) -> None:
    """After Permit nothing makes a pod unschedulable: no event need come for another try."""
    driver = driver_with(ScriptedPlugin(answers={"pre_bind_pre_flight": SUCCESS}))
    driver.create_pods("p")
    driver.schedule()
    assert len(driver.take(RunPreBind)) == 1
    driver.take(PatchPodStatus)
    driver.handle(PreBindFinished("uid-p", code, ("no volume",), "Scripted"))
    (patch,) = driver.take(PatchPodStatus)
    assert (patch.reason, patch.message) == (reason, "no volume")
    assert driver.queue_of("p") == "backoff"
    assert driver.engine.cache_counts()["assumed_pods"] == 0
    driver.advance(3.0)
    driver.schedule()
    assert len(driver.take(RunPreBind)) == 1


def test_a_pod_past_permit_is_not_in_flight_so_that_no_events_are_kept_for_it() -> None:
    driver = driver_with(ScriptedPlugin(answers={"pre_bind_pre_flight": SUCCESS}))
    driver.create_pods("p")
    driver.schedule()
    assert driver.engine.in_flight_event_counts() == {}
    driver.add_nodes("o")
    assert driver.engine.in_flight_event_counts() == {}
    assert driver.engine.in_flight() == 1


def test_a_lasting_conflict_backs_off_longer_each_time_and_delays_no_other_pod() -> None:
    driver = driver_with(ScriptedPlugin())
    driver.create_pods("bad", "good")
    tried_at = []
    for _ in range(400):
        driver.schedule()
        for bind in driver.take(BindPod):
            if bind.pod.name == "bad":
                tried_at.append(driver.now)
                driver.handle(BindFailed(bind.pod.uid, bind.node_name, "conflict"))
            else:
                driver.handle(BindSucceeded(bind.pod.uid, bind.node_name))
        driver.advance(0.25)
    assert [each.pod for each in driver.take(PodBound)] == [reference("good")]
    waited = [after - before for before, after in pairwise(tried_at)]
    assert all(wait >= owed for wait, owed in zip(waited, (1, 2, 4, 8, 10, 10), strict=False))
    assert max(waited) <= 12.0
    results = [each.result for each in driver.take(AttemptResult) if each.pod.name == "bad"]
    assert results == ["scheduled", "error"] * (len(results) // 2)


def test_an_invalid_pod_gets_one_event_and_stops_no_other_pod() -> None:
    driver = driver_with(ScriptedPlugin())
    driver.create_pods("bad", cpu="one")
    driver.create_pods("bad", cpu="one", labels={"changed": "yes"})
    (event,) = driver.take(EmitEvent)
    (patch,) = driver.take(PatchPodStatus)
    assert (event.reason, event.scheduler_name) == ("FailedScheduling", "test")
    assert (patch.reason, patch.message) == ("SchedulerError", event.note)
    assert '"one"' in event.note
    driver.create_pods("bad", cpu="1")
    assert driver.queue_of("bad") == "active"


def _unschedulable(*_args: Any) -> PreFilterResult:
    return PreFilterResult(unschedulable("nowhere"))
