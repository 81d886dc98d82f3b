"""Events keep their order and wake the loop."""

from __future__ import annotations

import asyncio

from stowage.api.events import BindSucceeded, Event, NodeGone, NodeSeen
from stowage.operator.inbox import Inbox
from tests.support.builders import make_node


def test_events_come_out_in_the_order_they_arrived() -> None:
    inbox = Inbox()
    arrived = [BindSucceeded(str(number), "n") for number in range(5)]
    inbox.put_all(arrived)
    assert inbox.drain(limit=3) == arrived[:3]
    assert inbox.drain(limit=3) == arrived[3:]
    assert inbox.drain(limit=3) == []


def test_of_several_updates_of_a_node_only_the_newest_is_kept_in_the_place_of_the_first() -> None:
    inbox = Inbox()
    bound = BindSucceeded("u", "a")
    newest = NodeSeen(make_node("a", cpu="4"))
    inbox.put_all([NodeSeen(make_node("a", cpu="2")), bound, newest])
    assert inbox.drain(limit=10) == [newest, bound]


def test_a_node_that_went_away_and_came_back_is_told_as_three_events() -> None:
    inbox = Inbox()
    story: list[Event] = [
        NodeSeen(make_node("a")),
        NodeGone("a"),
        NodeSeen(make_node("a", cpu="8")),
    ]
    inbox.put_all(story)
    assert inbox.drain(limit=10) == story


def test_an_update_after_its_node_was_drained_is_kept() -> None:
    inbox = Inbox()
    first, second = NodeSeen(make_node("a")), NodeSeen(make_node("a", cpu="8"))
    inbox.put(first)
    assert inbox.drain(limit=1) == [first]
    inbox.put(second)
    assert inbox.drain(limit=1) == [second]


async def test_waiting_ends_when_something_arrives() -> None:
    inbox = Inbox()
    waiting = asyncio.create_task(inbox.wait(None))
    await asyncio.sleep(0)
    assert not waiting.done()
    inbox.put(BindSucceeded("u", "n"))
    await waiting
    assert len(inbox) == 1


async def test_waiting_ends_when_its_time_is_over() -> None:
    inbox = Inbox()
    await inbox.wait(0.0)
    assert len(inbox) == 0


async def test_waiting_does_not_wait_while_something_is_left_over() -> None:
    inbox = Inbox()
    inbox.put_all([BindSucceeded("u", "n"), BindSucceeded("v", "n")])
    inbox.drain(limit=1)
    await inbox.wait(None)
    assert len(inbox) == 1
