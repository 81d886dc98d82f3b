"""The inbox keeps the order of events and wakes the loop."""

from __future__ import annotations

import asyncio

from stowage.api.events import BindSucceeded, Event, NodeGone, NodeSeen, PendingPodGone
from stowage.operator.inbox import Inbox
from tests.support.builders import make_node
from tests.unit.operator.tasks import let_tasks_run


def test_events_are_drained_in_order_of_arrival() -> None:
    inbox = Inbox()
    arrived = [BindSucceeded(str(number), "n") for number in range(5)]
    inbox.put_all(arrived)
    assert inbox.drain(limit=3) == arrived[:3]
    assert inbox.drain(limit=3) == arrived[3:]
    assert inbox.drain(limit=3) == []


def test_the_newest_update_of_a_node_replaces_the_first() -> None:
    inbox = Inbox()
    bound = BindSucceeded("u", "a")
    newest = NodeSeen(make_node("a", cpu="4"))
    inbox.put_all([NodeSeen(make_node("a", cpu="2")), bound, newest])
    assert inbox.drain(limit=10) == [newest, bound]


def test_updates_are_not_merged_across_the_deletion_of_a_node() -> None:
    inbox = Inbox()
    events: list[Event] = [
        NodeSeen(make_node("a")),
        NodeGone("a"),
        NodeSeen(make_node("a", cpu="8")),
    ]
    inbox.put_all(events)
    assert inbox.drain(limit=10) == events


def test_an_update_after_the_previous_one_was_drained_is_kept() -> None:
    inbox = Inbox()
    first, second = NodeSeen(make_node("a")), NodeSeen(make_node("a", cpu="8"))
    inbox.put(first)
    assert inbox.drain(limit=1) == [first]
    inbox.put(second)
    assert inbox.drain(limit=1) == [second]


def test_events_that_nobody_asked_for_stay_before_those_that_arrived_meanwhile() -> None:
    inbox = Inbox()
    arrived = [BindSucceeded(str(number), "n") for number in range(4)]
    inbox.put_all(arrived[:3])
    taken: list[Event] = []
    for event in inbox.take(10, is_over=lambda: len(taken) == 2):
        taken.append(event)
        if event is arrived[0]:
            inbox.put(arrived[3])
    assert taken == arrived[:2]
    assert inbox.drain(limit=10) == arrived[2:]


def test_an_event_that_arrives_while_others_are_taken_waits_for_the_next_time() -> None:
    inbox = Inbox()
    first, second = BindSucceeded("a", "n"), BindSucceeded("b", "n")
    inbox.put(first)
    for _ in inbox.take(10, is_over=lambda: False):
        inbox.put(second)
    assert len(inbox) == 1
    assert list(inbox.take(10, is_over=lambda: False)) == [second]
    assert not inbox.is_urgent


def test_an_update_of_a_node_stays_in_order_while_others_are_taken() -> None:
    inbox = Inbox()
    old, new = NodeSeen(make_node("a")), NodeSeen(make_node("a", cpu="8"))
    inbox.put_all([BindSucceeded("u", "n"), old])
    for _ in inbox.take(1, is_over=lambda: False):
        inbox.put(new)
    assert inbox.drain(limit=10) == [old, new]


async def test_waiting_ends_when_an_event_arrives() -> None:
    inbox = Inbox()
    waiting = asyncio.create_task(inbox.wait(None))
    await asyncio.sleep(0)
    assert not waiting.done()
    inbox.put(BindSucceeded("u", "n"))
    await waiting
    assert len(inbox) == 1


async def test_waiting_ends_after_the_timeout() -> None:
    inbox = Inbox()
    await inbox.wait(0.0)
    assert len(inbox) == 0


async def test_waiting_ends_at_once_while_events_are_left() -> None:
    inbox = Inbox()
    inbox.put_all([BindSucceeded("u", "n"), BindSucceeded("v", "n")])
    inbox.drain(limit=1)
    await inbox.wait(None)
    assert len(inbox) == 1


def test_confirmations_are_not_urgent_and_other_events_are() -> None:
    inbox = Inbox()
    urgent = []
    for event in (BindSucceeded("u", "n"), PendingPodGone("default", "p", "u"), NodeGone("n")):
        inbox.put(event)
        urgent.append(inbox.is_urgent)
    assert urgent == [False, False, True]


def test_an_urgent_event_stays_urgent_until_it_is_drained() -> None:
    inbox = Inbox()
    inbox.put_all([NodeGone("n"), NodeGone("m")])
    inbox.drain(limit=1)
    urgent = [inbox.is_urgent]
    inbox.drain(limit=1)
    assert [*urgent, inbox.is_urgent] == [True, False]


def test_a_wake_up_without_an_event_is_urgent() -> None:
    inbox = Inbox()
    inbox.wake()
    assert inbox.is_urgent


async def test_a_wake_up_without_an_event_ends_one_wait() -> None:
    inbox = Inbox()
    inbox.wake()
    await inbox.wait(None)
    waiting = asyncio.create_task(inbox.wait(None))
    await let_tasks_run()
    assert not waiting.done()
    inbox.wake()
    await waiting
