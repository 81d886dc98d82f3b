"""The HTTP server leaves nothing behind when it goes away."""

from __future__ import annotations

import asyncio
from unittest.mock import Mock

from aiohttp import web

from scheduler.cluster.server import _HttpServer


async def _answer(_request: web.BaseRequest) -> web.Response:
    return web.Response()


async def test_a_connection_accepted_before_and_made_after_the_end_is_closed() -> None:
    server = _HttpServer(_answer)
    kept, ended = Mock(spec=asyncio.Transport), Mock(spec=asyncio.Transport)
    server.connection_made(server(), kept)
    assert len(server.connections) == 1
    await server.shutdown(0.0)
    server.connection_made(server(), ended)
    assert server.connections == []
    assert ended.abort.called
    assert not kept.abort.called
