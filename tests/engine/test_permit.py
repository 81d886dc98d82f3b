"""Permit: who waits, for whom, how long, and what becomes of a pod that may not go on."""

from __future__ import annotations

from typing import Any

import pytest
from stowage.api.events import (
    BindSucceeded,
    NodeSeen,
    PendingPodGone,
    WaitingPodAllowed,
    WaitingPodRejected,
)
from stowage.api.instructions import BindPod, EmitEvent, PatchPodStatus, RunPreBind
from stowage.api.status import SUCCESS, WAIT, error, unschedulable
from stowage.framework import Handle, PreFilterResult

from tests.support.actor import Actor
from tests.support.builders import make_node
from tests.support.play import Play, pod_of


def waits(seconds: float, name: str = "Actor", **more: Any) -> Actor:
    """A plugin that lets every pod wait, or the one named by ``only``."""
    return Actor(name, {"permit": (WAIT, seconds)}, **more)


def said_of(play: Play) -> tuple[str, str]:
    """Reason and message of the one condition written."""
    (patch,) = (each for each in play.take(PatchPodStatus) if each.reason)
    return patch.reason, patch.message


def test_a_pod_goes_on_when_all_plugins_it_waits_for_have_allowed_it() -> None:
    play = Play(waits(60, "A"), waits(90, "B"))
    play.nodes("n")
    play.pods("p")
    play.schedule()
    play.see(WaitingPodAllowed("uid-p", "A"))
    assert play.take(BindPod) == []
    assert play.engine.waiting_pods()[0].plugins == {"B"}
    play.see(WaitingPodAllowed("uid-p", "B"))
    assert play.take(BindPod) == [BindPod(pod_of("p"), "n")]


def test_each_plugin_has_a_timer_of_its_own_and_the_first_to_run_out_rejects() -> None:
    play = Play(waits(60, "A"), waits(90, "B"))
    play.nodes("n")
    play.pods("p")
    play.schedule()
    play.see(WaitingPodAllowed("uid-p", "A"))
    play.later(60.0)
    assert len(play.engine.waiting_pods()) == 1
    play.later(30.0)
    assert said_of(play) == (
        "Unschedulable",
        "0/1 nodes are available: 1 rejected due to timeout after waiting 1m30s at plugin B.",
    )
    assert play.engine.unschedulable_counts() == {("test", "B"): 1}


def test_a_pod_that_nobody_in_particular_rejected_waits_for_its_time() -> None:
    play = Play(waits(60))
    play.nodes("n")
    play.pods("p")
    play.schedule()
    play.see(WaitingPodRejected("uid-p", "", "the operator said so"))
    assert said_of(play) == (
        "Unschedulable",
        "0/1 nodes are available: 1 the operator said so.",
    )
    assert play.state_of("p") == "unschedulable"
    play.now = 60.0
    play.see(NodeSeen(make_node("another")))
    assert play.state_of("p") == "unschedulable"
    play.later(290.0)
    assert play.state_of("p") == "active"
    play.engine.validate()


def test_nobody_waits_longer_than_fifteen_minutes() -> None:
    play = Play(waits(10**6))
    play.nodes("n")
    play.pods("p")
    play.schedule()
    assert play.engine.next_deadline() == 900.0
    play.later(900.0)
    assert said_of(play)[1].endswith(
        "1 rejected due to timeout after waiting 15m0s at plugin Actor."
    )


def test_a_cycle_does_not_wait_for_a_pod_that_waits() -> None:
    play = Play(waits(60, only="p"))
    play.nodes("n")
    play.pods("p", "q")
    play.schedule()
    assert play.take(BindPod) == [BindPod(pod_of("q"), "n")]


def test_other_plugins_find_reject_and_allow_the_pods_that_wait() -> None:
    handle = Handle()
    play = Play(waits(60), handle=handle)
    play.nodes("n")
    play.pods("p", "q")
    play.schedule()
    assert [each.pod.name for each in handle.waiting_pods()] == ["p", "q"]
    waiting = handle.waiting_pod("uid-q")
    assert waiting is not None
    assert (waiting.node_name, waiting.plugins) == ("n", frozenset({"Actor"}))
    handle.reject("uid-p", "Gang", "one of us is missing")
    handle.allow("uid-q", "Actor")
    play.hear_plugins()
    assert said_of(play)[1] == "0/1 nodes are available: 1 one of us is missing."
    assert play.engine.unschedulable_counts() == {("test", "Gang"): 1}
    assert play.take(BindPod) == [BindPod(pod_of("q"), "n")]
    assert handle.waiting_pod("uid-q") is None


def test_a_pod_deleted_while_it_waits_wakes_those_that_wait_for_room() -> None:
    holder = waits(60, only="p")
    refusing = Actor("Full", {"pre_filter": _refusing}, only="q")
    play = Play(holder, refusing)
    play.nodes("n")
    play.pods("p")
    play.schedule()
    play.pods("q")
    play.schedule()
    assert play.state_of("q") == "unschedulable"
    play.take(EmitEvent)
    play.later(20.0)
    play.see(PendingPodGone("default", "p", "uid-p"))
    assert holder.log[-1] == "unreserve p by Actor"
    assert play.state_of("q") == "active"
    assert play.take(EmitEvent) == []


