"""Lists and watches become events, despite errors and gaps."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from stowage.api.events import AssignedPodGone, Event, NodeGone, NodeSeen, ObjectInvalid
from stowage.api.objects.node import Node
from stowage.operator.client.api_error import ApiError
from stowage.operator.client.watch_lines import complete_lines
from stowage.operator.clock import Clock
from stowage.operator.inbox import Inbox
from stowage.operator.watch.kinds import ASSIGNED_PODS, NODES
from stowage.operator.watch.reflector import MAX_STALE_LISTS, Reflector
from tests.support.fake_api import SILENCE, FakeApiClient, FakeTime, Request, no_jitter

GONE = {"kind": "Status", "status": "Failure", "reason": "Expired", "code": 410}


def _node(name: str, uid: str = "", version: int = 1, **status: Any) -> dict[str, Any]:
    metadata = {"name": name, "uid": uid or f"uid-{name}", "resourceVersion": str(version)}
    return {"metadata": metadata, "status": status}


def _pod(name: str, uid: str, version: int = 1) -> dict[str, Any]:
    metadata = {"namespace": "d", "name": name, "uid": uid, "resourceVersion": str(version)}
    return {"metadata": metadata, "spec": {"nodeName": "n"}}


def _list(*nodes: dict[str, Any], version: int = 10, more: str = "") -> dict[str, Any]:
    return {"metadata": {"resourceVersion": str(version), "continue": more}, "items": list(nodes)}


def _line(change: str, found: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"type": change, "object": found}) + b"\n"


def _brief(event: Event) -> str:
    match event:
        case NodeSeen():
            return f"+{event.node.metadata.name}"
        case NodeGone():
            return f"-{event.name}"
        case ObjectInvalid():
            return f"!{event.name} {event.field}"
        case _:
            return repr(event)


class _Story:
    """A reflector of nodes, run until the server's script is used up."""

    def __init__(self, lists: list[Any], watches: list[list[Any]]) -> None:
        self.inbox = Inbox()
        self.time = FakeTime()
        # The script ends with a watch that never does.
        self.client = FakeApiClient(get=lists, watch=[*watches, [_EndOfStory()]])
        clock = replace(self.time.clock, sleep=self._sleep)
        self.reflector: Reflector[Node] = Reflector(NODES, self.client, self.inbox, clock)

    async def _sleep(self, seconds: float) -> None:
        await self.time.sleep(seconds)

    async def arrived(self) -> list[str]:
        with pytest.raises(_EndOfStory):
            await self.reflector.run()
        return [_brief(event) for event in self.inbox.drain(limit=100)]

    def watched_from(self) -> list[str]:
        return [request.params["resourceVersion"] for request in self.requests("WATCH")]

    def requests(self, method: str) -> list[Request]:
        return self.client.sent(method)


class _EndOfStory(Exception):  # noqa: N818 - not an error
    pass


async def test_a_list_is_followed_by_a_watch_from_its_version() -> None:
    story = _Story(
        [_list(_node("a"), _node("b"))],
        [[_line("ADDED", _node("c", version=11)), _line("DELETED", _node("a", version=12))]],
    )
    assert await story.arrived() == ["+a", "+b", "+c", "-a"]
    assert story.watched_from() == ["10", "12"]
    assert story.reflector.has_synced


async def test_pages_are_read_to_the_end() -> None:
    story = _Story([_list(_node("a"), more="next"), _list(_node("b"))], [])
    assert await story.arrived() == ["+a", "+b"]
    assert [request.params.get("continue") for request in story.requests("GET")] == [None, "next"]


async def test_a_page_that_expired_starts_the_list_again() -> None:
    story = _Story(
        [_list(_node("a"), more="next"), ApiError(410, "Expired"), _list(_node("a"), _node("b"))],
        [],
    )
    assert await story.arrived() == ["+a", "+a", "+b"][-2:]


