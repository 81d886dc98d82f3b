"""No pod is scheduled before the caches have synced, nor with lists older than the lease."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from stowage.api.events import PendingPodGone
from stowage.operator.inbox import Inbox
from stowage.operator.loop import MAX_EVENTS_AT_ONCE
from stowage.operator.watch.cache_sync import CacheSync
from stowage.operator.watch.kinds import NODES
from stowage.operator.watch.reflector import Reflector
from tests.support.fake_api import SILENCE, FakeApiClient, FakeTime

NUM_NODES = MAX_EVENTS_AT_ONCE + 1


def _nodes() -> dict[str, Any]:
    items = [{"metadata": {"name": f"n{n}", "uid": f"uid-{n}"}} for n in range(NUM_NODES)]
    return {"metadata": {"resourceVersion": "10"}, "items": items}


class _Parts:
    """A view of nodes, and what it is made of."""

    def __init__(self, *lists: Any, needs_refresh: bool = True) -> None:
        self.inbox = Inbox()
        self.client = FakeApiClient(get=list(lists), watch=[[SILENCE]])
        self.reflector = Reflector(NODES, self.client, self.inbox, FakeTime().clock)
        to_refresh = [self.reflector] if needs_refresh else []
        self.view = CacheSync(self.inbox, lambda: self.reflector.has_synced, to_refresh)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        running = asyncio.create_task(self.reflector.run())
        await _settle()
        yield
        running.cancel()

    def handle_one_slice(self) -> None:
        self.inbox.drain(MAX_EVENTS_AT_ONCE)


async def _settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_first_lists_count_once_the_engine_has_handled_all_of_them() -> None:
    parts = _Parts(_nodes(), needs_refresh=False)
    assert not parts.view.is_complete()
    async with parts.running():
        assert parts.reflector.has_synced
        parts.handle_one_slice()
        assert not parts.view.is_complete()
        assert not parts.view.is_current()
        parts.handle_one_slice()
        assert parts.view.is_complete()
        assert parts.view.is_current()


async def test_a_complete_view_is_not_current_before_it_was_refreshed_and_handled() -> None:
    parts = _Parts(_nodes())
    async with parts.running():
        parts.inbox.drain(NUM_NODES)
        assert parts.view.is_complete()
        assert not parts.view.is_current()
        parts.view.refresh(at_least=10)
        assert not parts.view.is_current()
        await _settle()
        parts.handle_one_slice()
        assert not parts.view.is_current()
        parts.handle_one_slice()
        assert parts.view.is_current()
        assert len(parts.client.sent("GET")) == 2


async def test_a_view_without_the_list_asked_for_stays_old() -> None:
    parts = _Parts(_nodes(), SILENCE)
    async with parts.running():
        parts.inbox.drain(NUM_NODES)
        parts.view.refresh(at_least=10)
        await _settle()
        assert len(parts.inbox) == 0
        assert not parts.view.is_current()


async def test_a_list_older_than_the_lease_is_not_believed() -> None:
    parts = _Parts(_nodes(), _nodes(), SILENCE)
    async with parts.running():
        parts.inbox.drain(NUM_NODES)
        parts.view.refresh(at_least=11)
        await _settle()
        assert len(parts.client.sent("GET")) == 3
        assert not parts.view.is_current()


async def test_a_first_list_begun_after_the_lease_was_taken_is_the_only_one() -> None:
    parts = _Parts(_nodes())
    parts.view.refresh(at_least=10)
    async with parts.running():
        parts.inbox.drain(NUM_NODES)
        assert parts.view.is_current()
        assert len(parts.client.sent("GET")) == 1


async def test_a_current_view_stays_so_whatever_arrives() -> None:
    parts = _Parts(_nodes(), needs_refresh=False)
    async with parts.running():
        parts.inbox.drain(NUM_NODES)
        assert parts.view.is_current()
        parts.inbox.put(PendingPodGone("d", "p", "u"))
        assert parts.view.is_current()
