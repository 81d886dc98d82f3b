"""The configuration in a ConfigMap: valid edits take effect, others are refused with an Event."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
import yaml
from msgspec.structs import replace
from typer.testing import CliRunner

from simcluster.ports import reserved_port
from simcluster.tests.support.api_client import (
    CONFIG_MAPS,
    MERGE,
    NODES,
    PODS,
    ApiClient,
    config_map,
)
from simcluster.tests.support.api_client import pod as make_pod
from simcluster.tests.support.api_servers import ApiServerUnderTest
from simcluster.tests.support.timeouts import WAIT_TIMEOUT_S, wait_until
from stowage.cli import composition
from stowage.cli.flag_overrides import in_config_map
from stowage.cli.main import app
from stowage.operator.app import run
from stowage.operator.serving.delegated_access import AccessOptions
from stowage.operator.serving.server import ServingOptions
from tests.support.engines import configuration_of, fit_profile

NAME = "stowage-config"
CONFIG_MAP = f"{CONFIG_MAPS}/{NAME}"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"

Json = dict[str, Any]

SPREADING = fit_profile("LeastAllocated", "stowage")
PACKING = fit_profile("MostAllocated", "stowage")


def text_of(*profiles: Mapping[str, Any], **fields: Any) -> str:
    election = {"leaderElect": False}
    return yaml.safe_dump(configuration_of(*profiles, leaderElection=election, **fields))


class Scheduler:
    """A running scheduler, observed through the API server and its endpoints."""

    def __init__(self, api: ApiClient, port: int) -> None:
        self.api = api
        self._url = f"https://127.0.0.1:{port}"

    async def get(self, path: str) -> str:
        connector = aiohttp.TCPConnector(ssl=False)
        async with (
            aiohttp.ClientSession(connector=connector) as session,
            session.get(self._url + path) as response,
        ):
            return await response.text()

    async def metric(self, name: str) -> float:
        return float(await self._metric_line(rf"{name}(?:\{{.*\}})? (\S+)"))

    async def hash(self) -> str:
        return await self._metric_line(r'stowage_configuration_info\{hash="(\w+)"\} 1.0')

    async def _metric_line(self, pattern: str) -> str:
        found = re.search(f"^{pattern}$", await self.get("/metrics"), re.MULTILINE)
        assert found is not None, pattern
        return found[1]

    async def edit(self, text: str) -> None:
        reply = await self.api.patch(CONFIG_MAP, {"data": {"config.yaml": text}}, MERGE)
        assert reply.status == 200, reply.text

    async def in_force(self, old: str) -> str:
        """Wait until another configuration than `old` is in force; returns its hash."""
        async with asyncio.timeout(WAIT_TIMEOUT_S):
            while (found := await self.hash()) == old:  # noqa: ASYNC110 - polled
                await asyncio.sleep(0.01)
        return found

    async def place(self, name: str, scheduler_name: str = "stowage") -> str:
        """Create a pod and wait until it is bound; returns the node's name."""
        requests = {"requests": {"cpu": "100m"}}
        container = {"name": "c", "image": "registry.example/app:1", "resources": requests}
        body = make_pod(name, schedulerName=scheduler_name, containers=[container])
        await self.api.create(PODS, body)
        return await self.node_of(name)

    async def node_of(self, name: str) -> str:
        async with asyncio.timeout(WAIT_TIMEOUT_S):
            while True:
                pod = (await self.api.get(f"{PODS}/{name}")).body
                if pod["spec"].get("nodeName"):
                    return str(pod["spec"]["nodeName"])
                await asyncio.sleep(0.01)

    async def event(self, reason: str, holds: Callable[[Json], bool] = lambda _event: True) -> Json:
        """Wait for an Event about the ConfigMap."""
        async with asyncio.timeout(WAIT_TIMEOUT_S):
            while True:
                items: list[Json] = (await self.api.get(EVENTS)).body["items"]
                for item in items:
                    is_ours = item["regarding"]["name"] == NAME and item["reason"] == reason
                    if is_ours and holds(item):
                        return item
                await asyncio.sleep(0.02)