@pytest.mark.parametrize(
    "watch",
    [[_line("ERROR", GONE)], [ApiError(410, "Expired")]],
    ids=["as an ERROR event", "as a status"],
)
async def test_a_version_that_is_too_old_is_relisted_and_the_vanished_are_gone(
    watch: list[Any],
) -> None:
    story = _Story([_list(_node("a"), _node("b")), _list(_node("b"), version=50)], [watch])
    assert await story.arrived() == ["+a", "+b", "-a"]
    assert story.watched_from() == ["10", "50"]


async def test_an_object_replaced_in_a_gap_is_gone_and_another_is_seen() -> None:
    story = _Story(
        [_list(_node("a", uid="1")), _list(_node("a", uid="2"), version=50)],
        [[_line("ERROR", GONE)]],
    )
    assert await story.arrived() == ["+a", "-a", "+a"]


async def test_a_bookmark_moves_the_version_and_nothing_else() -> None:
    bookmark = {"metadata": {"resourceVersion": "99"}}
    story = _Story([_list()], [[_line("BOOKMARK", bookmark)]])
    assert await story.arrived() == []
    assert story.watched_from() == ["10", "99"]


async def test_a_broken_watch_goes_on_where_it_was() -> None:
    added = _line("ADDED", _node("a", version=11))
    story = _Story([_list()], [[added, TimeoutError()]])
    assert await story.arrived() == ["+a"]
    assert story.watched_from() == ["10", "11"]
    assert len(story.requests("GET")) == 1


async def test_a_server_away_for_long_is_asked_ever_less_often() -> None:
    story = _Story([ConnectionRefusedError()] * 12 + [_list()], [])
    assert await story.arrived() == []
    assert story.time.slept == sorted(story.time.slept)
    assert story.time.slept[-1] == 30.0


async def test_retry_after_is_respected() -> None:
    story = _Story([ApiError(429, retry_after=12.0), _list()], [])
    await story.arrived()
    assert story.time.slept == [12.0]


async def test_a_watch_that_ends_at_once_is_not_repeated_in_a_tight_loop() -> None:
    story = _Story([_list()], [[], [], []])
    await story.arrived()
    assert story.time.slept == [0.2, 0.4, 0.8]


async def test_a_bad_object_is_reported_and_the_others_go_on() -> None:
    bad = _node("bad", allocatable=7)
    story = _Story(
        [_list(bad, _node("a"))],
        [
            [
                _line("MODIFIED", _node("bad", version=12, images="x")),
                _line("ADDED", _node("c", version=13)),
            ]
        ],
    )
    assert await story.arrived() == ["+a", "!bad status.allocatable", "!bad status.images", "+c"]


async def test_the_deletion_of_a_bad_object_is_told() -> None:
    story = _Story([_list(_node("a"))], [[_line("DELETED", _node("a", version=12, allocatable=7))]])
    assert await story.arrived() == ["+a", "-a"]


async def test_what_a_bad_object_has_replaced_is_gone_at_the_latest_with_it() -> None:
    inbox = Inbox()
    bad = _pod("p", "u2", version=11)
    bad["spec"]["priority"] = "high"
    client = FakeApiClient(
        get=[_list(_pod("p", "u1")), _list(bad)],
        watch=[[ApiError(410)], [_line("DELETED", _pod("p", "u2", version=12))], [_EndOfStory()]],
    )
    reflector = Reflector(ASSIGNED_PODS, client, inbox, FakeTime().clock)
    with pytest.raises(_EndOfStory):
        await reflector.run()
    gone = [event.uid for event in inbox.drain(20) if isinstance(event, AssignedPodGone)]
    assert sorted(gone) == ["u1", "u2"]


async def test_a_bad_object_in_a_list_is_not_taken_for_gone() -> None:
    story = _Story(
        [_list(_node("a")), _list(_node("a", allocatable=7), version=50)], [[_line("ERROR", GONE)]]
    )
    assert await story.arrived() == ["+a", "!a status.allocatable"]


