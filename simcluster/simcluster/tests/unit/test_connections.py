"""Limits of the HTTP server, and its shutdown."""

from __future__ import annotations

import asyncio
import resource
from unittest.mock import Mock

from aiohttp import web

from simcluster.apiserver.connections import HttpServer, InFlight, make_room_for_connections


async def _answer(_request: web.BaseRequest) -> web.Response:
    return web.Response()


async def test_a_connection_that_completes_after_shutdown_is_closed() -> None:
    server = HttpServer(_answer, max_connections=2)
    kept, ended = Mock(spec=asyncio.Transport), Mock(spec=asyncio.Transport)
    server.connection_made(server(), kept)
    assert len(server.connections) == 1
    await server.shutdown(0.0)
    server.connection_made(server(), ended)
    assert server.connections == []
    assert ended.abort.called
    assert not kept.abort.called


async def test_a_connection_above_the_limit_is_marked_until_it_closes() -> None:
    server = HttpServer(_answer, max_connections=1)
    handlers = [server() for _ in range(3)]
    for handler in handlers[:2]:
        server.connection_made(handler, Mock(spec=asyncio.Transport))
    assert [server.is_refused(handler) for handler in handlers[:2]] == [False, True]
    for handler in handlers[:2]:
        server.connection_lost(handler)
    server.connection_made(handlers[2], Mock(spec=asyncio.Transport))
    assert not server.is_refused(handlers[2])
    assert not server.is_refused(handlers[1])
    await server.shutdown(0.0)


def test_a_watch_does_not_count_as_a_request_in_flight() -> None:
    in_flight, seen = InFlight(1), []
    with in_flight.counted():
        seen.append(in_flight.is_full)
        with in_flight.left_out():
            seen.append(in_flight.is_full)
        seen.append(in_flight.is_full)
    seen.append(in_flight.is_full)
    assert seen == [True, False, True, False]


def test_the_connection_limit_is_below_the_open_file_limit() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        assert make_room_for_connections(8) == 8
        if hard != resource.RLIM_INFINITY:
            assert make_room_for_connections(hard * 2) < hard
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
