"""Cache sync: first lists handled by the engine, and lists that are newer than the lease."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from structlog.testing import capture_logs

from stowage.api.events import PendingPodGone
from stowage.api.reflected_kinds import NODES
from stowage.operator.inbox import Inbox
from stowage.operator.loop import MAX_EVENTS_AT_ONCE
from stowage.operator.watch.cache_sync import CacheSync
from stowage.operator.watch.reflector import Reflector
from tests.support.fake_api import SILENCE, FakeApiClient, FakeTime
from tests.unit.operator.tasks import let_tasks_run

NUM_NODES = MAX_EVENTS_AT_ONCE + 1


def _nodes() -> dict[str, Any]:
    items = [{"metadata": {"name": f"n{n}", "uid": f"uid-{n}"}} for n in range(NUM_NODES)]
    return {"metadata": {"resourceVersion": "10"}, "items": items}


class _NodeSync:
    """The cache sync of one reflector of nodes."""

    def __init__(self, *lists: Any, needs_refresh: bool = True) -> None:
        self.inbox = Inbox()
        self.client = FakeApiClient(get=list(lists), watch=[[SILENCE]])
        self.reflector = Reflector(NODES, self.client, self.inbox, FakeTime().clock)
        to_refresh = [self.reflector] if needs_refresh else []
        self.sync = CacheSync(self.inbox, lambda: self.reflector.has_synced, to_refresh)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        running = asyncio.create_task(self.reflector.run())
        await let_tasks_run()
        yield
        running.cancel()

    def handle_one_slice(self) -> None:
        self.inbox.drain(MAX_EVENTS_AT_ONCE)


async def test_first_lists_are_complete_once_the_engine_has_handled_all_events() -> None:
    nodes = _NodeSync(_nodes(), needs_refresh=False)
    assert not nodes.sync.is_complete()
    async with nodes.running():
        assert nodes.reflector.has_synced
        nodes.handle_one_slice()
        assert not nodes.sync.is_complete()
        assert not nodes.sync.is_current()
        nodes.handle_one_slice()
        assert nodes.sync.is_complete()
        assert nodes.sync.is_current()


async def test_complete_caches_are_current_once_a_refresh_was_handled() -> None:
    nodes = _NodeSync(_nodes())
    async with nodes.running():
        nodes.inbox.drain(NUM_NODES)
        assert nodes.sync.is_complete()
        assert not nodes.sync.is_current()
        with capture_logs() as lines:
            nodes.sync.refresh(at_least=10)
        text = "listing again before scheduling"
        assert lines == [{"event": text, "kinds": ["Node"], "log_level": "info"}]
        assert not nodes.sync.is_current()
        await let_tasks_run()
        nodes.handle_one_slice()
        assert not nodes.sync.is_current()
        nodes.handle_one_slice()
        assert nodes.sync.is_current()
        assert len(nodes.client.sent("GET")) == 2


async def test_caches_are_not_current_while_the_new_list_is_missing() -> None:
    nodes = _NodeSync(_nodes(), SILENCE)
    async with nodes.running():
        nodes.inbox.drain(NUM_NODES)
        nodes.sync.refresh(at_least=10)
        await let_tasks_run()
        assert len(nodes.inbox) == 0
        assert not nodes.sync.is_current()


async def test_a_list_older_than_the_lease_does_not_count() -> None:
    nodes = _NodeSync(_nodes(), _nodes(), SILENCE)
    async with nodes.running():
        nodes.inbox.drain(NUM_NODES)
        nodes.sync.refresh(at_least=11)
        await let_tasks_run()
        assert len(nodes.client.sent("GET")) == 3
        assert not nodes.sync.is_current()


async def test_a_first_list_after_the_lease_was_taken_needs_no_refresh() -> None:
    nodes = _NodeSync(_nodes())
    nodes.sync.refresh(at_least=10)
    async with nodes.running():
        nodes.inbox.drain(NUM_NODES)
        assert nodes.sync.is_current()
        assert len(nodes.client.sent("GET")) == 1


async def test_current_caches_stay_current_when_events_arrive() -> None:
    nodes = _NodeSync(_nodes(), needs_refresh=False)
    async with nodes.running():
        nodes.inbox.drain(NUM_NODES)
        assert nodes.sync.is_current()
        nodes.inbox.put(PendingPodGone("d", "p", "u"))
        assert nodes.sync.is_current()
