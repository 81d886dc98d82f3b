"""Reflectors turn lists and watches into events, despite errors and gaps."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from stowage.api.events import (
    AssignedPodGone,
    DeviceObjectGone,
    DeviceObjectSeen,
    Event,
    NodeGone,
    NodeSeen,
    ObjectInvalid,
)
from stowage.api.objects.device import ResourceSlice
from stowage.api.objects.node import Node
from stowage.api.reflected_kinds import ASSIGNED_PODS, NODES, REFLECTED_KINDS
from stowage.operator.client.api_error import ApiError
from stowage.operator.client.watch_lines import WatchLines
from stowage.operator.clock import Clock
from stowage.operator.extenders.objects import RawObjects
from stowage.operator.inbox import Inbox
from stowage.operator.watch.list_age import MAX_STALE_LISTS, STALE_LISTS_BEFORE_QUESTION
from stowage.operator.watch.reflector import UNSERVED_INTERVAL_S, Reflector
from tests.support.fake_api import SILENCE, FakeApiClient, FakeTime, Request, no_jitter
from tests.unit.operator.tasks import let_tasks_run

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


class _Run:
    """A reflector of nodes that runs until the scripted answers are used up."""

    def __init__(self, lists: list[Any], watches: list[list[Any]]) -> None:
        self.inbox = Inbox()
        self.time = FakeTime()
        self.silences: list[float] = []
        # The watch after the last scripted one ends the run.
        self.client = FakeApiClient(get=lists, watch=[*watches, [_EndOfScript()]])
        clock = replace(self.time.clock, sleep=self._sleep)
        self.reflector: Reflector[Node] = Reflector(NODES, self.client, self.inbox, clock)

    async def _sleep(self, seconds: float) -> None:
        await self.time.sleep(seconds)

    def passes(self, seconds: float) -> Callable[[], None]:
        """Part of the script of a watch: nothing comes for that long."""

        def pass_time() -> None:
            self.time.now += seconds

        return pass_time

    def note_silence(self) -> None:
        """Part of the script of a watch: note how long the reflector has heard nothing."""
        self.silences.append(self.reflector.idle_s)

    async def arrived(self) -> list[str]:
        with pytest.raises(_EndOfScript):
            await self.reflector.run()
        return [_brief(event) for event in self.inbox.drain(limit=100)]

    def watched_from(self) -> list[str]:
        return [request.params["resourceVersion"] for request in self.requests("WATCH")]

    def requests(self, method: str) -> list[Request]:
        return self.client.sent(method)


class _EndOfScript(Exception):  # noqa: N818 - not an error
    pass


async def test_a_list_is_followed_by_a_watch_from_its_version() -> None:
    run = _Run(
        [_list(_node("a"), _node("b"))],
        [[_line("ADDED", _node("c", version=11)), _line("DELETED", _node("a", version=12))]],
    )
    assert await run.arrived() == ["+a", "+b", "+c", "-a"]
    assert run.watched_from() == ["10", "12"]
    assert run.reflector.has_synced


async def test_an_optional_kind_that_is_not_served_counts_as_empty_and_is_asked_for_again() -> None:
    slices = next(kind for kind in REFLECTED_KINDS if kind.type is ResourceSlice)
    found = {"metadata": {"name": "s", "uid": "u", "resourceVersion": "3"}, "spec": {}}
    unserved = ApiError(404, "", "404 page not found")
    client = FakeApiClient(
        get=[unserved, _list(found), unserved], watch=[[unserved], [_EndOfScript()]]
    )
    inbox, time = Inbox(), FakeTime()
    reflector: Reflector[ResourceSlice] = Reflector(slices, client, inbox, time.clock)
    running = asyncio.create_task(reflector.run())
    await client.has_sent(2)
    assert reflector.has_synced
    assert reflector.num_failures == 0
    await client.has_sent(4)
    await let_tasks_run()
    events = inbox.drain(limit=10)
    assert [type(event) for event in events] == [DeviceObjectSeen, DeviceObjectGone]
    assert time.now >= 1000.0 + 2 * UNSERVED_INTERVAL_S
    running.cancel()


async def test_all_pages_of_a_list_are_read() -> None:
    run = _Run([_list(_node("a"), more="next"), _list(_node("b"))], [])
    assert await run.arrived() == ["+a", "+b"]
    assert [request.params.get("continue") for request in run.requests("GET")] == [None, "next"]


async def test_a_list_starts_again_when_its_continue_token_has_expired() -> None:
    run = _Run(
        [_list(_node("a"), more="next"), ApiError(410, "Expired"), _list(_node("a"), _node("b"))],
        [],
    )
    assert await run.arrived() == ["+a", "+a", "+b"][-2:]


@pytest.mark.parametrize(
    "watch",
    [[_line("ERROR", GONE)], [ApiError(410, "Expired")]],
    ids=["as an ERROR event", "as a status"],
)
async def test_an_expired_version_is_relisted_and_missing_objects_are_gone(
    watch: list[Any],
) -> None:
    run = _Run([_list(_node("a"), _node("b")), _list(_node("b"), version=50)], [watch])
    assert await run.arrived() == ["+a", "+b", "-a"]
    assert run.watched_from() == ["10", "50"]


async def test_an_object_replaced_between_two_lists_is_gone_and_seen_again() -> None:
    run = _Run(
        [_list(_node("a", uid="1")), _list(_node("a", uid="2"), version=50)],
        [[_line("ERROR", GONE)]],
    )
    assert await run.arrived() == ["+a", "-a", "+a"]


async def test_a_bookmark_only_advances_the_version() -> None:
    bookmark = {"metadata": {"resourceVersion": "99"}}
    run = _Run([_list()], [[_line("BOOKMARK", bookmark)]])
    assert await run.arrived() == []
    assert run.watched_from() == ["10", "99"]


async def test_a_broken_watch_resumes_from_the_last_version() -> None:
    added = _line("ADDED", _node("a", version=11))
    run = _Run([_list()], [[added, TimeoutError()]])
    assert await run.arrived() == ["+a"]
    assert run.watched_from() == ["10", "11"]
    assert len(run.requests("GET")) == 1


async def test_delays_grow_up_to_a_maximum_while_the_api_server_is_away() -> None:
    run = _Run([ConnectionRefusedError()] * 12 + [_list()], [])
    assert await run.arrived() == []
    assert run.time.slept == sorted(run.time.slept)
    assert run.time.slept[-1] == 30.0


async def test_retry_after_is_respected() -> None:
    run = _Run([ApiError(429, retry_after=12.0), _list()], [])
    await run.arrived()
    assert run.time.slept == [12.0]


async def test_a_watch_that_ends_at_once_backs_off() -> None:
    run = _Run([_list()], [[], [], []])
    await run.arrived()
    assert run.time.slept == [0.2, 0.4, 0.8]


async def test_an_idle_watch_that_ends_is_opened_again_without_a_failure() -> None:
    """A server may send no bookmarks for a kind that does not change."""
    run = _Run([_list(_node("a"))], [])
    run.client.script("WATCH", *[[run.passes(60.0)]] * 10, [_EndOfScript()])
    assert await run.arrived() == ["+a"]
    assert run.watched_from() == ["10"] * 11
    assert (run.reflector.num_failures, run.reflector.num_lists) == (0, 1)
    assert run.time.slept == []


async def test_an_answered_watch_ends_the_silence() -> None:
    run = _Run([_list(_node("a"))], [])
    watch = [run.note_silence, run.passes(60.0), run.note_silence]
    run.client.script("WATCH", watch, watch, [run.passes(7.0), _EndOfScript()])
    await run.arrived()
    assert run.silences == [0.0, 60.0, 0.0, 60.0]
    assert run.reflector.idle_s == 7.0


async def test_a_watch_without_an_answer_does_not_end_the_silence() -> None:
    run = _Run([_list(_node("a"))], [[TimeoutError()], [TimeoutError()]])
    await run.arrived()
    assert run.reflector.idle_s == pytest.approx(0.2 + 0.4)


async def test_a_watch_that_is_silent_for_longer_than_its_own_timeout_is_a_failure() -> None:
    run = _Run([_list(_node("a"))], [])
    run.client.script("WATCH", [run.passes(90.0), TimeoutError()], [_EndOfScript()])
    await run.arrived()
    assert run.watched_from() == ["10", "10"]
    assert (run.reflector.num_failures, run.reflector.num_lists) == (1, 1)


async def test_a_server_ends_a_watch_before_the_client_takes_it_for_broken() -> None:
    run = _Run([_list()], [])
    await run.arrived()
    longest_s = int(run.requests("WATCH")[0].params["timeoutSeconds"])
    assert 1 <= longest_s < run.client.timeouts.watch_idle_s - 20.0


async def test_an_invalid_object_is_reported_and_the_others_are_handled() -> None:
    bad = _node("bad", allocatable=7)
    run = _Run(
        [_list(bad, _node("a"))],
        [
            [
                _line("MODIFIED", _node("bad", version=12, images="x")),
                _line("ADDED", _node("c", version=13)),
            ]
        ],
    )
    assert await run.arrived() == ["+a", "!bad status.allocatable", "!bad status.images", "+c"]


async def test_the_deletion_of_an_invalid_object_is_handled() -> None:
    run = _Run([_list(_node("a"))], [[_line("DELETED", _node("a", version=12, allocatable=7))]])
    assert await run.arrived() == ["+a", "-a"]


async def test_an_object_that_an_invalid_one_replaced_is_gone_when_that_is_deleted() -> None:
    inbox = Inbox()
    bad = _pod("p", "u2", version=11)
    bad["spec"]["priority"] = "high"
    client = FakeApiClient(
        get=[_list(_pod("p", "u1")), _list(bad)],
        watch=[[ApiError(410)], [_line("DELETED", _pod("p", "u2", version=12))], [_EndOfScript()]],
    )
    reflector = Reflector(ASSIGNED_PODS, client, inbox, FakeTime().clock)
    with pytest.raises(_EndOfScript):
        await reflector.run()
    gone = [event.uid for event in inbox.drain(20) if isinstance(event, AssignedPodGone)]
    assert sorted(gone) == ["u1", "u2"]


async def test_a_listed_object_that_is_invalid_is_not_gone() -> None:
    run = _Run(
        [_list(_node("a")), _list(_node("a", allocatable=7), version=50)], [[_line("ERROR", GONE)]]
    )
    assert await run.arrived() == ["+a", "!a status.allocatable"]


async def test_the_selector_limits_lists_and_watches() -> None:
    client = FakeApiClient(get=[_list()], watch=[[_EndOfScript()]])
    reflector = Reflector(ASSIGNED_PODS, client, Inbox(), FakeTime().clock)
    with pytest.raises(_EndOfScript):
        await reflector.run()
    selectors = {request.params["fieldSelector"] for request in client.requests}
    assert selectors == {"spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"}


async def test_a_version_newer_than_the_api_server_is_relisted() -> None:
    error = ApiError(504, "Timeout", "Too large resource version: 10, current: 3")
    run = _Run([_list(), _list(_node("a"), version=3)], [[error]])
    assert await run.arrived() == ["+a"]
    assert run.watched_from() == ["10", "3"]


async def test_a_list_older_than_a_seen_version_is_ignored() -> None:
    gone = ApiError(410, "Expired")
    run = _Run([_list(_node("a")), _list(version=9), _list(_node("b"), version=12)], [[gone]])
    assert await run.arrived() == ["+a", "+b", "-a"]
    assert run.watched_from() == ["10", "12"]


async def test_an_older_list_is_accepted_after_several_attempts() -> None:
    gone = ApiError(410, "Expired")
    old = [_list(version=9)] * (MAX_STALE_LISTS + 1)
    run = _Run([_list(_node("a")), *old], [[gone]])
    assert await run.arrived() == ["+a", "-a"]
    assert run.watched_from() == ["10", "9"]


async def test_repeated_events_change_nothing() -> None:
    removed, added = _line("DELETED", _node("a", version=11)), _line("ADDED", _node("a", "u2", 12))
    bad = _line("ADDED", _node("b", version=13, allocatable=7))
    run = _Run([_list(_node("a"))], [[removed, added, removed, bad, added, bad]])
    assert await run.arrived() == ["+a", "-a", "+a", "!b status.allocatable"]
    assert run.watched_from() == ["10", "13"]


async def test_events_out_of_order_are_all_handled() -> None:
    late, first = _line("ADDED", _node("a", version=11)), _line("ADDED", _node("b", version=12))
    left, back = _line("DELETED", _node("b", version=13)), _line("ADDED", _node("b", "u2", 14))
    run = _Run([_list(_node("c"))], [[first, late, back, left], [late, first]])
    assert await run.arrived() == ["+c", "+b", "+a", "-b", "+b"]
    assert run.watched_from() == ["10", "14", "14"]


@pytest.mark.parametrize("change", ["BOOKMARK", "ADDED"])
async def test_each_line_of_a_watch_ends_the_silence(change: str) -> None:
    run = _Run([_list(_node("a"))], [])
    line = _line(change, _node("a", version=12))
    watch = [run.passes(60.0), line, run.note_silence, run.passes(7.0), run.note_silence]
    run.client.script("WATCH", watch, [_EndOfScript()])
    await run.arrived()
    assert run.silences == [0.0, 7.0]


async def test_the_delay_starts_over_once_the_api_server_answers() -> None:
    away = [[OSError("refused")]] * 5
    run = _Run([_list(_node("a")), _list(_node("b"), version=50)], [*away, [ApiError(410)]])
    assert await run.arrived() == ["+a", "+b", "-a"]
    assert run.time.slept == [0.2, 0.4, 0.8, 1.6, 3.2, 0.2]


async def _refreshed(run: _Run) -> list[str]:
    """Run the reflector, request a refresh, and return the events that follow it."""
    running = asyncio.create_task(run.reflector.run())
    await let_tasks_run()
    run.inbox.drain(limit=100)
    run.reflector.refresh()
    with pytest.raises(_EndOfScript):
        await running
    assert run.reflector.is_fresh
    return [_brief(event) for event in run.inbox.drain(limit=100)]


async def test_a_refresh_ends_a_silent_watch_and_lists_again() -> None:
    run = _Run([_list(_node("a")), _list(_node("b"), version=50)], [[SILENCE]])
    assert await _refreshed(run) == ["+b", "-a"]
    assert run.watched_from() == ["10", "50"]
    # A quorum read: the watch cache of the API server may be as old as the objects here.
    assert all("resourceVersion" not in request.params for request in run.requests("GET"))


async def test_a_list_request_sent_before_a_refresh_is_sent_again() -> None:
    run = _Run([SILENCE, _list(_node("a"))], [])
    assert await _refreshed(run) == ["+a"]


async def test_a_list_answered_just_before_a_refresh_does_not_count() -> None:
    run = _Run([_list(_node("a")), _list(_node("b"))], [[SILENCE]])
    running = asyncio.create_task(run.reflector.run())
    await asyncio.sleep(0)
    assert len(run.requests("GET")) == 1
    run.reflector.refresh()
    with pytest.raises(_EndOfScript):
        await running
    assert len(run.requests("GET")) == 2
    assert run.reflector.is_fresh


async def test_a_refresh_ends_a_backoff_and_resets_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = _Run([*[ApiError(503)] * 9, ApiError(503), _list()], [])
    reflector, sleep = run.reflector, run.time.sleep

    async def sleep_until_refreshed(seconds: float) -> None:
        await sleep(seconds)
        if len(run.time.slept) == 9:
            await asyncio.Event().wait()

    monkeypatch.setattr(run.time, "sleep", sleep_until_refreshed)
    running = asyncio.create_task(reflector.run())
    for _ in range(10):
        await let_tasks_run()
    reflector.refresh()
    with pytest.raises(_EndOfScript):
        await running
    assert run.time.slept[8:] == [30.0, 0.2]


async def test_a_refresh_before_the_first_list_needs_no_second_list() -> None:
    run = _Run([_list(_node("a"))], [])
    run.reflector.refresh()
    assert await run.arrived() == ["+a"]
    assert len(run.requests("GET")) == 1
    assert run.reflector.is_fresh


async def test_a_refresh_is_pending_until_a_whole_list_was_read() -> None:
    run = _Run(
        [_list(), _list(_node("a"), more="next"), TimeoutError(), _list(_node("b"))], [[SILENCE]]
    )
    run.time.on_sleep = lambda: unready.append(run.reflector.is_fresh)
    unready: list[bool] = []
    assert await _refreshed(run) == ["+a", "+b", "-a"]
    assert unready == [False]


async def test_two_refreshes_at_once_cause_one_list() -> None:
    run = _Run([_list(), _list(version=50)], [[SILENCE]])
    running = asyncio.create_task(run.reflector.run())
    await let_tasks_run()
    run.reflector.refresh()
    run.reflector.refresh()
    with pytest.raises(_EndOfScript):
        await running
    assert len(run.requests("GET")) == 2


async def test_a_reflector_can_be_cancelled_while_it_refreshes() -> None:
    run = _Run([_list(), SILENCE], [[SILENCE]])
    running = asyncio.create_task(run.reflector.run())
    await let_tasks_run()
    run.reflector.refresh()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_lines_are_assembled_from_chunks_of_any_size(size: int) -> None:
    data = b"first\nsecond\n\nthird\ncut off"
    chunks = [data[start : start + size] for start in range(0, len(data), size)]
    lines = WatchLines()
    assert [line for chunk in chunks for line in lines.complete(chunk)] == [
        b"first",
        b"second",
        b"third",
    ]


async def test_an_object_of_invalid_json_is_reported_and_costs_no_new_list_or_watch() -> None:
    page = msgspec.json.encode(_list(_node("a"), _node("b")))
    bad = msgspec.json.encode(_node("c", version=11)).replace(b'"status":{}', b'"status":NaN')
    changed = [
        b'{"type":"MODIFIED","object":' + bad + b"}\n",
        _line("ADDED", _node("d", version=12)),
    ]
    run = _Run([page.replace(b'"status":{}', b'"status":Infinity', 1)], [changed])
    assert await run.arrived() == ["+b", "!a status", "!c status", "+d"]
    assert run.watched_from() == ["10", "12"]
    assert run.reflector.num_lists == 1


async def test_no_object_is_gone_while_the_list_has_one_without_a_name() -> None:
    nameless = msgspec.json.encode(_list(_node("b"), version=20))
    nameless = nameless.replace(b'"items":[', b'"items":[{"metadata":7},')
    run = _Run([_list(_node("a"), _node("b")), nameless], [[_line("ERROR", GONE)]])
    assert await run.arrived() == ["+a", "+b", "! metadata"]


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
async def test_an_answer_that_is_no_list_of_the_kind_is_ignored(answer: dict[str, Any]) -> None:
    run = _Run([answer, _list(_node("a")), answer, _list(_node("a"))], [[_line("ERROR", GONE)]])
    assert await run.arrived() == ["+a"]
    assert len(run.requests("GET")) == 4


async def test_a_watch_resumes_after_a_line_of_invalid_json() -> None:
    run = _Run(
        [_list(_node("a"))],
        [
            [_line("ADDED", _node("b", version=11)), b"<html>502 Bad Gateway</html>\n"],
            [_line("ADDED", _node("c", version=12))],
        ],
    )
    assert await run.arrived() == ["+a", "+b", "+c"]
    assert run.watched_from() == ["10", "11", "12"]


async def _watching(run: _Run) -> asyncio.Task[None]:
    """Run the reflector until its only watch is silent."""
    run.client = FakeApiClient(get=[_list(_node("a"))], watch=[[SILENCE], [_EndOfScript()]])
    run.reflector = Reflector(NODES, run.client, run.inbox, run.time.clock)
    running = asyncio.create_task(run.reflector.run())
    await let_tasks_run()
    assert run.requests("WATCH")
    return running


async def test_a_silent_watch_is_restarted_when_the_api_server_is_back() -> None:
    run = _Run([], [])
    running = await _watching(run)
    run.time.now += 7.0
    run.reflector.reconnect(unresponsive_since=run.time.now - 6.0)
    with pytest.raises(_EndOfScript):
        await running
    assert run.watched_from() == ["10", "10"]
    assert len(run.requests("GET")) == 1


@pytest.mark.parametrize("unresponsive_since", [None, 900.0], ids=["never silent", "active since"])
async def test_a_watch_that_was_active_since_is_not_restarted(
    unresponsive_since: float | None,
) -> None:
    run = _Run([], [])
    running = await _watching(run)
    run.reflector.reconnect(unresponsive_since)
    await let_tasks_run()
    assert len(run.requests("WATCH")) == 1
    running.cancel()


async def test_a_backoff_ends_when_the_api_server_is_back() -> None:
    run = _Run([], [])
    client = FakeApiClient(get=[OSError(), _list(_node("a"))], watch=[[_EndOfScript()]])
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)
        await asyncio.Event().wait()

    reflector = Reflector(NODES, client, run.inbox, Clock(jitter=no_jitter, sleep=pause))
    running = asyncio.create_task(reflector.run())
    await let_tasks_run()
    assert pauses
    reflector.reconnect(None)
    with pytest.raises(_EndOfScript):
        await running
    assert [_brief(event) for event in run.inbox.drain(limit=100)] == ["+a"]


TOO_LARGE = ApiError(504, "Timeout", "Too large resource version: 12, current: 5")


def _restored_run(lists: list[Any], watch: list[Any], answer: Any) -> tuple[_Run, list[str]]:
    """A reflector that watches, loses the watch, and asks whether the server was restored."""
    run, told = _Run([], []), list[str]()
    run.client = FakeApiClient(get=lists, watch=[watch, [_EndOfScript()]], ask=[answer])
    run.reflector = Reflector(
        NODES, run.client, run.inbox, run.time.clock, on_restored=lambda: told.append("restored")
    )
    return run, told


async def test_a_restored_server_is_believed_at_once_and_nothing_known_before_remains() -> None:
    added = _line("ADDED", _node("c", version=12))
    back = _list(_node("a", version=3), version=5)
    run, told = _restored_run(
        [_list(_node("a"), _node("b")), back], [added, TimeoutError()], TOO_LARGE
    )
    # Object a is gone before it is seen: the engine knows a later version of it.
    assert await run.arrived() == ["+a", "+b", "+c", "-a", "+a", "-b", "-c"]
    assert told == ["restored"]
    assert run.watched_from() == ["10", "5"]
    asked = [request.params for request in run.requests("ASK")]
    assert asked == [
        {"limit": "1", "resourceVersion": "12", "resourceVersionMatch": "NotOlderThan"}
    ]


async def test_an_empty_store_leaves_nothing() -> None:
    run, told = _restored_run([_list(_node("a")), _list(version=1)], [OSError()], TOO_LARGE)
    assert await run.arrived() == ["+a", "-a"]
    assert told == ["restored"]


async def test_changes_after_a_restore_are_handled_although_their_versions_were_seen() -> None:
    run, _ = _restored_run([_list(_node("a")), _list(version=5)], [OSError()], TOO_LARGE)
    changes = [_line("ADDED", _node("b", version=6)), _line("DELETED", _node("b", version=7))]
    run.client.script("WATCH", [OSError()], changes, [_EndOfScript()])
    assert await run.arrived() == ["+a", "-a", "+b", "-b"]


async def test_a_server_that_lags_behind_another_one_was_not_restored() -> None:
    """Several API servers: one has not reached the version yet, but its list is a quorum read."""
    run, told = _restored_run(
        [_list(_node("a")), _list(_node("b"), version=12)], [OSError()], TOO_LARGE
    )
    assert await run.arrived() == ["+a", "+b", "-a"]
    assert told == []


async def test_a_restored_server_is_asked_when_a_new_leader_finds_its_lists_too_old() -> None:
    """The list of a new leader comes before the watch would have resumed with a question."""
    back = _list(version=5)
    run, told = _restored_run(
        [_list(_node("a")), back, back, back], [_line("ERROR", GONE)], TOO_LARGE
    )
    assert await run.arrived() == ["+a", "-a"]
    assert told == ["restored"]
    assert [each.method for each in run.client.requests] == [
        *("GET", "WATCH", "GET", "GET"),
        *("ASK", "GET", "WATCH"),
    ]


async def test_versions_of_a_kind_that_has_a_store_of_its_own_are_not_compared() -> None:
    """Leases may be in another etcd than nodes: with a higher revision, which nodes never reach."""
    run, told = _restored_run([_list(_node("a"))], [_EndOfScript()], TOO_LARGE)
    run.reflector.refresh(at_least=1000)
    assert await run.arrived() == ["+a"]
    assert told == []
    assert run.watched_from() == ["10"]
    asked = [each.params["resourceVersion"] for each in run.requests("ASK")]
    assert asked == ["1000"]
    assert len(run.requests("GET")) == STALE_LISTS_BEFORE_QUESTION + 1


async def test_a_list_from_the_past_is_not_believed_because_another_store_counts_on_its_own() -> (
    None
):
    """The refused version is that of the Lease; versions of nodes still only grow."""
    first = [_list(_node("a"))] * (STALE_LISTS_BEFORE_QUESTION + 1)
    past, now = _list(version=5), _list(_node("a"), version=12)
    run, told = _restored_run([*first, past, now], [_line("ERROR", GONE)], TOO_LARGE)
    run.reflector.refresh(at_least=1000)
    assert await run.arrived() == ["+a"]
    assert told == []
    assert run.watched_from() == ["10", "12"]


async def test_an_old_list_of_a_server_that_was_not_restored_is_ignored() -> None:
    old, new = _list(version=5), _list(_node("a"), version=12)
    run, told = _restored_run([_list(_node("a")), old, new], [_line("ERROR", GONE)], {})
    assert await run.arrived() == ["+a"]
    assert run.watched_from() == ["10", "12"]
    assert told == []


async def test_the_version_is_asked_for_only_after_a_watch_that_ended_early_or_without_data() -> (
    None
):
    run = _Run([_list()], [])
    event, bookmark = (
        _line("ADDED", _node("a", version=11)),
        _line("BOOKMARK", {"metadata": {"resourceVersion": "11"}}),
    )
    in_time = run.passes(90.0)
    run.client.script(
        "WATCH",
        [event, in_time],  # as usual
        [bookmark, in_time],  # as usual
        [in_time],  # silent, as from a version of the future
        [event],  # ended early, as by a server that ends
        [event, OSError()],
        [_EndOfScript()],
    )
    await run.arrived()
    methods = [request.method for request in run.client.requests]
    assert methods == ["GET", *["WATCH"] * 3, *["ASK", "WATCH"] * 3]


async def test_an_unanswered_question_is_asked_again_before_the_watch() -> None:
    run, told = _restored_run([_list(_node("a"))], [OSError()], None)
    run.client.script("ASK", OSError(), {})
    assert await run.arrived() == ["+a"]
    methods = [request.method for request in run.client.requests]
    assert methods == ["GET", "WATCH", "ASK", "ASK", "WATCH"]
    assert told == []


@pytest.mark.parametrize("change", ["ADDED", "DELETED"])
async def test_a_line_with_nan_for_an_extender_does_not_end_the_watch(change: str) -> None:
    run = _Run([_list(_node("a"))], [])
    line = _line(change, _node("a", version=11, unknown=7)).replace(b":7}", b":NaN}")
    raw = RawObjects("name")
    run.client.script("WATCH", [line, _line("ADDED", _node("b", version=12))], [_EndOfScript()])
    run.reflector = Reflector(NODES, run.client, run.inbox, run.time.clock, raw)
    assert await run.arrived() == (["+a"] if change == "ADDED" else ["+a", "-a"]) + ["+b"]
    assert run.watched_from() == ["10", "12"]
    assert (raw.get("a") is None) == (change == "DELETED")
