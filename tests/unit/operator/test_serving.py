"""Health, metrics and configuration over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator

import aiohttp
import pytest

from scheduler.operator.metrics import Metrics
from scheduler.operator.serving import Checks, Server, ServingOptions
from tests.support.fake_api import FakeTime


class _Served:
    def __init__(self) -> None:
        self.is_ready = False
        self.server = Server(
            ServingOptions(bind_address="127.0.0.1", port=0),
            Metrics(FakeTime().monotonic),
            Checks(
                live={"ping": lambda: True},
                ready={"ping": lambda: True, "informer-sync": lambda: self.is_ready},
            ),
            lambda: {"kubescheduler.config.k8s.io": {"profiles": [{"schedulerName": "stowage"}]}},
        )

    async def get(self, path: str) -> tuple[int, str]:
        url = f"http://127.0.0.1:{self.server.port}{path}"
        async with aiohttp.ClientSession() as session, session.get(url) as response:
            return response.status, await response.text()


@pytest.fixture
async def served() -> AsyncIterator[_Served]:
    served = _Served()
    await served.server.start()
    yield served
    await served.server.stop()


@pytest.mark.parametrize("path", ["/healthz", "/livez"])
async def test_a_live_process_says_ok(served: _Served, path: str) -> None:
    assert await served.get(path) == (200, "ok")


async def test_readiness_waits_for_the_first_lists(served: _Served) -> None:
    status, text = await served.get("/readyz")
    assert status == 500
    assert text == "[+]ping ok\n[-]informer-sync failed\nreadyz check failed\n"
    served.is_ready = True
    assert await served.get("/readyz") == (200, "ok")


async def test_verbose_names_every_check(served: _Served) -> None:
    served.is_ready = True
    _, text = await served.get("/readyz?verbose")
    assert text == "[+]ping ok\n[+]informer-sync ok\nreadyz check passed\n"


async def test_metrics_are_exposed_as_text(served: _Served) -> None:
    status, text = await served.get("/metrics")
    assert status == 200
    assert "scheduler_scheduling_algorithm_duration_seconds_bucket" in text


async def test_the_configuration_is_shown(served: _Served) -> None:
    _, text = await served.get("/configz")
    assert text == '{"kubescheduler.config.k8s.io":{"profiles":[{"schedulerName":"stowage"}]}}'