def test_a_rejected_pod_wakes_others_but_not_itself() -> None:
    """The deletion that its own leaving amounts to must not count as news for it."""
    refusing = Actor("Full", {"pre_filter": _refusing}, only="q")
    play = Play(waits(60, only="p"), refusing)
    play.nodes("n")
    play.pods("p", "q")
    play.schedule()
    play.later(60.0)
    assert play.state_of("p") == "unschedulable"
    assert play.state_of("q") == "active"


@pytest.mark.parametrize("point", ["reserve", "permit"])
def test_what_a_plugin_rejects_before_binding_is_a_verdict_on_the_chosen_node(point: str) -> None:
    no = unschedulable("no quota")
    actor = Actor(answers={point: no if point == "reserve" else (no, 0.0)})
    play = Play(actor)
    play.nodes("n")
    play.pods("p")
    play.schedule()
    assert said_of(play) == ("Unschedulable", "0/1 nodes are available: 1 no quota.")
    assert play.state_of("p") == "unschedulable"
    assert actor.log.count("unreserve p by Actor") == 1
    assert play.engine.cache_counts()["assumed_pods"] == 0


def test_a_permit_plugin_that_fails_is_an_error_with_its_name() -> None:
    play = Play(Actor(answers={"permit": (error("no answer"), 0.0)}))
    play.nodes("n")
    play.pods("p")
    play.schedule()
    assert said_of(play) == ("SchedulerError", 'running Permit plugin "Actor": no answer')
    assert play.state_of("p") == "backoff"


def test_reserve_is_undone_in_reverse_order_and_once() -> None:
    log: list[str] = []
    first = Actor("A", log=log)
    second = Actor("B", {"permit": (unschedulable("no"), 0.0)}, log=log)
    play = Play(first, second)
    play.nodes("n")
    play.pods("p")
    play.schedule()
    assert [each for each in log if "reserve" in each] == [
        "reserve p by A",
        "reserve p by B",
        "unreserve p by B",
        "unreserve p by A",
    ]


def test_a_pod_that_will_wait_says_where_it_is_expected() -> None:
    play = Play(waits(60))
    play.nodes("n")
    play.pods("p")
    play.schedule()
    assert play.take(PatchPodStatus) == [PatchPodStatus(pod_of("p"), nominated_node_name="n")]


def test_a_pod_with_pre_bind_work_says_where_it_is_expected_and_one_without_does_not() -> None:
    play = Play(Actor(answers={"pre_bind_pre_flight": SUCCESS}, only="p"))
    play.nodes("n")
    play.pods("p", "q")
    play.schedule()
    assert play.take(PatchPodStatus) == [PatchPodStatus(pod_of("p"), nominated_node_name="n")]
    assert [each.pod for each in play.take(RunPreBind)] == [pod_of("p")]
    assert [each.pod for each in play.take(BindPod)] == [pod_of("q")]


def test_what_a_pod_said_of_its_node_is_taken_back_when_it_does_not_get_there() -> None:
    play = Play(waits(60))
    play.nodes("n")
    play.pods("p")
    play.schedule()
    play.later(60.0)
    written = [each.nominated_node_name for each in play.take(PatchPodStatus)]
    assert written == ["n", ""]


def test_a_pre_flight_that_answers_what_it_must_not_is_an_error() -> None:
    play = Play(Actor(answers={"pre_bind_pre_flight": unschedulable("no")}))
    play.nodes("n")
    play.pods("p")
    play.schedule()
    text = (
        'PreBindPreFlight Actor returned "Unschedulable", which is unsupported. '
        "It is supposed to return Success, Skip, or Error status"
    )
    assert said_of(play) == ("SchedulerError", text)


def test_pods_named_for_activation_are_tried_once_the_pod_has_passed_permit() -> None:
    def name_q(state: Any, pod: Any, node_name: str) -> tuple[Any, float]:
        state.activate("uid-q")
        return SUCCESS, 0.0

    play = Play(
        Actor("Activates", {"permit": name_q}, only="p"),
        Actor("Full", {"pre_filter": _refusing}, only="q"),
    )
    play.nodes("n")
    play.pods("q")
    play.schedule()
    play.pods("p")
    play.schedule(1)
    assert play.state_of("q") == "active"


def test_pods_named_after_that_are_tried_once_the_pod_is_bound() -> None:
    def name_q(state: Any, pod: Any, node_name: str) -> None:
        state.activate("uid-q")

    play = Play(
        Actor("Activates", {"post_bind": name_q}, only="p"),
        Actor("Full", {"pre_filter": _refusing}, only="q"),
    )
    play.nodes("n")
    play.pods("q")
    play.schedule()
    play.pods("p")
    play.schedule(1)
    assert play.state_of("q") == "unschedulable"
    play.see(BindSucceeded("uid-p", "n"))
    assert play.state_of("q") == "active"


def test_a_plugin_may_have_pods_tried_at_any_time() -> None:
    handle = Handle()
    play = Play(Actor("Full", {"pre_filter": _refusing}), handle=handle)
    play.nodes("n")
    play.pods("q")
    play.schedule()
    handle.activate(["uid-q", "uid-nobody"])
    play.hear_plugins()
    assert play.state_of("q") == "active"


def _refusing(*_args: Any) -> PreFilterResult:
    return PreFilterResult(unschedulable("full"))
