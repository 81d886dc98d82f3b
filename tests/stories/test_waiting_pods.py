"""What the engine knows of a pod that waits: since when, why, and how it came to be tried again."""

from __future__ import annotations

from typing import Any

from stowage.api.events import BindSucceeded, NodeSeen, PendingPodSeen
from stowage.api.instructions import BindPod, PodBound
from stowage.api.status import SUCCESS, Status, unschedulable
from stowage.engine import Engine
from stowage.framework import EventRegistration, PreFilterResult
from stowage.state import PodInfo
from tests.support.builders import make_node, make_pod
from tests.support.engines import default_engine, of_type


class Closed:
    """Gates or rejects pods while it is closed, and registers no events."""

    name = "Closed"

    def __init__(self, *, gates: bool) -> None:
        self.is_open = False
        self._gates = gates

    def pre_enqueue(self, _pod: PodInfo) -> Status:
        return SUCCESS if self.is_open or not self._gates else unschedulable("not open yet")

    def pre_filter(self, *_args: Any) -> PreFilterResult:
        if self.is_open or self._gates:
            return PreFilterResult()
        return PreFilterResult(unschedulable("closed"))

    def events_to_register(self) -> tuple[EventRegistration, ...]:
        return ()


def _queued(engine: Engine, name: str) -> dict[str, Any]:
    found = [
        pod
        for pods in engine.dump()["queue"].values()
        for pod in pods
        if pod["pod"] == f"default/{name}"
    ]
    assert len(found) == 1
    return dict(found[0])


def _bind(engine: Engine, now: float) -> list[PodBound]:
    binds = of_type(BindPod, engine.schedule(now, 10))
    answers = [BindSucceeded(bind.pod.uid, bind.node_name) for bind in binds]
    return of_type(PodBound, engine.handle(answers, now))


def test_a_pod_without_room_shows_the_message_of_its_last_attempt() -> None:
    engine = default_engine()
    engine.handle([NodeSeen(make_node("n", cpu="1")), PendingPodSeen(make_pod("p", cpu="8"))], 3.0)
    assert _queued(engine, "p")["last_message"] == ""
    engine.schedule(4.0, 1)
    queued = _queued(engine, "p")
    assert queued["last_message"].startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert (queued["queued_at"], queued["initial_attempt_at"]) == (4.0, 3.0)


def test_a_gated_pod_shows_the_message_of_pre_enqueue() -> None:
    engine = default_engine(plugins=[Closed(gates=True)])
    engine.handle([PendingPodSeen(make_pod("p"))], 3.0)
    queued = _queued(engine, "p")
    assert (queued["gated_by"], queued["last_message"]) == ("Closed", "not open yet")
    assert queued["initial_attempt_at"] is None


def test_the_oldest_pod_is_the_one_that_became_active_first() -> None:
    gate = Closed(gates=True)
    engine = default_engine(plugins=[gate])
    engine.handle([PendingPodSeen(make_pod("gated"))], 1.0)
    assert engine.oldest_attempt_at() is None
    gate.is_open = True
    engine.handle([PendingPodSeen(make_pod("first", cpu="8"))], 5.0)
    engine.handle([PendingPodSeen(make_pod("second"))], 6.0)
    engine.schedule(7.0, 2)
    assert engine.oldest_attempt_at() == 5.0
    engine.handle([NodeSeen(make_node("n", cpu="9"))], 30.0)
    _bind(engine, 30.0)
    assert engine.oldest_attempt_at() is None


def test_a_pod_bound_after_its_timeout_says_so() -> None:
    plugin = Closed(gates=False)
    engine = default_engine(plugins=[plugin])
    engine.handle([NodeSeen(make_node("n")), PendingPodSeen(make_pod("p"))], 0.0)
    assert _bind(engine, 0.0) == []
    plugin.is_open = True
    engine.handle([], 300.0)
    assert [bound.was_flushed for bound in _bind(engine, 300.0)] == [True]


def test_a_pod_that_was_flushed_and_then_moved_by_an_event_does_not_say_that_it_timed_out() -> None:
    engine = default_engine()
    engine.handle([NodeSeen(make_node("n", cpu="1")), PendingPodSeen(make_pod("p", cpu="8"))], 0.0)
    engine.schedule(0.0, 1)
    engine.handle([], 300.0)
    assert _bind(engine, 300.0) == []
    engine.handle([NodeSeen(make_node("big", cpu="9"))], 400.0)
    assert [bound.was_flushed for bound in _bind(engine, 400.0)] == [False]