async def test_the_selector_limits_lists_and_watches() -> None:
    client = FakeApiClient(get=[_list()], watch=[[_EndOfStory()]])
    reflector = Reflector(ASSIGNED_PODS, client, Inbox(), FakeTime().clock)
    with pytest.raises(_EndOfStory):
        await reflector.run()
    selectors = {request.params["fieldSelector"] for request in client.requests}
    assert selectors == {"spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"}


async def test_an_undone_future_is_relisted() -> None:
    error = ApiError(504, "Timeout", "Too large resource version: 10, current: 3")
    story = _Story([_list(), _list(_node("a"), version=3)], [[error]])
    assert await story.arrived() == ["+a"]
    assert story.watched_from() == ["10", "3"]


async def test_a_list_older_than_what_was_seen_is_not_believed() -> None:
    gone = ApiError(410, "Expired")
    story = _Story([_list(_node("a")), _list(version=9), _list(_node("b"), version=12)], [[gone]])
    assert await story.arrived() == ["+a", "+b", "-a"]
    assert story.watched_from() == ["10", "12"]


async def test_a_server_that_stays_behind_is_believed_in_the_end() -> None:
    gone = ApiError(410, "Expired")
    old = [_list(version=9)] * (MAX_STALE_LISTS + 1)
    story = _Story([_list(_node("a")), *old], [[gone]])
    assert await story.arrived() == ["+a", "-a"]
    assert story.watched_from() == ["10", "9"]


async def test_events_that_come_again_change_nothing() -> None:
    removed, added = _line("DELETED", _node("a", version=11)), _line("ADDED", _node("a", "u2", 12))
    bad = _line("ADDED", _node("b", version=13, allocatable=7))
    story = _Story([_list(_node("a"))], [[removed, added, removed, bad, added, bad]])
    assert await story.arrived() == ["+a", "-a", "+a", "!b status.allocatable"]
    assert story.watched_from() == ["10", "13"]


async def test_events_in_another_order_than_they_happened_are_all_taken() -> None:
    late, first = _line("ADDED", _node("a", version=11)), _line("ADDED", _node("b", version=12))
    left, back = _line("DELETED", _node("b", version=13)), _line("ADDED", _node("b", "u2", 14))
    story = _Story([_list(_node("c"))], [[first, late, back, left], [late, first]])
    assert await story.arrived() == ["+c", "+b", "+a", "-b", "+b"]
    assert story.watched_from() == ["10", "14", "14"]


async def test_a_bookmark_ends_the_silence_of_a_watch() -> None:
    story = _Story([_list(_node("a"))], [[_line("BOOKMARK", _node("", version=12))]])
    assert await story.arrived() == ["+a"]
    story.time.now += 7.0
    assert story.reflector.idle_s == 7.0


async def test_a_server_that_is_back_is_not_kept_waiting_for_its_absence() -> None:
    away = [[OSError("refused")]] * 5
    story = _Story([_list(_node("a")), _list(_node("b"), version=50)], [*away, [ApiError(410)]])
    assert await story.arrived() == ["+a", "+b", "-a"]
    assert story.time.slept == [0.2, 0.4, 0.8, 1.6, 3.2, 0.2]


async def _settle() -> None:
    """Let everything go on until it waits for the server."""
    for _ in range(20):
        await asyncio.sleep(0)


async def _refreshed(story: _Story) -> list[str]:
    """What arrives because of a refresh asked for in the midst of the story."""
    running = asyncio.create_task(story.reflector.run())
    await _settle()
    story.inbox.drain(limit=100)
    story.reflector.refresh()
    with pytest.raises(_EndOfStory):
        await running
    assert story.reflector.is_fresh
    return [_brief(event) for event in story.inbox.drain(limit=100)]


