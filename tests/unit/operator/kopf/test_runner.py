"""Kopf gets new credentials after a 401, and only the answers of API servers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import aiohttp
import pytest
from aiohttp.test_utils import make_mocked_request
from kopf._cogs.structs.references import Selector
from yarl import URL

from stowage.operator.client.connection import Connection
from stowage.operator.client.outage_log import SilentOutages
from stowage.operator.client.timeouts import Timeouts
from stowage.operator.kopf.runner import FIRST_LOGIN_PAUSE_S, STABLE_AFTER_S, KopfRunner, WatchSpec
from stowage.operator.kopf.settings import config_map_watching_settings, pod_watching_settings
from tests.support.fake_api import FakeTime, no_jitter


class _Connection:
    """Counts how often the credentials were read again, and keeps the sessions' middlewares."""

    server = "https://api.example.com"
    timeouts = Timeouts()
    generation = 0

    def __init__(self) -> None:
        self.outages = SilentOutages()
        self.middlewares: Sequence[Any] = ()

    async def reload(self, generation: int) -> None:
        assert generation == self.generation
        self.generation += 1

    def new_session(self, middlewares: Sequence[Any]) -> None:
        self.middlewares = middlewares


async def _pass_on(request: Any, handler: Any) -> Any:
    return await handler(request)


class _Runner:
    """A runner with a connection that sends nothing."""

    def __init__(self) -> None:
        self.connection, self.time = _Connection(), FakeTime()
        spec = WatchSpec("pods", pod_watching_settings("", no_jitter), _ignore, _pass_on)
        connection = cast("Connection", self.connection)
        self.runner = KopfRunner(connection, spec, lambda: None, self.time.clock)

    async def answered(self, status: int, content_type: str, **headers: str) -> Any:
        """What Kopf gets when the server answers like this."""
        await self.runner.login()
        _, check = self.connection.middlewares
        answer = _Answer(status, content_type, headers)
        request = make_mocked_request("GET", "/api/v1/pods")

        async def handler(_request: Any) -> Any:
            return answer

        return await check(request, handler)


class _Answer:
    def __init__(self, status: int, content_type: str, headers: dict[str, str]) -> None:
        self.status, self.content_type, self.headers = status, content_type, headers
        self.ok = status < 400

    def close(self) -> None:
        """Nothing is open."""


def _ignore(_kind: str | None, _found: dict[str, Any]) -> None:
    return


async def test_credentials_are_read_again_before_each_login_but_the_first() -> None:
    it = _Runner()
    await it.runner.login()
    assert (it.connection.generation, it.time.slept) == (0, [])
    for number in (1, 2):
        await it.runner.login()
        assert it.connection.generation == number
    assert it.time.slept == [FIRST_LOGIN_PAUSE_S, 2 * FIRST_LOGIN_PAUSE_S]


async def test_the_pauses_between_logins_begin_anew_after_a_minute_without_a_401(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    it, loop = _Runner(), asyncio.get_running_loop()
    for _ in range(3):
        await it.runner.login()
    later = loop.time() + STABLE_AFTER_S + 1.0
    monkeypatch.setattr(loop, "time", lambda: later)
    await it.runner.login()
    assert it.time.slept[-1] == FIRST_LOGIN_PAUSE_S


async def test_an_answer_of_the_api_server_is_passed_on() -> None:
    it = _Runner()
    answer = await it.answered(200, "application/json")
    assert answer.status == 200
    assert not it.runner.has_failing_requests


async def test_a_refusal_is_passed_on_and_noted() -> None:
    it = _Runner()
    answer = await it.answered(403, "application/json")
    assert answer.status == 403
    assert it.runner.has_failing_requests


async def test_an_answer_to_wait_is_a_connection_error_after_the_wait() -> None:
    it = _Runner()
    with pytest.raises(aiohttp.ClientConnectionError, match="no answer of an API server: 429"):
        await it.answered(429, "application/json", **{"Retry-After": "7"})
    assert it.time.slept == [7.0]
    assert it.runner.has_failing_requests


async def test_the_page_of_a_proxy_is_a_connection_error() -> None:
    it = _Runner()
    with pytest.raises(aiohttp.ClientConnectionError, match="no answer of an API server: 200"):
        await it.answered(200, "text/html")
    assert it.time.slept == [0.0]


@pytest.mark.parametrize(("path", "is_limited"), [("pods", False), ("pods?watch=true", True)])
async def test_a_watch_is_opened_within_the_limit_of_a_request_and_a_list_may_take_longer(
    path: str, is_limited: bool
) -> None:
    it = _Runner()
    it.connection.timeouts = Timeouts(request_s=0.0)
    await it.runner.login()
    _, check = it.connection.middlewares

    async def handler(_request: Any) -> Any:
        for _ in range(5):
            await asyncio.sleep(0)
        return _Answer(200, "application/json", {})

    request = SimpleNamespace(method="GET", url=URL(f"http://api/api/v1/{path}"))
    if is_limited:
        with pytest.raises(TimeoutError):
            await check(request, handler)
    else:
        assert (await check(request, handler)).status == 200
    assert it.runner.has_failing_requests == is_limited


def test_one_config_map_is_watched_by_its_name() -> None:
    settings = config_map_watching_settings("stowage-config", no_jitter)
    ((resource, selector),) = settings.watching.field_selectors.items()
    assert isinstance(resource, Selector)
    assert (resource.group, resource.version, resource.any_name) == ("", "v1", "configmaps")
    assert selector == "metadata.name=stowage-config"
