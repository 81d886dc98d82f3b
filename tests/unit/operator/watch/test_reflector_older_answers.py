"""Reflectors ignore answers from the past, unless the server was restored from a backup."""

from __future__ import annotations

from typing import Any

from structlog.testing import capture_logs

from stowage.api.reflected_kinds import NODES
from stowage.operator.client.api_error import ApiError
from stowage.operator.watch.list_age import MAX_STALE_LISTS, STALE_LISTS_BEFORE_QUESTION
from stowage.operator.watch.reflector import Reflector
from tests.support.fake_api import FakeApiClient
from tests.unit.operator.watch.scripted_reflector import (
    GONE,
    EndOfScript,
    ScriptedReflector,
    list_json,
    node_json,
    watch_line,
)


async def test_a_version_newer_than_the_api_server_is_relisted() -> None:
    error = ApiError(504, "Timeout", "Too large resource version: 10, current: 3")
    run = ScriptedReflector([list_json(), list_json(node_json("a"), version=3)], [[error]])
    assert await run.arrived() == ["+a"]
    assert run.watched_from() == ["10", "3"]


async def test_a_list_older_than_a_seen_version_is_ignored() -> None:
    gone = ApiError(410, "Expired")
    run = ScriptedReflector(
        [list_json(node_json("a")), list_json(version=9), list_json(node_json("b"), version=12)],
        [[gone]],
    )
    assert await run.arrived() == ["+a", "+b", "-a"]
    assert run.watched_from() == ["10", "12"]


async def test_an_older_list_is_accepted_after_several_attempts() -> None:
    gone = ApiError(410, "Expired")
    old = [list_json(version=9)] * (MAX_STALE_LISTS + 1)
    run = ScriptedReflector([list_json(node_json("a")), *old], [[gone]])
    with capture_logs() as lines:
        assert await run.arrived() == ["+a", "-a"]
    assert [line for line in lines if line["event"] == "believes an old list"] == [
        {
            "event": "believes an old list",
            "kind": "Node",
            "resource_version": "9",
            "log_level": "warning",
        }
    ]
    assert run.watched_from() == ["10", "9"]


TOO_LARGE = ApiError(504, "Timeout", "Too large resource version: 12, current: 5")


def _restored_run(
    lists: list[Any], watch: list[Any], answer: Any
) -> tuple[ScriptedReflector, list[str]]:
    """A reflector that watches, loses the watch, and asks whether the server was restored."""
    run, told = ScriptedReflector([], []), list[str]()
    run.client = FakeApiClient(get=lists, watch=[watch, [EndOfScript()]], ask=[answer])
    run.reflector = Reflector(
        NODES, run.client, run.inbox, run.time.clock, on_restored=lambda: told.append("restored")
    )
    return run, told


async def test_a_restored_server_is_believed_at_once_and_nothing_known_before_remains() -> None:
    added = watch_line("ADDED", node_json("c", version=12))
    back = list_json(node_json("a", version=3), version=5)
    run, told = _restored_run(
        [list_json(node_json("a"), node_json("b")), back], [added, TimeoutError()], TOO_LARGE
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
    run, told = _restored_run(
        [list_json(node_json("a")), list_json(version=1)], [OSError()], TOO_LARGE
    )
    assert await run.arrived() == ["+a", "-a"]
    assert told == ["restored"]


async def test_changes_after_a_restore_are_handled_although_their_versions_were_seen() -> None:
    run, _ = _restored_run(
        [list_json(node_json("a")), list_json(version=5)], [OSError()], TOO_LARGE
    )
    changes = [
        watch_line("ADDED", node_json("b", version=6)),
        watch_line("DELETED", node_json("b", version=7)),
    ]
    run.client.script("WATCH", [OSError()], changes, [EndOfScript()])
    assert await run.arrived() == ["+a", "-a", "+b", "-b"]


async def test_a_server_that_lags_behind_another_one_was_not_restored() -> None:
    """Several API servers: one has not reached the version yet, but its list is a quorum read."""
    run, told = _restored_run(
        [list_json(node_json("a")), list_json(node_json("b"), version=12)], [OSError()], TOO_LARGE
    )
    assert await run.arrived() == ["+a", "+b", "-a"]
    assert told == []


async def test_a_restored_server_is_asked_when_a_new_leader_finds_its_lists_too_old() -> None:
    """The list of a new leader comes before the watch would have resumed with a question."""
    back = list_json(version=5)
    run, told = _restored_run(
        [list_json(node_json("a")), back, back, back], [watch_line("ERROR", GONE)], TOO_LARGE
    )
    assert await run.arrived() == ["+a", "-a"]
    assert told == ["restored"]
    assert [each.method for each in run.client.requests] == [
        *("GET", "WATCH", "GET", "GET"),
        *("ASK", "GET", "WATCH"),
    ]


async def test_versions_of_a_kind_that_has_a_store_of_its_own_are_not_compared() -> None:
    """Leases may be in another etcd than nodes: with a higher revision, which nodes never reach."""
    run, told = _restored_run([list_json(node_json("a"))], [EndOfScript()], TOO_LARGE)
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
    first = [list_json(node_json("a"))] * (STALE_LISTS_BEFORE_QUESTION + 1)
    past, now = list_json(version=5), list_json(node_json("a"), version=12)
    run, told = _restored_run([*first, past, now], [watch_line("ERROR", GONE)], TOO_LARGE)
    run.reflector.refresh(at_least=1000)
    assert await run.arrived() == ["+a"]
    assert told == []
    assert run.watched_from() == ["10", "12"]


async def test_an_old_list_of_a_server_that_was_not_restored_is_ignored() -> None:
    old, new = list_json(version=5), list_json(node_json("a"), version=12)
    run, told = _restored_run(
        [list_json(node_json("a")), old, new], [watch_line("ERROR", GONE)], {}
    )
    assert await run.arrived() == ["+a"]
    assert run.watched_from() == ["10", "12"]
    assert told == []


async def test_the_version_is_asked_for_only_after_a_watch_that_ended_early_or_without_data() -> (
    None
):
    run = ScriptedReflector([list_json()], [])
    event, bookmark = (
        watch_line("ADDED", node_json("a", version=11)),
        watch_line("BOOKMARK", {"metadata": {"resourceVersion": "11"}}),
    )
    in_time = run.passes(90.0)
    run.client.script(
        "WATCH",
        [event, in_time],  # as usual
        [bookmark, in_time],  # as usual
        [in_time],  # silent, as from a version of the future
        [event],  # ended early, as by a server that ends
        [event, OSError()],
        [EndOfScript()],
    )
    await run.arrived()
    methods = [request.method for request in run.client.requests]
    assert methods == ["GET", *["WATCH"] * 3, *["ASK", "WATCH"] * 3]


async def test_an_unanswered_question_is_asked_again_before_the_watch() -> None:
    run, told = _restored_run([list_json(node_json("a"))], [OSError()], None)
    run.client.script("ASK", OSError(), {})
    assert await run.arrived() == ["+a"]
    methods = [request.method for request in run.client.requests]
    assert methods == ["GET", "WATCH", "ASK", "ASK", "WATCH"]
    assert told == []