@asynccontextmanager
async def running(server: ApiServerUnderTest, api: ApiClient) -> AsyncIterator[Scheduler]:
    with reserved_port() as port:
        async with _serving(server, api, port) as scheduler:
            yield scheduler


@asynccontextmanager
async def _serving(
    server: ApiServerUnderTest, api: ApiClient, port: int
) -> AsyncIterator[Scheduler]:
    stop = asyncio.Event()
    source = composition.config_map_source(f"default/{NAME}", lambda text: in_config_map(text, {}))
    start = await asyncio.to_thread(composition.read_config_map_source, source, server.kubeconfig)
    serving = ServingOptions(
        bind_address="127.0.0.1", port=port, access=AccessOptions(always_allow_paths=("/*",))
    )
    options = composition.run_options(start, server.kubeconfig, serving, 300.0, source)
    process = asyncio.create_task(run(replace(options, stop=stop, owns_process=False)))
    scheduler = Scheduler(api, port)
    try:
        await wait_until(lambda: _is_ready(scheduler))
        yield scheduler
    finally:
        stop.set()
        assert await asyncio.wait_for(process, WAIT_TIMEOUT_S) == 0


async def _is_ready(scheduler: Scheduler) -> bool:
    try:
        return await scheduler.get("/readyz") == "ok"
    except aiohttp.ClientError:
        return False


def _node(name: str, cpu: str) -> Json:
    return {"metadata": {"name": name}, "status": {"capacity": {"cpu": cpu, "pods": "110"}}}


@pytest.fixture
async def scheduler(api_server: ApiServerUnderTest, api: ApiClient) -> AsyncIterator[Scheduler]:
    """A scheduler that prefers empty nodes, with a big and a small node."""
    await api.create(NODES, _node("big", "16"))
    await api.create(NODES, _node("small", "4"))
    await api.create(CONFIG_MAPS, config_map(NAME, **{"config.yaml": text_of(SPREADING)}))
    async with running(api_server, api) as scheduler:
        yield scheduler


async def test_an_edit_applies_to_the_next_pods(scheduler: Scheduler) -> None:
    assert await scheduler.place("before") == "big"
    old = await scheduler.hash()
    await scheduler.edit(text_of(PACKING))
    new = await scheduler.in_force(old)
    assert await scheduler.place("after") == "small"
    applied = await scheduler.event("ConfigurationApplied")
    assert (applied["type"], applied["note"]) == ("Normal", f"configuration {new} is in force")
    shown = yaml.safe_load(await scheduler.get("/configz"))
    assert shown["stowage"] == {"configurationHash": new}
    (profile,) = shown["componentconfig"]["profiles"]
    assert profile["plugins"]["score"]["enabled"] == [{"name": "NodeResourcesFit", "weight": 1}]


async def test_an_invalid_edit_is_reported_and_changes_nothing(scheduler: Scheduler) -> None:
    old = await scheduler.hash()
    wrong: Json = {**PACKING, "plugins": {"score": {"enabled": [{"name": "NodeResourceFit"}]}}}
    await scheduler.edit(text_of(wrong, podMaxBackoffSeconds=-1))
    event = await scheduler.event("InvalidConfiguration")
    assert event["type"] == "Warning"
    assert event["regarding"]["kind"] == "ConfigMap"
    where = "profiles[0].plugins.score.enabled[0].name"
    mistakes = (
        "podMaxBackoffSeconds: -1 (expected at least podInitialBackoffSeconds, 1)",
        (
            f'{where}: "NodeResourceFit" (expected the name of a known plugin'
            "; did you mean NodeResourcesFit?)"
        ),
    )
    assert event["note"] == f"{old} stays in force; {'; '.join(mistakes)}"
    assert await scheduler.metric("stowage_configuration_errors") == 2
    assert await scheduler.metric("stowage_configuration_last_reload_successful") == 0
    assert await scheduler.get("/readyz") == "ok"
    verbose = await scheduler.get("/readyz?verbose")
    lines = "\n  ".join([f"configuration refused, {old} stays in force:", *mistakes])
    assert lines in verbose
    assert await scheduler.hash() == old
    assert await scheduler.place("meanwhile") == "big"

    await scheduler.edit(text_of(PACKING))
    await scheduler.in_force(old)
    assert "refused" not in await scheduler.get("/readyz?verbose")
    assert await scheduler.metric("stowage_configuration_errors") == 0
    assert await scheduler.metric("stowage_configuration_last_reload_successful") == 1
    assert await scheduler.place("after") == "small"