async def test_a_refresh_ends_a_silent_watch_and_lists_anew() -> None:
    story = _Story([_list(_node("a")), _list(_node("b"), version=50)], [[SILENCE]])
    assert await _refreshed(story) == ["+b", "-a"]
    assert story.watched_from() == ["10", "50"]
    # A quorum read: what the server has cached may be as old as what we have.
    assert all("resourceVersion" not in request.params for request in story.requests("GET"))


async def test_a_list_begun_before_a_refresh_is_begun_again() -> None:
    story = _Story([SILENCE, _list(_node("a"))], [])
    assert await _refreshed(story) == ["+a"]


async def test_a_list_that_is_just_answered_when_a_refresh_is_asked_for_does_not_count() -> None:
    story = _Story([_list(_node("a")), _list(_node("b"))], [[SILENCE]])
    running = asyncio.create_task(story.reflector.run())
    await asyncio.sleep(0)
    assert len(story.requests("GET")) == 1
    story.reflector.refresh()
    with pytest.raises(_EndOfStory):
        await running
    assert len(story.requests("GET")) == 2
    assert story.reflector.is_fresh


async def test_a_refresh_ends_a_pause_and_the_next_one_is_short(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    story = _Story([*[ApiError(503)] * 9, ApiError(503), _list()], [])
    reflector, sleep = story.reflector, story.time.sleep

    async def sleep_until_refreshed(seconds: float) -> None:
        await sleep(seconds)
        if len(story.time.slept) == 9:
            await asyncio.Event().wait()

    monkeypatch.setattr(story.time, "sleep", sleep_until_refreshed)
    running = asyncio.create_task(reflector.run())
    for _ in range(10):
        await _settle()
    reflector.refresh()
    with pytest.raises(_EndOfStory):
        await running
    assert story.time.slept[8:] == [30.0, 0.2]


async def test_a_refresh_asked_for_before_the_first_list_costs_no_second_one() -> None:
    story = _Story([_list(_node("a"))], [])
    story.reflector.refresh()
    assert await story.arrived() == ["+a"]
    assert len(story.requests("GET")) == 1
    assert story.reflector.is_fresh


async def test_a_refresh_is_due_until_a_whole_list_has_come() -> None:
    story = _Story(
        [_list(), _list(_node("a"), more="next"), TimeoutError(), _list(_node("b"))], [[SILENCE]]
    )
    story.time.on_sleep = lambda: unready.append(story.reflector.is_fresh)
    unready: list[bool] = []
    assert await _refreshed(story) == ["+a", "+b", "-a"]
    assert unready == [False]


async def test_two_refreshes_at_once_are_one() -> None:
    story = _Story([_list(), _list(version=50)], [[SILENCE]])
    running = asyncio.create_task(story.reflector.run())
    await _settle()
    story.reflector.refresh()
    story.reflector.refresh()
    with pytest.raises(_EndOfStory):
        await running
    assert len(story.requests("GET")) == 2


async def test_a_reflector_can_be_cancelled_while_it_refreshes() -> None:
    story = _Story([_list(), SILENCE], [[SILENCE]])
    running = asyncio.create_task(story.reflector.run())
    await _settle()
    story.reflector.refresh()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
async def test_lines_are_put_together_however_they_were_split(size: int) -> None:
    data = b"first\nsecond\n\nthird\ncut off"

    async def chunks() -> AsyncIterator[bytes]:
        for start in range(0, len(data), size):
            await asyncio.sleep(0)
            yield data[start : start + size]

    lines = [line async for batch in complete_lines(chunks()) for line in batch]
    assert lines == [b"first", b"second", b"third"]


async def test_an_object_that_is_no_json_is_told_and_neither_listed_nor_watched_anew() -> None:
    page = msgspec.json.encode(_list(_node("a"), _node("b")))
    bad = msgspec.json.encode(_node("c", version=11)).replace(b'"status":{}', b'"status":NaN')
    changed = [
        b'{"type":"MODIFIED","object":' + bad + b"}\n",
        _line("ADDED", _node("d", version=12)),
    ]
    story = _Story([page.replace(b'"status":{}', b'"status":Infinity', 1)], [changed])
    assert await story.arrived() == ["+b", "!a status", "!c status", "+d"]
    assert story.watched_from() == ["10", "12"]
    assert story.reflector.num_lists == 1


async def test_while_somebody_does_not_say_who_it_is_nobody_counts_as_gone() -> None:
    nameless = msgspec.json.encode(_list(_node("b"), version=20))
    nameless = nameless.replace(b'"items":[', b'"items":[{"metadata":7},')
    story = _Story([_list(_node("a"), _node("b")), nameless], [[_line("ERROR", GONE)]])
    assert await story.arrived() == ["+a", "+b", "! metadata"]


OTHER_LISTS = {
    "nothing": {},
    "a list of another kind": {
        "kind": "PodList",
        "metadata": {"resourceVersion": "11"},
        "items": [],
    },
    "without a version": {"metadata": {}, "items": []},
}


@pytest.mark.parametrize("answer", OTHER_LISTS.values(), ids=OTHER_LISTS.keys())
async def test_what_is_no_list_of_the_kind_is_not_believed(answer: dict[str, Any]) -> None:
    story = _Story([answer, _list(_node("a")), answer, _list(_node("a"))], [[_line("ERROR", GONE)]])
    assert await story.arrived() == ["+a"]
    assert len(story.requests("GET")) == 4


async def test_a_line_that_is_no_json_is_watched_for_again() -> None:
    story = _Story(
        [_list(_node("a"))],
        [
            [_line("ADDED", _node("b", version=11)), b"<html>502 Bad Gateway</html>\n"],
            [_line("ADDED", _node("c", version=12))],
        ],
    )
    assert await story.arrived() == ["+a", "+b", "+c"]
    assert story.watched_from() == ["10", "11", "12"]


async def _some_turns() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def _watching(story: _Story) -> asyncio.Task[None]:
    """The story, gone on until its only watch says nothing."""
    story.client = FakeApiClient(get=[_list(_node("a"))], watch=[[SILENCE], [_EndOfStory()]])
    story.reflector = Reflector(NODES, story.client, story.inbox, story.time.clock)
    running = asyncio.create_task(story.reflector.run())
    await _some_turns()
    assert story.requests("WATCH")
    return running


async def test_a_deaf_watch_is_given_up_when_the_server_is_back() -> None:
    story = _Story([], [])
    running = await _watching(story)
    story.time.now += 7.0
    story.reflector.reconnect(unresponsive_since=story.time.now - 6.0)
    with pytest.raises(_EndOfStory):
        await running
    assert story.watched_from() == ["10", "10"]
    assert len(story.requests("GET")) == 1


@pytest.mark.parametrize("unresponsive_since", [None, 900.0], ids=["never silent", "heard since"])
async def test_a_watch_that_may_be_well_is_left_alone(unresponsive_since: float | None) -> None:
    story = _Story([], [])
    running = await _watching(story)
    story.reflector.reconnect(unresponsive_since)
    await _some_turns()
    assert len(story.requests("WATCH")) == 1
    running.cancel()


async def test_a_pause_ends_when_the_server_is_back() -> None:
    story = _Story([], [])
    client = FakeApiClient(get=[OSError(), _list(_node("a"))], watch=[[_EndOfStory()]])
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)
        await asyncio.Event().wait()

    reflector = Reflector(NODES, client, story.inbox, Clock(jitter=no_jitter, sleep=pause))
    running = asyncio.create_task(reflector.run())
    await _some_turns()
    assert pauses
    reflector.reconnect(None)
    with pytest.raises(_EndOfStory):
        await running
    assert [_brief(event) for event in story.inbox.drain(limit=100)] == ["+a"]
