"""A cluster is watched with the kubeconfig and the context that were asked for."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any

import pytest

from stowage.api.reflected_kinds import NODES
from stowage.operator import cluster_watch
from stowage.operator.cluster_watch import watch_cluster
from tests.support.fake_api import SILENCE, FakeApiClient, FakeTime
from tests.unit.operator.tasks import let_tasks_run


class _Connection:
    """A connection that sends nothing."""

    def __init__(self) -> None:
        self.is_closed = False

    async def keep_fresh(self) -> None:
        await let_tasks_run()

    async def close(self) -> None:
        self.is_closed = True


async def test_the_context_is_passed_on_and_the_connection_is_closed_at_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    connection, asked = _Connection(), list[tuple[str | None, str | None]]()
    node = {"metadata": {"name": "n", "uid": "u", "resourceVersion": "7"}}
    nodes = {"metadata": {"resourceVersion": "9"}, "items": [node]}
    client = FakeApiClient(get=[nodes], watch=[[SILENCE]])

    async def connect(kubeconfig: str | None, context: str | None = None) -> _Connection:
        asked.append((kubeconfig, context))
        return connection

    async def only_nodes(*_given: Any) -> list[Any]:
        return [NODES]

    monkeypatch.setattr(cluster_watch, "connect", connect)
    monkeypatch.setattr(cluster_watch, "visible_kinds", only_nodes)
    monkeypatch.setattr(cluster_watch, "ApiClient", lambda _connection: client)
    async with AsyncExitStack() as cleanup:
        watch = await cleanup.enter_async_context(
            watch_cluster("config", "blue", lambda _text: None, FakeTime().clock)
        )
        await let_tasks_run()
        assert watch.has_synced
        assert watch.waiting_kinds == []
        assert len(watch.inbox.drain(10)) == 1
    assert asked == [("config", "blue")]
    assert connection.is_closed
