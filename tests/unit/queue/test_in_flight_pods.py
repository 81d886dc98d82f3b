from __future__ import annotations

from stowage.queue import QueuedPod
from stowage.queue.event_registrations import ObjectEvent
from stowage.queue.in_flight_pods import InFlightPods
from tests.unit.queue.scenario import NODE_ADD, pending


def _event(number: int) -> ObjectEvent:
    return ObjectEvent(NODE_ADD, None, number)


def _start(pods: InFlightPods, name: str) -> str:
    queued = QueuedPod(pending(name), 0.0)
    pods.start(queued)
    return queued.uid


def _seen(pods: InFlightPods, uid: str) -> list[int]:
    flight = pods.get(uid)
    assert flight is not None
    return [happened.new for happened in pods.events_since_pop(flight)]


def test_each_pod_in_flight_has_the_events_since_its_own_pop() -> None:
    pods = InFlightPods()
    first = _start(pods, "first")
    pods.record(_event(1))
    second = _start(pods, "second")
    pods.record(_event(2))
    assert _seen(pods, first) == [1, 2]
    assert _seen(pods, second) == [2]


def test_events_are_not_kept_while_no_pod_is_in_flight() -> None:
    pods = InFlightPods()
    pods.record(_event(1))
    assert pods.num_events == 0
    assert _seen(pods, _start(pods, "p")) == []


def test_events_are_dropped_once_no_pod_in_flight_needs_them() -> None:
    pods = InFlightPods()
    first = _start(pods, "first")
    pods.record(_event(1))
    second = _start(pods, "second")
    pods.record(_event(2))
    assert pods.num_events == 2
    pods.end(first)
    assert pods.num_events == 1
    assert _seen(pods, second) == [2]
    pods.end(second)
    assert pods.num_events == 0
    assert len(pods) == 0


def test_ending_a_later_pod_keeps_what_an_earlier_one_needs() -> None:
    pods = InFlightPods()
    first = _start(pods, "first")
    pods.record(_event(1))
    second = _start(pods, "second")
    pods.end(second)
    assert _seen(pods, first) == [1]


class _OpenInFlightPods(InFlightPods):
    @property
    def num_kept_events(self) -> int:
        return len(self._events)


def test_kept_events_stay_bounded_while_pods_follow_one_another() -> None:
    pods = _OpenInFlightPods()
    current = _start(pods, "p0")
    for number in range(1, 2000):
        pods.record(_event(number))
        following = _start(pods, f"p{number}")
        pods.record(_event(-number))
        pods.end(current)
        current = following
        assert pods.num_kept_events <= 130
        assert _seen(pods, current) == [-number]
    assert list(pods.inconsistencies()) == []


def test_ending_a_pod_that_is_not_in_flight_does_nothing() -> None:
    pods = InFlightPods()
    assert pods.end("unknown") is None
    assert list(pods.inconsistencies()) == []


def test_problems_names_a_pod_whose_events_begin_out_of_order() -> None:
    pods = InFlightPods()
    uid = _start(pods, "p")
    flight = pods.get(uid)
    assert flight is not None
    flight.first_event = 5
    assert list(pods.inconsistencies()) == [f"in-flight pod {uid} begins at event 5, out of order"]


def test_problems_names_events_that_are_kept_for_no_pod() -> None:
    class Hoarding(InFlightPods):
        def _trim(self) -> None:
            """Drop nothing."""

    pods = Hoarding()
    first = _start(pods, "first")
    for number in range(250):
        pods.record(_event(number))
    _start(pods, "second")
    for number in range(100):
        pods.record(_event(number))
    assert list(pods.inconsistencies()) == []
    pods.end(first)
    assert list(pods.inconsistencies()) == ["350 events kept of which 100 are needed"]
