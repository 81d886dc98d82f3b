"""Pods that wait for objects before they are bound are found by object and end in time."""

from __future__ import annotations

from stowage.api.cluster_events import EventResource
from stowage.engine.state.object_waits import ObjectWaits

CLAIM, NODE = EventResource.RESOURCE_CLAIM, EventResource.NODE


def test_a_wait_ends_at_its_deadline() -> None:
    waits = ObjectWaits()
    waits.start("p", 5.0)
    waits.start("q", 9.0)
    assert waits.next_deadline() == 5.0
    assert waits.expire(4.9) == []
    assert waits.expire(5.0) == ["p"]
    assert (list(waits.uids()), waits.next_deadline()) == (["q"], 9.0)


def test_a_deadline_can_be_shortened_and_never_lengthened() -> None:
    waits = ObjectWaits()
    waits.start("p", 9.0)
    waits.shorten("p", 4.0)
    waits.shorten("p", 7.0)
    assert waits.next_deadline() == 4.0
    assert waits.expire(10.0) == ["p"]
    waits.shorten("p", 1.0)
    assert waits.next_deadline() is None


def test_pods_are_found_by_the_objects_that_they_wait_for_last() -> None:
    waits = ObjectWaits()
    for uid in ("p", "q"):
        waits.start(uid, 5.0)
        waits.set_awaited(uid, frozenset({(CLAIM, "default/c"), (NODE, "n")}))
    assert waits.pods_awaiting(CLAIM, "default/c") == ["p", "q"]
    waits.set_awaited("p", frozenset({(NODE, "n")}))
    assert waits.pods_awaiting(CLAIM, "default/c") == ["q"]
    waits.end("q")
    assert waits.pods_awaiting(CLAIM, "default/c") == []
    assert waits.pods_awaiting(NODE, "n") == ["p"]


def test_the_deadline_of_a_wait_that_has_ended_is_not_the_next_one() -> None:
    waits = ObjectWaits()
    waits.start("p", 5.0)
    waits.start("q", 9.0)
    waits.end("p")
    assert waits.next_deadline() == 9.0
