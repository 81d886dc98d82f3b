"""Reflectors turn lists and watches into events, despite errors and gaps."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs

from stowage.api.events import DeviceObjectGone, DeviceObjectSeen
from stowage.api.objects.device import ResourceSlice
from stowage.api.reflected_kinds import ASSIGNED_PODS, NODES, REFLECTED_KINDS
from stowage.operator.client.api_error import ApiError
from stowage.operator.client.watch_lines import WatchLines
from stowage.operator.extenders.objects import RawObjects
from stowage.operator.inbox import Inbox
from stowage.operator.watch.reflector import UNSERVED_INTERVAL_S, Reflector
from tests.support.fake_api import FakeApiClient, FakeTime
from tests.unit.operator.tasks import let_tasks_run
from tests.unit.operator.watch.scripted_reflector import (
    GONE,
    EndOfScript,
    ScriptedReflector,
    list_json,
    node_json,
    watch_line,
)


async def test_a_list_is_followed_by_a_watch_from_its_version() -> None:
    run = ScriptedReflector(
        [list_json(node_json("a"), node_json("b"))],
        [
            [
                watch_line("ADDED", node_json("c", version=11)),
                watch_line("DELETED", node_json("a", version=12)),
            ]
        ],
    )
    assert await run.arrived() == ["+a", "+b", "+c", "-a"]
    assert run.watched_from() == ["10", "12"]
    assert run.reflector.has_synced


async def test_an_optional_kind_that_is_not_served_counts_as_empty_and_is_asked_for_again() -> None:
    slices = next(kind for kind in REFLECTED_KINDS if kind.type is ResourceSlice)
    found = {"metadata": {"name": "s", "uid": "u", "resourceVersion": "3"}, "spec": {}}
    unserved = ApiError(404, "", "404 page not found")
    client = FakeApiClient(
        get=[unserved, list_json(found), unserved], watch=[[unserved], [EndOfScript()]]
    )
    inbox, time = Inbox(), FakeTime()
    reflector: Reflector[ResourceSlice] = Reflector(slices, client, inbox, time.clock)
    with capture_logs() as lines:
        running = asyncio.create_task(reflector.run())
        await client.has_sent(2)
        assert reflector.has_synced
        assert reflector.num_failures == 0
        await client.has_sent(4)
        await let_tasks_run()
    unserved_lines = [line for line in lines if line["event"] == "not served"]
    about = {"kind": slices.kind, "path": slices.path, "log_level": "info"}
    assert unserved_lines == [{"event": "not served", **about}]
    events = inbox.drain(limit=10)
    assert [type(event) for event in events] == [DeviceObjectSeen, DeviceObjectGone]
    assert time.now >= 1000.0 + 2 * UNSERVED_INTERVAL_S
    running.cancel()


async def test_all_pages_of_a_list_are_read() -> None:
    run = ScriptedReflector([list_json(node_json("a"), more="next"), list_json(node_json("b"))], [])
    assert await run.arrived() == ["+a", "+b"]
    assert [request.params.get("continue") for request in run.requests("GET")] == [None, "next"]


async def test_a_list_starts_again_when_its_continue_token_has_expired() -> None:
    run = ScriptedReflector(
        [
            list_json(node_json("a"), more="next"),
            ApiError(410, "Expired"),
            list_json(node_json("a"), node_json("b")),
        ],
        [],
    )
    assert await run.arrived() == ["+a", "+b"]


@pytest.mark.parametrize(
    "watch",
    [[watch_line("ERROR", GONE)], [ApiError(410, "Expired")]],
    ids=["as an ERROR event", "as a status"],
)
async def test_an_expired_version_is_relisted_and_missing_objects_are_gone(
    watch: list[Any],
) -> None:
    run = ScriptedReflector(
        [list_json(node_json("a"), node_json("b")), list_json(node_json("b"), version=50)], [watch]
    )
    assert await run.arrived() == ["+a", "+b", "-a"]
    assert run.watched_from() == ["10", "50"]


async def test_an_object_replaced_between_two_lists_is_gone_and_seen_again() -> None:
    run = ScriptedReflector(
        [list_json(node_json("a", uid="1")), list_json(node_json("a", uid="2"), version=50)],
        [[watch_line("ERROR", GONE)]],
    )
    assert await run.arrived() == ["+a", "-a", "+a"]


async def test_the_deletion_of_an_object_that_was_never_seen_is_passed_on() -> None:
    removed = watch_line("DELETED", node_json("a", version=11))
    run = ScriptedReflector([list_json()], [[removed]])
    assert await run.arrived() == ["-a"]


async def test_a_deleted_object_is_not_kept_for_extenders() -> None:
    added, removed = (
        watch_line("ADDED", node_json("a", version=11)),
        watch_line("DELETED", node_json("a", version=12)),
    )
    kept, sizes = RawObjects("name"), list[int]()

    def note_size() -> None:
        sizes.append(len(kept))

    watch = [added, note_size, removed, note_size, EndOfScript()]
    client = FakeApiClient(get=[list_json()], watch=[watch])
    reflector = Reflector(NODES, client, Inbox(), FakeTime().clock, kept)
    with pytest.raises(EndOfScript):
        await reflector.run()
    assert sizes == [1, 0]


async def test_a_bookmark_only_advances_the_version() -> None:
    bookmark = {"metadata": {"resourceVersion": "99"}}
    run = ScriptedReflector([list_json()], [[watch_line("BOOKMARK", bookmark)]])
    assert await run.arrived() == []
    assert run.watched_from() == ["10", "99"]


async def test_a_broken_watch_resumes_from_the_last_version() -> None:
    added = watch_line("ADDED", node_json("a", version=11))
    run = ScriptedReflector([list_json()], [[added, TimeoutError()]])
    assert await run.arrived() == ["+a"]
    assert run.watched_from() == ["10", "11"]
    assert len(run.requests("GET")) == 1


async def test_delays_grow_up_to_a_maximum_while_the_api_server_is_away() -> None:
    run = ScriptedReflector([ConnectionRefusedError()] * 12 + [list_json()], [])
    assert await run.arrived() == []
    assert run.time.slept == sorted(run.time.slept)
    assert run.time.slept[-1] == 30.0


@pytest.mark.parametrize(
    ("lists", "watches"),
    [([ApiError(503), ApiError(503), list_json()], []), ([list_json()], [[], []])],
    ids=["after failures", "after watches that end at once"],
)
async def test_each_pause_is_a_line_for_debugging(lists: list[Any], watches: list[Any]) -> None:
    run = ScriptedReflector(lists, watches)
    with capture_logs() as logs:
        await run.arrived()
    pauses = [line for line in logs if line["event"] == "reflector waits"]
    assert [(line["log_level"], line["seconds"]) for line in pauses] == [
        ("debug", 0.2),
        ("debug", 0.4),
    ]
    assert all("503" in line.get("error", "503") for line in pauses)


async def test_retry_after_is_respected() -> None:
    run = ScriptedReflector([ApiError(429, retry_after=12.0), list_json()], [])
    await run.arrived()
    assert run.time.slept == [12.0]


async def test_a_watch_that_ends_at_once_backs_off() -> None:
    run = ScriptedReflector([list_json()], [[], [], []])
    await run.arrived()
    assert run.time.slept == [0.2, 0.4, 0.8]


async def test_an_idle_watch_that_ends_is_opened_again_without_a_failure() -> None:
    """A server may send no bookmarks for a kind that does not change."""
    run = ScriptedReflector([list_json(node_json("a"))], [])
    run.client.script("WATCH", *[[run.passes(60.0)]] * 10, [EndOfScript()])
    assert await run.arrived() == ["+a"]
    assert run.watched_from() == ["10"] * 11
    assert (run.reflector.num_failures, run.reflector.num_lists) == (0, 1)
    assert run.time.slept == []


async def test_an_answered_watch_ends_the_silence() -> None:
    run = ScriptedReflector([list_json(node_json("a"))], [])
    watch = [run.note_silence, run.passes(60.0), run.note_silence]
    run.client.script("WATCH", watch, watch, [run.passes(7.0), EndOfScript()])
    await run.arrived()
    assert run.silences == [0.0, 60.0, 0.0, 60.0]
    assert run.reflector.idle_s == 7.0


async def test_a_watch_without_an_answer_does_not_end_the_silence() -> None:
    run = ScriptedReflector([list_json(node_json("a"))], [[TimeoutError()], [TimeoutError()]])
    await run.arrived()
    assert run.reflector.idle_s == pytest.approx(0.2 + 0.4)


async def test_a_watch_that_is_silent_for_longer_than_its_own_timeout_is_a_failure() -> None:
    run = ScriptedReflector([list_json(node_json("a"))], [])
    run.client.script("WATCH", [run.passes(90.0), TimeoutError()], [EndOfScript()])
    await run.arrived()
    assert run.watched_from() == ["10", "10"]
    assert (run.reflector.num_failures, run.reflector.num_lists) == (1, 1)


async def test_a_server_ends_a_watch_before_the_client_takes_it_for_broken() -> None:
    run = ScriptedReflector([list_json()], [])
    await run.arrived()
    longest_s = int(run.requests("WATCH")[0].params["timeoutSeconds"])
    assert 1 <= longest_s < run.client.timeouts.watch_idle_s - 20.0


async def test_the_selector_limits_lists_and_watches() -> None:
    client = FakeApiClient(get=[list_json()], watch=[[EndOfScript()]])
    reflector = Reflector(ASSIGNED_PODS, client, Inbox(), FakeTime().clock)
    with pytest.raises(EndOfScript):
        await reflector.run()
    selectors = {request.params["fieldSelector"] for request in client.requests}
    assert selectors == {"spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"}


async def test_repeated_events_change_nothing() -> None:
    removed, added = (
        watch_line("DELETED", node_json("a", version=11)),
        watch_line("ADDED", node_json("a", "u2", 12)),
    )
    bad = watch_line("ADDED", node_json("b", version=13, allocatable=7))
    run = ScriptedReflector(
        [list_json(node_json("a"))], [[removed, added, removed, bad, added, bad]]
    )
    assert await run.arrived() == ["+a", "-a", "+a", "!b status.allocatable"]
    assert run.watched_from() == ["10", "13"]


async def test_events_out_of_order_are_all_handled() -> None:
    late, first = (
        watch_line("ADDED", node_json("a", version=11)),
        watch_line("ADDED", node_json("b", version=12)),
    )
    left, back = (
        watch_line("DELETED", node_json("b", version=13)),
        watch_line("ADDED", node_json("b", "u2", 14)),
    )
    run = ScriptedReflector([list_json(node_json("c"))], [[first, late, back, left], [late, first]])
    assert await run.arrived() == ["+c", "+b", "+a", "-b", "+b"]
    assert run.watched_from() == ["10", "14", "14"]


@pytest.mark.parametrize("change", ["BOOKMARK", "ADDED"])
async def test_each_line_of_a_watch_ends_the_silence(change: str) -> None:
    run = ScriptedReflector([list_json(node_json("a"))], [])
    line = watch_line(change, node_json("a", version=12))
    watch = [run.passes(60.0), line, run.note_silence, run.passes(7.0), run.note_silence]
    run.client.script("WATCH", watch, [EndOfScript()])
    await run.arrived()
    assert run.silences == [0.0, 7.0]


async def test_the_delay_starts_over_once_the_api_server_answers() -> None:
    away = [[OSError("refused")]] * 5
    run = ScriptedReflector(
        [list_json(node_json("a")), list_json(node_json("b"), version=50)], [*away, [ApiError(410)]]
    )
    assert await run.arrived() == ["+a", "+b", "-a"]
    assert run.time.slept == [0.2, 0.4, 0.8, 1.6, 3.2, 0.2]


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
