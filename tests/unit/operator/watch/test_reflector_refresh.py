"""A refresh, or the return of the API server, ends what a reflector waits for."""

from __future__ import annotations

import asyncio

import pytest

from stowage.api.reflected_kinds import NODES
from stowage.operator.client.api_error import ApiError
from stowage.operator.clock import Clock
from stowage.operator.watch.reflector import Reflector
from tests.support.fake_api import SILENCE, FakeApiClient, no_jitter
from tests.unit.operator.tasks import let_tasks_run
from tests.unit.operator.watch.scripted_reflector import (
    EndOfScript,
    ScriptedReflector,
    brief,
    list_json,
    node_json,
)


async def _refreshed(run: ScriptedReflector) -> list[str]:
    """Run the reflector, request a refresh, and return the events that follow it."""
    running = asyncio.create_task(run.reflector.run())
    await let_tasks_run()
    run.inbox.drain(limit=100)
    run.reflector.refresh()
    with pytest.raises(EndOfScript):
        await running
    assert run.reflector.is_fresh
    return [brief(event) for event in run.inbox.drain(limit=100)]


async def test_a_refresh_ends_a_silent_watch_and_lists_again() -> None:
    run = ScriptedReflector(
        [list_json(node_json("a")), list_json(node_json("b"), version=50)], [[SILENCE]]
    )
    assert await _refreshed(run) == ["+b", "-a"]
    assert run.watched_from() == ["10", "50"]
    # A quorum read: the watch cache of the API server may be as old as the objects here.
    assert all("resourceVersion" not in request.params for request in run.requests("GET"))


async def test_a_list_request_sent_before_a_refresh_is_sent_again() -> None:
    run = ScriptedReflector([SILENCE, list_json(node_json("a"))], [])
    assert await _refreshed(run) == ["+a"]


async def test_a_list_answered_just_before_a_refresh_does_not_count() -> None:
    run = ScriptedReflector([list_json(node_json("a")), list_json(node_json("b"))], [[SILENCE]])
    running = asyncio.create_task(run.reflector.run())
    await asyncio.sleep(0)
    assert len(run.requests("GET")) == 1
    run.reflector.refresh()
    with pytest.raises(EndOfScript):
        await running
    assert len(run.requests("GET")) == 2
    assert run.reflector.is_fresh


async def test_a_refresh_ends_a_backoff_and_resets_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = ScriptedReflector([*[ApiError(503)] * 9, ApiError(503), list_json()], [])
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
    with pytest.raises(EndOfScript):
        await running
    assert run.time.slept[8:] == [30.0, 0.2]


async def test_a_refresh_before_the_first_list_needs_no_second_list() -> None:
    run = ScriptedReflector([list_json(node_json("a"))], [])
    run.reflector.refresh()
    assert await run.arrived() == ["+a"]
    assert len(run.requests("GET")) == 1
    assert run.reflector.is_fresh


async def test_a_refresh_is_pending_until_a_whole_list_was_read() -> None:
    run = ScriptedReflector(
        [
            list_json(),
            list_json(node_json("a"), more="next"),
            TimeoutError(),
            list_json(node_json("b")),
        ],
        [[SILENCE]],
    )
    run.time.on_sleep = lambda: unready.append(run.reflector.is_fresh)
    unready: list[bool] = []
    assert await _refreshed(run) == ["+a", "+b", "-a"]
    assert unready == [False]


async def test_two_refreshes_at_once_cause_one_list() -> None:
    run = ScriptedReflector([list_json(), list_json(version=50)], [[SILENCE]])
    running = asyncio.create_task(run.reflector.run())
    await let_tasks_run()
    run.reflector.refresh()
    run.reflector.refresh()
    with pytest.raises(EndOfScript):
        await running
    assert len(run.requests("GET")) == 2


async def test_a_reflector_can_be_cancelled_while_it_refreshes() -> None:
    run = ScriptedReflector([list_json(), SILENCE], [[SILENCE]])
    running = asyncio.create_task(run.reflector.run())
    await let_tasks_run()
    run.reflector.refresh()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def _watching(run: ScriptedReflector) -> asyncio.Task[None]:
    """Run the reflector until its only watch is silent."""
    run.client = FakeApiClient(get=[list_json(node_json("a"))], watch=[[SILENCE], [EndOfScript()]])
    run.reflector = Reflector(NODES, run.client, run.inbox, run.time.clock)
    running = asyncio.create_task(run.reflector.run())
    await let_tasks_run()
    assert run.requests("WATCH")
    return running


async def test_a_silent_watch_is_restarted_when_the_api_server_is_back() -> None:
    run = ScriptedReflector([], [])
    running = await _watching(run)
    run.time.now += 7.0
    run.reflector.reconnect(unresponsive_since=run.time.now - 6.0)
    with pytest.raises(EndOfScript):
        await running
    assert run.watched_from() == ["10", "10"]
    assert len(run.requests("GET")) == 1


@pytest.mark.parametrize("unresponsive_since", [None, 900.0], ids=["never silent", "active since"])
async def test_a_watch_that_was_active_since_is_not_restarted(
    unresponsive_since: float | None,
) -> None:
    run = ScriptedReflector([], [])
    running = await _watching(run)
    run.reflector.reconnect(unresponsive_since)
    await let_tasks_run()
    assert len(run.requests("WATCH")) == 1
    running.cancel()


async def test_a_backoff_ends_when_the_api_server_is_back() -> None:
    run = ScriptedReflector([], [])
    client = FakeApiClient(get=[OSError(), list_json(node_json("a"))], watch=[[EndOfScript()]])
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)
        await asyncio.Event().wait()

    reflector = Reflector(NODES, client, run.inbox, Clock(jitter=no_jitter, sleep=pause))
    running = asyncio.create_task(reflector.run())
    await let_tasks_run()
    assert pauses
    reflector.reconnect(None)
    with pytest.raises(EndOfScript):
        await running
    assert [brief(event) for event in run.inbox.drain(limit=100)] == ["+a"]
