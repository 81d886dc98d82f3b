"""One pod that makes a plugin fail backs off alone; everybody else goes on."""

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

from tests.support.actor import Actor, OwnBinder
from tests.support.play import Play, pod_of

FIRE = RuntimeError("the disk is on fire")

#: Extension point -> how its failure is worded; ``queue`` where the pod is kept out of the cycle.
CYCLE_POINTS = {
    "pre_filter": 'running PreFilter plugin "Actor": the disk is on fire',
    "filter": 'running "Actor" filter plugin: the disk is on fire',
    "pre_score": 'running PreScore plugin "Actor": the disk is on fire',
    "score": "the disk is on fire",
    "reserve": 'running Reserve plugin "Actor": the disk is on fire',
    "permit": 'running Permit plugin "Actor": the disk is on fire',
    "pre_bind_pre_flight": 'running PreBindPreFlight "Actor": the disk is on fire',
}


def play_with(*plugins: Any) -> Play:
    play = Play(*plugins)
    play.nodes("m", "n")
    return play


@pytest.mark.parametrize("point", CYCLE_POINTS)
def test_a_plugin_that_raises_is_an_error_of_that_pod_alone(point: str) -> None:
    play = play_with(Actor(answers={point: FIRE}, only="bad"))
    play.pods("bad", "good")
    play.schedule()
    assert [each.pod for each in play.take(BindPod)] == [pod_of("good")]
    patches = [each for each in play.take(PatchPodStatus) if each.reason]
    assert [(each.pod, each.reason) for each in patches] == [(pod_of("bad"), "SchedulerError")]
    assert patches[0].message.endswith(CYCLE_POINTS[point])
    assert "Actor" in patches[0].message
    assert play.state_of("bad") == "backoff"
    assert play.engine.cache_counts()["assumed_pods"] == 1


def test_a_post_filter_that_raises_is_told_with_the_verdict() -> None:
    nowhere = Actor(answers={"post_filter": FIRE}, only="bad")
    play = Play(nowhere)
    play.pods("bad")
    play.nodes("n")
    nowhere.answers["pre_filter"] = _unschedulable
    play.schedule()
    (patch,) = play.take(PatchPodStatus)
    assert patch.reason == "Unschedulable"
    assert patch.message == (
        '0/1 nodes are available: nowhere. running PostFilter plugin "Actor": the disk is on fire'
    )


def test_a_gate_that_raises_keeps_its_pod_out_and_no_other() -> None:
    play = play_with(Actor(answers={"pre_enqueue": FIRE}, only="bad"))
    play.pods("bad", "good")
    play.schedule()
    assert [each.pod for each in play.take(BindPod)] == [pod_of("good")]
    assert play.state_of("bad") == "unschedulable"


def test_a_plugin_that_raises_when_told_of_a_binding_hides_none() -> None:
    play = play_with(Actor(answers={"post_bind": FIRE}))
    play.pods("p")
    play.schedule()
    play.see(BindSucceeded("uid-p", play.take(BindPod)[0].node_name))
    assert [each.pod for each in play.take(PodBound)] == [pod_of("p")]
    assert "the disk is on fire" in play.take(ReportProblem)[0].text


def test_a_bind_plugin_that_raises_is_an_error_with_its_name() -> None:
    play = play_with(OwnBinder(problem=FIRE))
    play.pods("p")
    play.schedule()
    (patch,) = play.take(PatchPodStatus)
    assert patch.message == 'running Bind plugin "OwnBinder": the disk is on fire'


def test_a_binding_that_is_refused_names_the_plugin_that_asked_for_it() -> None:
    play = play_with(OwnBinder())
    play.pods("p")
    play.schedule()
    play.see(BindFailed("uid-p", "m", 'pods "p" not found'))
    (patch,) = play.take(PatchPodStatus)
    assert (patch.reason, patch.message) == (
        "SchedulerError",
        'running Bind plugin "OwnBinder": pods "p" not found',
    )
    (event,) = play.take(EmitEvent)
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
    play = play_with(Actor(answers={"pre_bind_pre_flight": SUCCESS}))
    play.pods("p")
    play.schedule()
    assert len(play.take(RunPreBind)) == 1
    play.take(PatchPodStatus)
    play.see(PreBindFinished("uid-p", code, ("no volume",), "Actor"))
    (patch,) = play.take(PatchPodStatus)
    assert (patch.reason, patch.message) == (reason, "no volume")
    assert play.state_of("p") == "backoff"
    assert play.engine.cache_counts()["assumed_pods"] == 0
    play.later(3.0)
    play.schedule()
    assert len(play.take(RunPreBind)) == 1


def test_a_pod_past_permit_is_not_in_flight_so_that_no_events_are_kept_for_it() -> None:
    play = play_with(Actor(answers={"pre_bind_pre_flight": SUCCESS}))
    play.pods("p")
    play.schedule()
    assert play.engine.in_flight_event_counts() == {}
    play.nodes("o")
    assert play.engine.in_flight_event_counts() == {}
    assert play.engine.in_flight() == 1


def test_a_conflict_for_ever_backs_off_longer_and_longer_and_holds_up_nobody() -> None:
    play = play_with(Actor())
    play.pods("bad", "good")
    tried_at = []
    for _ in range(400):
        play.schedule()
        for bind in play.take(BindPod):
            if bind.pod.name == "bad":
                tried_at.append(play.now)
                play.see(BindFailed(bind.pod.uid, bind.node_name, "conflict"))
            else:
                play.see(BindSucceeded(bind.pod.uid, bind.node_name))
        play.later(0.25)
    assert [each.pod for each in play.take(PodBound)] == [pod_of("good")]
    waited = [after - before for before, after in pairwise(tried_at)]
    assert all(wait >= owed for wait, owed in zip(waited, (1, 2, 4, 8, 10, 10), strict=False))
    assert max(waited) <= 12.0
    results = [each.result for each in play.take(AttemptResult) if each.pod.name == "bad"]
    assert results == ["scheduled", "error"] * (len(results) // 2)


def test_a_pod_that_makes_no_sense_is_told_so_once_and_stops_nobody() -> None:
    play = play_with(Actor())
    play.pods("bad", cpu="one")
    play.pods("bad", cpu="one", labels={"changed": "yes"})
    (event,) = play.take(EmitEvent)
    (patch,) = play.take(PatchPodStatus)
    assert (event.reason, event.scheduler_name) == ("FailedScheduling", "test")
    assert (patch.reason, patch.message) == ("SchedulerError", event.note)
    assert '"one"' in event.note
    play.pods("bad", cpu="1")
    assert play.state_of("bad") == "active"


def _unschedulable(*_args: Any) -> PreFilterResult:
    return PreFilterResult(unschedulable("nowhere"))
