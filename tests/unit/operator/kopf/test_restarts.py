"""Kopf is started again whenever it ends, when it is asked to, and when it requests nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import kopf
import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs
from yarl import URL

from stowage.operator.client.connection import Connection
from stowage.operator.client.outage_log import OutageLog
from stowage.operator.client.timeouts import Timeouts
from stowage.operator.kopf.runner import STABLE_AFTER_S, KopfRunner, WatchSpec
from stowage.operator.kopf.settings import pod_watching_settings
from tests.support.fake_api import FakeTime, no_jitter
from tests.unit.operator.tasks import let_tasks_run

REQUEST_S = 17.0


class _Connection:
    """A connection that sends nothing."""

    server = "https://api.example.com"
    timeouts = Timeouts(request_s=REQUEST_S)

    def __init__(self) -> None:
        self.outages = OutageLog("api.example.com")


async def _pass_on(request: Any, handler: Any) -> Any:
    return await handler(request)


class _Kopfs:
    """A runner, and the Kopfs that it starts: each one waits until the test ends it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, namespace: str | None = None) -> None:
        self.connection, self.time = _Connection(), FakeTime()
        self.events: list[tuple[str | None, Any]] = []
        self.started: list[dict[str, Any]] = []
        self.ends: list[asyncio.Event] = []
        self.num_installed = 0
        self.is_idle_after_all = False
        spec = WatchSpec(
            "pods", pod_watching_settings("", no_jitter), self._take, _pass_on, namespace
        )
        clock = replace(self.time.clock, sleep=self._sleep)
        connection = cast("Connection", self.connection)
        self.runner = KopfRunner(connection, spec, self._after_start, clock)
        monkeypatch.setattr(kopf, "spawn_tasks", self._spawn)

    async def run(self, *steps: Callable[[], None]) -> list[dict[str, Any]]:
        """The log lines of a runner, with these steps one after the other."""
        with capture_logs() as logs:
            running = asyncio.create_task(self.runner.run())
            for step in steps:
                await let_tasks_run()
                step()
            await let_tasks_run()
            running.cancel()
            await asyncio.wait([running])
        return [dict(line) for line in logs]

    def end(self) -> None:
        """The Kopf that runs ends with an error."""
        self.ends[-1].set()

    def _after_start(self) -> None:
        self.num_installed += 1

    def _take(self, event_type: str | None, found: dict[str, Any]) -> None:
        self.events.append((event_type, found))

    async def _sleep(self, seconds: float) -> None:
        if seconds == REQUEST_S and not self.is_idle_after_all:
            await asyncio.Event().wait()
        await self.time.sleep(seconds)

    async def _spawn(self, **options: Any) -> list[asyncio.Task[None]]:
        self.started.append(options)
        end = asyncio.Event()
        self.ends.append(end)
        return [asyncio.create_task(_kopf(end)), asyncio.create_task(_another())]


async def _another() -> None:
    await asyncio.Event().wait()


async def _kopf(end: asyncio.Event) -> None:
    await end.wait()
    raise RuntimeError("the resource is not served")


async def test_a_kopf_that_ends_is_started_again_after_longer_and_longer_pauses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    it = _Kopfs(monkeypatch)
    logs = await it.run(it.end, it.end, it.end)
    assert len(it.started) == it.num_installed == 4
    assert it.time.slept == [0.5, 1.0, 2.0]
    ended = {"event": "kopf ended, starting it again", "log_level": "warning"}
    assert logs == [ended | {"errors": ["RuntimeError('the resource is not served')"]}] * 3


async def test_after_a_minute_without_a_failure_pauses_begin_with_the_shortest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    it, loop = _Kopfs(monkeypatch), asyncio.get_running_loop()

    def end_later() -> None:
        later = loop.time() + STABLE_AFTER_S + 1.0
        monkeypatch.setattr(loop, "time", lambda: later)
        it.end()

    await it.run(it.end, it.end, end_later)
    assert it.time.slept == [0.5, 1.0, 0.5]


async def test_in_an_outage_the_log_of_outages_says_why_kopf_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    it = _Kopfs(monkeypatch)
    it.connection.outages.note_failure(TimeoutError())
    assert await it.run(it.end) == []
    assert len(it.started) == 2


async def test_on_request_kopf_lists_again_without_a_pause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    it = _Kopfs(monkeypatch)
    logs = await it.run(it.end, it.runner.restart, it.end)
    assert len(it.started) == 4
    assert it.time.slept == [0.5, 0.5]
    again = {"event": "watching again on request", "log_level": "info", "resource": "pods"}
    assert [line for line in logs if line["log_level"] == "info"] == [again]


async def test_after_a_request_to_list_again_pauses_begin_with_the_shortest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    it = _Kopfs(monkeypatch)
    await it.run(it.end, it.end, it.runner.restart, it.end)
    assert it.time.slept == [0.5, 1.0, 0.5]


async def test_a_kopf_that_requests_nothing_is_started_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It discovers the served resources once, and accepts whatever answer it gets."""
    it = _Kopfs(monkeypatch)
    it.is_idle_after_all = True
    it.time.on_sleep = lambda: setattr(it, "is_idle_after_all", False)
    silent, _ = await it.run()
    assert silent == {
        "event": "kopf does not watch",
        "log_level": "warning",
        "resource": "pods",
    }
    assert len(it.started) == 2


@pytest.mark.parametrize(
    ("namespace", "clusterwide", "namespaces"),
    [(None, True, ()), ("stowage-system", False, ("stowage-system",))],
)
async def test_kopf_watches_one_namespace_or_all(
    namespace: str | None,
    clusterwide: bool,
    namespaces: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    it = _Kopfs(monkeypatch, namespace)
    await it.run()
    (options,) = it.started
    assert (options["clusterwide"], options["namespaces"]) == (clusterwide, namespaces)
    assert options["standalone"]


async def test_the_end_of_kopf_ends_the_requests_that_it_leaves_running(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Kopf's discovery goes on when Kopf is cancelled, and then fails without its session."""
    kopfs = _Kopfs(monkeypatch)
    left: list[asyncio.Task[Any]] = []

    async def no_answer(_request: Any) -> Any:
        await asyncio.Event().wait()

    def discover() -> None:
        request = cast("Any", SimpleNamespace(url=URL("/apis/apps/v1")))
        asking = kopfs.runner._check_answer(request, no_answer)  # noqa: SLF001
        left.append(asyncio.get_running_loop().create_task(cast("Any", asking)))

    assert await kopfs.run(discover) == []
    (request,) = left
    assert request.cancelled()
