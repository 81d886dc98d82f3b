"""Health, metrics, configuration and state over HTTPS."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from stowage.operator.metrics.scheduler_metrics import Metrics
from stowage.operator.serving.delegated_access import AccessOptions, DelegatedAccess
from stowage.operator.serving.health import Checks
from stowage.operator.serving.server import Content, Server, ServingOptions
from tests.support.fake_api import FakeApiClient, FakeTime

STATE = {"nodes": {"n1": {"pods": []}}, "queue": {"active": []}, "bindings": {}}


class _Served:
    def __init__(self) -> None:
        self.is_ready = False
        self.notes: list[str] = []
        self.may_read = True
        self.client = FakeApiClient(post=[{"status": {"allowed": True}}])
        access = DelegatedAccess(self.client, AccessOptions(), FakeTime().monotonic)
        content = Content(
            metrics=Metrics(FakeTime().monotonic).exposition,
            resource_metrics=lambda: b"kube_pod_resource_request 1\n",
            configz=lambda: {"kubescheduler.config.k8s.io": {"profiles": []}},
            dump=lambda: STATE,
            checks=Checks(
                health={},
                live={},
                ready={"informer-sync": lambda: self.is_ready},
                ready_notes=lambda: self.notes,
            ),
        )
        self.server = Server(ServingOptions(bind_address="127.0.0.1", port=0), content, access)

    async def get(self, path: str) -> tuple[int, str]:
        url = f"https://127.0.0.1:{self.server.port}{path}"
        async with (
            aiohttp.ClientSession() as session,
            session.get(url, ssl=False) as response,
        ):
            return response.status, await response.text()

    async def get_json(self, path: str) -> Any:
        status, text = await self.get(path)
        assert status == 200
        return json.loads(text)


@pytest.fixture
async def served() -> AsyncIterator[_Served]:
    served = _Served()
    await served.server.start()
    yield served
    await served.server.stop()


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/livez/ping"])
async def test_health_endpoints_of_a_live_process_are_ok(served: _Served, path: str) -> None:
    assert await served.get(path) == (200, "ok")


async def test_readyz_fails_until_the_first_lists_are_complete(served: _Served) -> None:
    status, text = await served.get("/readyz")
    assert status == 500
    assert text == "[-]informer-sync failed: reason withheld\nreadyz check failed\n"
    assert (await served.get("/readyz/informer-sync"))[0] == 500
    assert await served.get("/readyz?exclude=informer-sync") == (200, "ok")
    served.is_ready = True
    assert await served.get("/readyz") == (200, "ok")


async def test_a_verbose_readyz_shows_the_notes(served: _Served) -> None:
    served.is_ready, served.notes = True, ["configuration refused"]
    _, text = await served.get("/readyz?verbose")
    assert text == "configuration refused\n[+]informer-sync ok\nreadyz check passed\n"


async def test_metrics_are_exposed_as_text(served: _Served) -> None:
    status, text = await served.get("/metrics")
    assert status == 200
    assert "scheduler_scheduling_algorithm_duration_seconds_bucket" in text
    assert await served.get("/metrics/resources") == (200, "kube_pod_resource_request 1\n")


async def test_configz_shows_the_configuration(served: _Served) -> None:
    assert await served.get_json("/configz") == {"kubescheduler.config.k8s.io": {"profiles": []}}


async def test_debug_endpoints_show_cache_and_queue(served: _Served) -> None:
    assert await served.get_json("/debug/cache") == {"nodes": STATE["nodes"]}
    assert await served.get_json("/debug/queue") == {"queue": {"active": []}, "bindings": {}}


async def test_version_shows_the_version(served: _Served) -> None:
    version = await served.get_json("/version")
    assert version["gitVersion"].startswith(f"v{version['major']}.{version['minor']}.")


async def test_unauthorized_requests_are_403(served: _Served) -> None:
    served.client.script("POST", {"status": {"allowed": False}})
    for path in ("/metrics", "/configz", "/debug/queue", "/nosuch"):
        status, text = await served.get(path)
        assert status == 403
        assert json.loads(text)["message"].endswith(f'cannot get path "{path}"')


async def test_an_unknown_path_is_404(served: _Served) -> None:
    assert (await served.get("/nosuch"))[0] == 404
