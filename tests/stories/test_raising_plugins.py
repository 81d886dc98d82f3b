"""A pod for which a plugin raises backs off; every other pod is scheduled."""

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
from stowage.plugins.volumes.binding import VolumeBinding, VolumeBindingArgs
from tests.stories.plugin_driver import PluginDriver
from tests.support.models.engine_driver import reference
from tests.support.plugins.scripted_plugin import ScriptedBinder, ScriptedPlugin

FAILURE = RuntimeError("the disk failed")

#: Extension point -> the message when its plugin raises.
CYCLE_POINTS = {
    "pre_filter": 'running PreFilter plugin "Scripted": the disk failed',
    "filter": 'running "Scripted" filter plugin: the disk failed',
    "pre_score": 'running PreScore plugin "Scripted": the disk failed',
    "score": "the disk failed",
    "reserve": 'running Reserve plugin "Scripted": the disk failed',
    "permit": 'running Permit plugin "Scripted": the disk failed',
    "pre_bind_pre_flight": 'running PreBindPreFlight "Scripted": the disk failed',
}


def driver_with(*plugins: Any) -> PluginDriver:
    driver = PluginDriver(*plugins)
    driver.add_nodes("m", "n")
    return driver


@pytest.mark.parametrize("point", CYCLE_POINTS)
def test_a_plugin_that_raises_fails_only_that_pod(point: str) -> None:
    driver = driver_with(ScriptedPlugin(answers={point: FAILURE}, only="bad"))
    driver.create_pods("bad", "good")
    driver.schedule()
    assert [each.pod for each in driver.take(BindPod)] == [reference("good")]
    patches = [each for each in driver.take(PatchPodStatus) if each.reason]
    assert [(each.pod, each.reason) for each in patches] == [(reference("bad"), "SchedulerError")]
    assert patches[0].message.endswith(CYCLE_POINTS[point])
    assert "Scripted" in patches[0].message
    assert driver.queue_of("bad") == "backoff"
    assert driver.engine.cache_counts()["assumed_pods"] == 1


@pytest.mark.parametrize(("point", "stage"), [("pre_filter", "predicate"), ("reserve", "assume")])
def test_errors_of_the_plugin_that_binds_volumes_are_counted_by_stage(
    point: str, stage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_args: Any) -> Any:
        raise FAILURE

    monkeypatch.setattr(VolumeBinding, point, fail)
    driver = driver_with(VolumeBinding(VolumeBindingArgs()))
    driver.create_pods("p")
    driver.schedule()
    assert driver.engine.volume_error_counts() == {stage: 1}
    assert driver.engine.plugin_failure_counts() == {"VolumeBinding": 1}


def test_an_error_of_post_filter_is_added_to_the_diagnosis() -> None:
    scripted = ScriptedPlugin(answers={"post_filter": FAILURE}, only="bad")
    driver = PluginDriver(scripted)
    driver.create_pods("bad")
    driver.add_nodes("n")
    scripted.answers["pre_filter"] = _unschedulable
    driver.schedule()
    (patch,) = driver.take(PatchPodStatus)
    assert patch.reason == "Unschedulable"
    assert patch.message == (
        '0/1 nodes are available: no node. running PostFilter plugin "Scripted": the disk failed'
    )


def test_a_pre_enqueue_plugin_that_raises_gates_only_that_pod() -> None:
    driver = driver_with(ScriptedPlugin(answers={"pre_enqueue": FAILURE}, only="bad"))
    driver.create_pods("bad", "good")
    driver.schedule()
    assert [each.pod for each in driver.take(BindPod)] == [reference("good")]
    assert driver.queue_of("bad") == "unschedulable"


def test_a_post_bind_plugin_that_raises_does_not_hide_the_binding() -> None:
    driver = driver_with(ScriptedPlugin(answers={"post_bind": FAILURE}))
    driver.create_pods("p")
    driver.schedule()
    driver.handle(BindSucceeded("uid-p", driver.take(BindPod)[0].node_name))
    assert [each.pod for each in driver.take(PodBound)] == [reference("p")]
    assert "the disk failed" in driver.take(ReportProblem)[0].text


def test_the_error_of_a_bind_plugin_has_its_name() -> None:
    driver = driver_with(ScriptedBinder(problem=FAILURE))
    driver.create_pods("p")
    driver.schedule()
    (patch,) = driver.take(PatchPodStatus)
    assert patch.message == 'running Bind plugin "ScriptedBinder": the disk failed'


def test_a_refused_binding_names_the_bind_plugin() -> None:
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
    ("code", "reason", "failed"),
    [
        (Code.ERROR, "SchedulerError", ["Scripted"]),
        (Code.UNSCHEDULABLE, "Unschedulable", []),
        (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, "Unschedulable", []),
    ],
)
def test_a_pod_that_pre_bind_rejects_is_retried_after_a_backoff(
    code: Code, reason: str, failed: list[str]
) -> None:
    """After Permit no rejection makes a pod unschedulable: it is retried without an event."""
    driver = driver_with(ScriptedPlugin(answers={"pre_bind_pre_flight": SUCCESS}))
    driver.create_pods("p")
    driver.schedule()
    assert len(driver.take(RunPreBind)) == 1
    driver.take(PatchPodStatus)
    driver.handle(PreBindFinished("uid-p", 1, code, ("no volume",), "Scripted"))
    (patch,) = driver.take(PatchPodStatus)
    assert (patch.reason, patch.message) == (reason, "no volume")
    assert driver.engine.plugin_failure_counts() == dict.fromkeys(failed, 1)
    assert driver.queue_of("p") == "backoff"
    assert driver.engine.cache_counts()["assumed_pods"] == 0
    driver.advance(3.0)
    driver.schedule()
    assert len(driver.take(RunPreBind)) == 1


def test_no_events_are_kept_for_a_pod_that_has_passed_permit() -> None:
    driver = driver_with(ScriptedPlugin(answers={"pre_bind_pre_flight": SUCCESS}))
    driver.create_pods("p")
    driver.schedule()
    assert not any(driver.engine.in_flight_event_counts().values())
    driver.add_nodes("o")
    assert not any(driver.engine.in_flight_event_counts().values())
    assert driver.engine.in_flight() == 1


def test_repeated_binding_conflicts_lengthen_the_backoff_and_delay_no_other_pod() -> None:
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
    return PreFilterResult(unschedulable("no node"))
