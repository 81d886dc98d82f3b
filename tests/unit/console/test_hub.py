"""All pages get one stream; a slow page and an old one fetch everything again."""

from __future__ import annotations

from stowage.console.stream.hub import MAX_BYTES, MAX_MESSAGES, Hub
from stowage.console.stream.messages import Ping, Reset


def numbers(data: bytes | None) -> list[int]:
    """The numbers of messages as they are sent."""
    lines = (data or b"").decode().splitlines()
    return [int(line.rpartition("-")[2]) for line in lines if line.startswith("id: ")]


def publish(hub: Hub, times: int) -> None:
    for version in range(times):
        hub.publish("ping", Ping(version))


async def test_a_message_is_one_event() -> None:
    hub = Hub("e")
    subscriber = hub.subscribe()
    hub.publish("ping", Ping(7))
    assert await subscriber.take() == b'id: e-1\nevent: ping\ndata: {"version":7}\n\n'


async def test_all_pages_share_one_encoding() -> None:
    hub = Hub("e")
    first, second = hub.subscribe(), hub.subscribe()
    hub.publish("ping", Ping(1))
    assert first.queue.messages[0].data is second.queue.messages[0].data


async def test_a_page_that_comes_back_gets_what_it_missed() -> None:
    hub = Hub("e")
    publish(hub, 5)
    assert numbers(hub.missed_since("e-3")) == [4, 5]
    assert hub.missed_since("e-5") == b""


async def test_a_page_that_was_away_too_long_starts_over() -> None:
    hub = Hub("e")
    publish(hub, MAX_MESSAGES + 10)
    assert numbers(hub.missed_since("e-10")) == list(range(11, MAX_MESSAGES + 11))
    for last_id in ("e-9", "other-5", f"e-{MAX_MESSAGES + 11}", "", "e-x", "e-²"):
        assert hub.missed_since(last_id) is None, last_id


async def test_a_page_starts_over_after_a_pause_of_the_stream() -> None:
    hub = Hub("e")
    publish(hub, 3)
    hub.forget()
    assert hub.missed_since("e-3") is None


async def test_a_slow_page_loses_messages_and_is_told() -> None:
    hub = Hub("e")
    slow = hub.subscribe()
    publish(hub, MAX_MESSAGES + 2)
    assert slow.missed
    assert numbers(await slow.take()) == [MAX_MESSAGES + 2]


async def test_large_messages_fill_a_queue_as_well() -> None:
    hub = Hub("e")
    slow = hub.subscribe()
    for _ in range(9):
        hub.publish("reset", Reset(1, "x" * (MAX_BYTES // 8)))
        assert slow.queue.num_bytes <= MAX_BYTES
    assert slow.missed
    assert hub.missed_since("e-1") is None


async def test_a_closed_subscriber_gets_what_waits() -> None:
    hub = Hub("e")
    subscriber = hub.subscribe()
    publish(hub, 2)
    subscriber.close()
    assert numbers(await subscriber.take()) == [1, 2]
    assert await subscriber.take() == b""


async def test_whoever_left_costs_nothing() -> None:
    hub = Hub("e")
    subscriber = hub.subscribe()
    hub.unsubscribe(subscriber)
    publish(hub, 3)
    assert not subscriber.queue.messages
