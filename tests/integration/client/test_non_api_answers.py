"""Answers of proxies are not treated as answers of the API server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from stowage.operator.client.api_client import ApiClient
from stowage.operator.client.api_error import MAX_RETRY_AFTER_S, ApiError
from stowage.operator.client.connection import Connection
from stowage.operator.client.outage_log import OutageLog
from stowage.operator.client.timeouts import Timeouts
from stowage.operator.kopf.runner import KopfRunner, WatchSpec
from stowage.operator.kopf.settings import pod_watching_settings
from tests.support.fake_api import FakeTime, no_jitter


def _login_page(_request: web.Request) -> web.Response:
    return web.Response(text="<html>please log in</html>", content_type="text/html")


def _redirect(_request: web.Request) -> web.Response:
    return web.Response(status=302, headers={"Location": "/login"})


def _retry_after_a_day(_request: web.Request) -> web.Response:
    return web.Response(status=429, headers={"Retry-After": "86400"})


class _Connection:
    """A connection without TLS and credentials."""

    direct_writes = None

    def __init__(self, url: str, session: aiohttp.ClientSession) -> None:
        self.server, self.session, self.timeouts = url, session, Timeouts()
        self.outages = OutageLog(url)
        self.generation = 0

    def drop_idle(self) -> None:
        raise AssertionError("everything is answered in time")

    async def reload(self, _generation: int) -> None:
        pass

    def new_session(self, middlewares: Any) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(middlewares=middlewares)


@asynccontextmanager
async def _served(answer: Callable[[web.Request], web.Response]) -> AsyncIterator[_Connection]:
    async def handle(request: web.Request) -> web.Response:
        return answer(request)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handle)
    async with TestServer(app) as server, aiohttp.ClientSession() as session:
        yield _Connection(str(server.make_url("")).rstrip("/"), session)


async def _ask(client: ApiClient, method: str) -> None:
    if method == "post":
        await client.post("/api/v1/namespaces/d/pods/p/binding", b"{}")
    elif method == "get":
        await client.get("/api/v1/pods")
    else:
        async for _ in client.stream("/api/v1/pods", {"watch": "true"}, 1.0):
            pass


@pytest.mark.parametrize("answer", [_login_page, _redirect])
@pytest.mark.parametrize("method", ["post", "get", "watch"])
async def test_html_pages_and_redirects_are_transient_errors(
    answer: Callable[[web.Request], web.Response], method: str
) -> None:
    async with _served(answer) as connection:
        with pytest.raises(ApiError) as refusal:
            await _ask(ApiClient(cast("Connection", connection)), method)
    assert refusal.value.is_transient
    assert refusal.value.may_have_been_done


def _runner(connection: _Connection, time: FakeTime) -> KopfRunner:
    async def forward(
        request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        return await handler(request)

    settings = pod_watching_settings("spec.nodeName=", no_jitter)
    watched = WatchSpec("pods", settings, lambda _type, _object: None, forward)
    return KopfRunner(cast("Connection", connection), watched, lambda: None, time.clock)


@pytest.mark.parametrize("answer", [_login_page, _redirect])
async def test_kopf_gets_a_connection_error_for_html_pages_and_redirects(
    answer: Callable[[web.Request], web.Response],
) -> None:
    async with _served(answer) as connection:
        runner = _runner(connection, FakeTime())
        session = (await runner.login()).aiohttp_session
        with pytest.raises(aiohttp.ClientConnectionError):
            await session.get(f"{connection.server}/api/v1/pods")
        await session.close()
    assert runner.has_failing_requests


async def test_kopf_waits_no_longer_than_the_maximum_retry_after() -> None:
    time = FakeTime()
    async with _served(_retry_after_a_day) as connection:
        session = (await _runner(connection, time).login()).aiohttp_session
        with pytest.raises(aiohttp.ClientConnectionError):
            await session.get(f"{connection.server}/api/v1/pods")
        await session.close()
    assert time.slept == [MAX_RETRY_AFTER_S]


async def test_kopf_logins_back_off() -> None:
    time = FakeTime()
    runner = _runner(_Connection("http://model", cast("aiohttp.ClientSession", None)), time)
    for _ in range(6):
        await (await runner.login()).aiohttp_session.close()
    assert time.slept == [0.1, 0.2, 0.4, 0.8, 1.6]


async def test_kopf_is_restarted_when_it_does_not_begin_to_watch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[asyncio.Task[None]] = []
    enough = asyncio.Event()

    async def spawn_tasks(**_options: Any) -> list[asyncio.Task[None]]:
        started.append(asyncio.create_task(cast("Any", asyncio.Event().wait())))
        if len(started) == 3:
            enough.set()
            await asyncio.Event().wait()
        return [started[-1]]

    monkeypatch.setattr("stowage.operator.kopf.runner.kopf.spawn_tasks", spawn_tasks)
    time = FakeTime()
    connection = SimpleNamespace(timeouts=Timeouts(request_s=30.0), outages=OutageLog("model"))
    running = asyncio.create_task(_runner(cast("_Connection", connection), time).run())
    await asyncio.wait_for(enough.wait(), timeout=10.0)
    running.cancel()
    assert time.slept == [30.0, 0.5, 30.0, 1.0]
    for task in started:
        task.cancel()
