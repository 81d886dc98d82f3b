"""Timeouts of watch requests of the API client."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from stowage.operator.client.api_client import ApiClient
from stowage.operator.client.connection import Connection
from stowage.operator.client.outage_log import OutageLog
from stowage.operator.client.timeouts import Timeouts


class _NoResponse:
    """A request that never gets response headers."""

    async def __aenter__(self) -> Any:
        await asyncio.Event().wait()

    async def __aexit__(self, *_error: object) -> None:
        raise AssertionError("the response was never opened")


async def test_a_watch_without_response_headers_ends_after_the_request_timeout() -> None:
    session = SimpleNamespace(get=lambda *_arguments, **_options: _NoResponse())
    timeouts = Timeouts(request_s=0.0, watch_idle_s=3600.0)
    dropped: list[bool] = []
    connection = SimpleNamespace(
        session=session,
        timeouts=timeouts,
        outages=OutageLog("model"),
        server="http://model",
        drop_idle=lambda: dropped.append(True),
    )
    client = ApiClient(cast("Connection", connection))
    with pytest.raises(TimeoutError):
        async for _ in client.stream("/api/v1/nodes", {}, timeouts.watch_idle_s):
            pass
    assert dropped