async def test_an_edit_that_needs_a_restart_is_refused(scheduler: Scheduler) -> None:
    old = await scheduler.hash()
    await scheduler.edit(text_of(PACKING, parallelism=3))
    note = (await scheduler.event("InvalidConfiguration"))["note"]
    wanted = "parallelism: 3 (expected 16 as at the start: a change of this field needs a restart)"
    assert note == f"{old} stays in force; {wanted}"
    assert await scheduler.place("meanwhile") == "big"


async def test_a_long_list_of_mistakes_is_cut_to_the_length_of_an_event_note(
    scheduler: Scheduler,
) -> None:
    names = [{"name": f"NoSuchPlugin{number}"} for number in range(60)]
    await scheduler.edit(text_of({**PACKING, "plugins": {"score": {"enabled": names}}}))
    note = (await scheduler.event("InvalidConfiguration"))["note"]
    assert len(note.encode()) <= 1024
    assert note.endswith(" ...")
    assert await scheduler.metric("stowage_configuration_errors") == 60
    assert "NoSuchPlugin59" in await scheduler.get("/readyz?verbose")


async def test_pods_of_an_added_profile_are_scheduled_and_pods_of_a_removed_one_are_not(
    scheduler: Scheduler,
) -> None:
    batch = fit_profile("MostAllocated", "batch")
    await scheduler.api.create(PODS, make_pod("waiting", schedulerName="batch"))
    old = await scheduler.hash()
    await scheduler.edit(text_of(SPREADING, batch))
    both = await scheduler.in_force(old)
    assert await scheduler.node_of("waiting") in {"big", "small"}
    assert await scheduler.place("ours") == "big"
    await scheduler.edit(text_of(batch))
    await scheduler.in_force(both)
    await scheduler.api.create(PODS, make_pod("unscheduled", schedulerName="stowage"))
    assert await scheduler.place("job", "batch") == "small"
    assert "nodeName" not in (await scheduler.api.get(f"{PODS}/unscheduled")).body["spec"]


async def test_the_configuration_stays_in_force_when_the_config_map_is_deleted(
    scheduler: Scheduler,
) -> None:
    old = await scheduler.hash()
    await scheduler.api.delete(CONFIG_MAP)
    event = await scheduler.event("InvalidConfiguration")
    assert "an existing ConfigMap" in event["note"]
    assert await scheduler.place("meanwhile") == "big"
    again = config_map(NAME, **{"config.yaml": text_of(PACKING)})
    await scheduler.api.create(CONFIG_MAPS, again)
    await scheduler.in_force(old)
    assert await scheduler.place("after") == "small"


@pytest.mark.parametrize(
    ("data", "wrong"),
    [
        (None, "404 NotFound"),
        ({"other.yaml": "{}"}, "config.yaml"),
        ({"config.yaml": "profiles: ["}, "YAML document"),
        ({"config.yaml": text_of(SPREADING, parallelism=0)}, "parallelism"),
    ],
    ids=["no ConfigMap", "no key", "no YAML", "no configuration"],
)
async def test_starting_without_a_usable_config_map_fails_with_the_reason(
    api_server: ApiServerUnderTest, api: ApiClient, data: dict[str, str] | None, wrong: str
) -> None:
    if data is not None:
        await api.create(CONFIG_MAPS, config_map(NAME, **data))
    command = ["run", f"--kubeconfig={api_server.kubeconfig}", f"--configmap=default/{NAME}"]
    runner = CliRunner()
    result = await asyncio.to_thread(runner.invoke, app, command, env={"COLUMNS": "300"})
    assert result.exit_code == 1
    assert wrong in result.stderr
