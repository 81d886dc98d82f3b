"""Health, metrics, configuration and state over HTTPS."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from importlib import metadata
from typing import Any

import aiohttp
import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from stowage.operator.decisions.records import DecisionIds
from stowage.operator.decisions.store import DecisionStore
from stowage.operator.logging.verbosity import set_verbosity
from stowage.operator.metrics.scheduler_metrics import Metrics
from stowage.operator.serving import zpages
from stowage.operator.serving.delegated_access import AccessOptions, DelegatedAccess
from stowage.operator.serving.health import Checks
from stowage.operator.serving.server import Content, Server, ServingOptions
from tests.support.decisions import attempt, recorded
from tests.support.fake_api import FakeApiClient, FakeTime
from tests.support.ipv6 import needs_ipv6

STATE = {"nodes": {"n1": {"pods": []}}, "queue": {"active": []}, "bindings": {}}
ANY_PORT = ServingOptions(bind_address="127.0.0.1", port=0)


class _Served:
    def __init__(self, options: ServingOptions = ANY_PORT) -> None:
        self.is_ready = False
        self.decisions = DecisionStore(DecisionIds("p"))
        self.notes: list[str] = []
        self.is_profiling_enabled = False
        self.time = FakeTime()
        self.client = FakeApiClient(post=[{"status": {"allowed": True}}])
        access = DelegatedAccess(self.client, AccessOptions(), FakeTime().monotonic)
        content = Content(
            metrics=Metrics(FakeTime().monotonic).exposition,
            resource_metrics=lambda: b"kube_pod_resource_request 1\n",
            configz=lambda: {"componentconfig": {"profiles": []}},
            flags={"v": "0", "secure-port": "10259"},
            is_profiling_enabled=lambda: self.is_profiling_enabled,
            clock=self.time.clock,
            dump=lambda: STATE,
            decisions=self.decisions,
            checks=Checks(
                health={},
                live={},
                ready={"informer-sync": lambda: self.is_ready},
                ready_notes=lambda: self.notes,
            ),
        )
        self.server = Server(options, content, access)

    async def get(self, path: str, host: str = "127.0.0.1", **headers: str) -> tuple[int, str]:
        return await self.request("GET", path, host, headers=headers)

    async def request(
        self, method: str, path: str, host: str = "127.0.0.1", **options: Any
    ) -> tuple[int, str]:
        url = f"https://{host}:{self.server.port}{path}"
        async with (
            aiohttp.ClientSession() as session,
            session.request(method, url, ssl=False, **options) as response,
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
    assert await served.get_json("/configz") == {"componentconfig": {"profiles": []}}


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


async def test_slis_show_the_latest_and_all_results_of_requested_health_checks(
    served: _Served,
) -> None:
    await served.get("/readyz")
    served.is_ready = True
    await served.get("/readyz")
    await served.get("/readyz?exclude=informer-sync")
    await served.get("/livez")
    _, text = await served.get("/metrics/slis")
    assert 'kubernetes_healthcheck{name="informer-sync",type="readyz"} 1.0\n' in text
    assert 'kubernetes_healthcheck{name="ping",type="livez"} 1.0\n' in text
    counter = 'kubernetes_healthchecks_total{name="informer-sync",status="%s",type="readyz"} 1.0\n'
    assert counter % "error" in text
    assert counter % "success" in text
    assert 'type="healthz"' not in text


async def test_statusz_shows_uptime_version_and_paths(served: _Served) -> None:
    served.time.now += 3_725
    status, text = await served.get("/statusz")
    assert status == 200
    lines = text.splitlines()
    assert lines[:3] == ["", "stowage statusz", zpages.WARNING]
    assert "Up: 1 hr 02 min 05 sec" in lines
    assert f"Binary version: {metadata.version('stowage')}" in lines
    (paths,) = [line for line in lines if line.startswith("Paths: ")]
    assert {"/configz", "/debug/queue", "/flagz", "/statusz"} <= set(paths.split())


async def test_flagz_shows_every_flag_in_order(served: _Served) -> None:
    status, text = await served.get("/flagz")
    assert status == 200
    assert text == f"\nstowage flags\n{zpages.WARNING}\n\nsecure-port=10259\nv=0\n"


@pytest.mark.parametrize("path", ["/statusz", "/flagz"])
async def test_zpages_are_plain_text_only(served: _Served, path: str) -> None:
    for accepted in ("text/plain", "application/json, text/*;q=0.5", "*/*"):
        assert (await served.get(path, Accept=accepted))[0] == 200
    status, text = await served.get(path, Accept="application/json")
    assert (status, text) == (406, "media type not acceptable, must be: text/plain\n")


async def test_the_log_level_is_put_at_run_time(served: _Served) -> None:
    try:
        with capture_logs() as lines:
            answer = await served.request("PUT", "/debug/flags/v", data="4")
        assert answer == (200, "successfully set klog.logging.verbosity to 4\n")
        assert {"event": "log level changed", "verbosity": 4, "log_level": "info"} in lines
        assert logging.getLogger("kopf").level == logging.DEBUG
    finally:
        set_verbosity(0)
    access = served.client.requests[-1].body["spec"]["nonResourceAttributes"]
    assert access == {"path": "/debug/flags/v", "verb": "put"}


@pytest.mark.parametrize("level", ["", "-1", "debug", "1.5", "\u0661"])
async def test_a_log_level_that_is_no_number_is_refused(served: _Served, level: str) -> None:
    status, text = await served.request("PUT", "/debug/flags/v", data=level)
    assert status == 400
    assert text.startswith(f"failed set klog.logging.verbosity {level}: expected")


async def test_a_log_level_that_is_no_text_is_refused(served: _Served) -> None:
    assert (await served.request("PUT", "/debug/flags/v", data=b"\xff"))[0] == 400


async def test_a_long_body_is_not_read(served: _Served) -> None:
    assert (await served.request("PUT", "/debug/flags/v", data="1" * 2000))[0] == 413


async def test_the_log_level_is_not_shown(served: _Served) -> None:
    assert await served.get("/debug/flags/v") == (406, "unsupported http method\n")


async def test_a_profile_shows_the_stacks_of_the_event_loop(served: _Served) -> None:
    served.is_profiling_enabled = True
    taken = asyncio.create_task(served.get("/debug/profile?seconds=0.3"))
    while not taken.done():
        await _busy()
    status, text = await taken
    assert status == 200
    stacks = dict(line.rsplit(" ", 1) for line in text.splitlines())
    assert any("_busy (operator/serving/test_server.py:" in stack for stack in stacks)
    assert sum(map(int, stacks.values())) > 1


async def _busy() -> None:
    # A loop in Python: the interpreter lets the sampling thread run between its bytecodes, but
    # not before a switch interval of 5 ms. A fast machine takes 16 ms for this loop.
    for number in range(1_000_000):
        number.bit_length()
    await asyncio.sleep(0)


async def test_no_profile_is_served_unless_it_is_enabled(served: _Served) -> None:
    status, text = await served.get("/debug/profile?seconds=1")
    assert status == 404
    assert "enableProfiling" in text


@pytest.mark.parametrize("seconds", ["0", "-1", "301", "nan", "long"])
async def test_a_duration_out_of_range_is_refused(served: _Served, seconds: str) -> None:
    served.is_profiling_enabled = True
    status, text = await served.get(f"/debug/profile?seconds={seconds}")
    assert (status, text) == (
        400,
        f"seconds: expected more than 0 and at most 300, got '{seconds}'\n",
    )


@needs_ipv6
async def test_an_unspecified_address_serves_ipv4_and_ipv6() -> None:
    served = _Served(replace(ANY_PORT, bind_address="0.0.0.0"))
    await served.server.start()
    for host in ("127.0.0.1", "[::1]"):
        assert await served.get("/livez", host) == (200, "ok")
    await served.server.stop()


@pytest.mark.parametrize("permitted", [True, False])
async def test_the_port_is_shared_only_if_it_is_permitted(permitted: bool) -> None:
    options = replace(ANY_PORT, permit_port_sharing=permitted)
    first = _Served(options)
    await first.server.start()
    second = _Served(replace(options, port=first.server.port))
    try:
        await second.server.start()
        shared = True
    except OSError:
        shared = False
    finally:
        await second.server.stop()
        await first.server.stop()
    assert shared is permitted


async def test_decisions_are_found_by_query(served: _Served) -> None:
    for number in range(1, 31):
        served.decisions.add(recorded(attempt(number, f"ns{number % 2}/p{number}")))
    page = await served.get_json("/debug/decisions?namespace=ns1&limit=2")
    assert [each["id"] for each in page["decisions"]] == ["p-27", "p-29"]
    assert page["decisions"][0]["nodes"][0]["scores"][0]["plugin"] == "Fit"
    assert page["last"] == "p-30"
    every = await served.get_json("/debug/decisions")
    assert [each["id"] for each in every["decisions"]] == [f"p-{each}" for each in range(1, 31)]
    following = await served.get_json("/debug/decisions?after=p-28")
    assert [each["id"] for each in following["decisions"]] == ["p-29", "p-30"]


async def test_no_decisions_are_an_empty_page(served: _Served) -> None:
    assert await served.get_json("/debug/decisions") == {"decisions": [], "last": "p-0"}


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("limit=many", "limit: expected 1 to 1000, got 'many'\n"),
        ("node=a&node=b", "node: expected once\n"),
    ],
)
async def test_an_invalid_query_of_decisions_is_refused(
    served: _Served, query: str, text: str
) -> None:
    assert await served.get(f"/debug/decisions?{query}") == (400, text)


async def test_decisions_are_json(served: _Served) -> None:
    url = f"https://127.0.0.1:{served.server.port}/debug/decisions"
    async with aiohttp.ClientSession() as session, session.get(url, ssl=False) as response:
        assert response.content_type == "application/json"
