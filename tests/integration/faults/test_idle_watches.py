"""Idle watches of an API server that sends no bookmarks, and watches over dead connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import structlog
from prometheus_client.parser import text_string_to_metric_families

from simcluster import ClusterOptions, FaultRule, SimulatedCluster, make_node
from simcluster.kinds.resources import PODS
from simcluster.ports import reserved_port
from simcluster.tests.support.timeouts import WAIT_TIMEOUT_S
from stowage.api.reflected_kinds import REFLECTED_KINDS
from stowage.operator.client.timeouts import Timeouts
from stowage.operator.serving.server import ServingOptions
from tests.support.integration.full_cluster import CAPACITY, small_pod
from tests.support.integration.running_scheduler import running_scheduler

TOKEN = "administrator"
TIMEOUTS = Timeouts(watch_idle_s=4.0)
WATCH_S = 2
"""The duration of each watch with these timeouts."""
OBSERVED_S = 4.0 * WATCH_S
NUM_PATHS = len(REFLECTED_KINDS) + 1
"""One more watch: Kopf's, of the pending pods."""

Families = Mapping[str, Mapping[str, float]]


@asynccontextmanager
async def _quiet_cluster() -> AsyncIterator[SimulatedCluster]:
    """A cluster where nothing changes and no bookmarks are sent."""
    options = ClusterOptions(
        token=TOKEN, with_kubelet=False, with_controllers=False, sends_bookmarks=False
    )
    async with SimulatedCluster([make_node("n", dict(CAPACITY))], options) as cluster:
        yield cluster


async def _scrape(port: int) -> Families:
    """The values by path of each family of the watches; empty until the endpoint answers."""
    headers = {"Authorization": f"Bearer {TOKEN}"}
    try:
        async with (
            aiohttp.ClientSession(headers=headers) as session,
            session.get(f"https://127.0.0.1:{port}/metrics", ssl=False) as answer,
        ):
            text = await answer.text()
    except aiohttp.ClientError:
        return {}
    return {
        family.name: {
            each.labels["path"]: each.value
            for each in family.samples
            if not each.name.endswith("_created")
        }
        for family in text_string_to_metric_families(text)
        if family.name.startswith(("stowage_reflector", "stowage_watch"))
    }


async def _until_bound(cluster: SimulatedCluster, name: str) -> None:
    """Create a pod and wait until it has a node."""
    cluster.registry.create(PODS, "default", small_pod(name, "10m"))
    await _until(lambda: bool(_node_name(cluster, name)), WAIT_TIMEOUT_S)


def _node_name(cluster: SimulatedCluster, name: str) -> str:
    spec = cluster.registry.get(PODS, "default", name).obj["spec"]
    return str(spec.get("nodeName", ""))


async def _until(holds: Callable[[], bool], within_s: float) -> None:
    async with asyncio.timeout(within_s):
        while not holds():  # noqa: ASYNC110 - neither the scheduler nor the cluster notifies
            await asyncio.sleep(0.02)


async def test_idle_watches_without_bookmarks_are_no_failures(tmp_path: Path) -> None:
    async with _quiet_cluster() as cluster:
        kubeconfig = cluster.write_kubeconfig(tmp_path / "kubeconfig")
        scrapes: list[Families] = []
        with reserved_port() as port, structlog.testing.capture_logs() as logs:
            serving = ServingOptions(bind_address="127.0.0.1", port=port)
            async with running_scheduler(kubeconfig, timeouts=TIMEOUTS, serving=serving):
                await _until_bound(cluster, "first")
                cluster.faults.add(FaultRule("GET", "watch=true", times=10**6, name="watch"))
                cluster.faults.add(FaultRule("GET", "limit=500", times=10**6, name="list"))
                logs.clear()
                for _ in range(int(OBSERVED_S / 0.2)):
                    scrapes.append(await _scrape(port))
                    await asyncio.sleep(0.2)
                observed = list(logs)
                await _until_bound(cluster, "second")
        requests = cluster.faults.hits_by_name
        assert requests["watch"] >= 2 * NUM_PATHS
        assert requests["list"] == 0
    silences = [scrape["stowage_watch_silence_seconds"] for scrape in scrapes if scrape]
    assert all(len(each) == NUM_PATHS for each in silences)
    assert max(max(each.values()) for each in silences) < WATCH_S + 1.0
    assert set(scrapes[-1]["stowage_reflector_failures"].values()) == {0.0}
    assert set(scrapes[-1]["stowage_reflector_lists"].values()) == {1.0}
    assert [line for line in observed if line["event"] == "reflector waits"] == []
    assert [line for line in observed if line["log_level"] in ("warning", "error")] == []


class _ForgetfulProxy:
    """Passes bytes on; `freeze` drops those of all open connections, which stay open."""

    def __init__(self, server: str) -> None:
        self._server = urlsplit(server)
        self._age = 0
        self._writers: list[asyncio.StreamWriter] = []

    def freeze(self) -> None:
        """Pass nothing on over the connections that are open now."""
        self._age += 1

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        host, port = self._server.hostname, self._server.port
        from_server, to_server = await asyncio.open_connection(host, port)
        self._writers += [writer, to_server]
        await asyncio.gather(self._pass_on(reader, to_server), self._pass_on(from_server, writer))

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        age = self._age
        with suppress(ConnectionError):
            while data := await reader.read(65_536):
                if self._age == age:
                    writer.write(data)
                    await writer.drain()
            if self._age == age:
                writer.close()

    def close(self) -> None:
        """Close all connections."""
        for writer in self._writers:
            writer.close()


@asynccontextmanager
async def _forgetful_proxy(server: str) -> AsyncIterator[tuple[_ForgetfulProxy, str]]:
    proxy = _ForgetfulProxy(server)
    listener = await asyncio.start_server(proxy.handle, "127.0.0.1", 0)
    try:
        yield proxy, f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    finally:
        proxy.close()
        listener.close()


async def test_a_dead_connection_is_noticed_within_the_timeout_of_silence(tmp_path: Path) -> None:
    """As behind a load balancer that forgets connections and resets none."""
    async with _quiet_cluster() as cluster, _forgetful_proxy(cluster.url) as (proxy, url):
        kubeconfig = cluster.write_kubeconfig(tmp_path / "kubeconfig")
        kubeconfig.write_text(kubeconfig.read_text().replace(cluster.url, url))
        with reserved_port() as port, structlog.testing.capture_logs() as logs:
            serving = ServingOptions(bind_address="127.0.0.1", port=port)
            async with running_scheduler(
                kubeconfig, timeouts=TIMEOUTS, serving=serving
            ) as scheduler:
                await _until_bound(cluster, "first")
                proxy.freeze()
                await _until(lambda: _outages(logs) != [], TIMEOUTS.watch_idle_s + 2.0)
                await _until_bound(cluster, "second")
                async with asyncio.timeout(WAIT_TIMEOUT_S):
                    while len(_failed_paths(await _scrape(port))) < len(REFLECTED_KINDS):  # noqa: ASYNC110 - a page that is asked
                        await asyncio.sleep(0.2)
                await _until(lambda: scheduler.is_idle, WAIT_TIMEOUT_S)
    assert [line["error"] for line in _outages(logs)] == ["no answer in time"]


def _outages(logs: Sequence[Mapping[str, object]]) -> Sequence[Mapping[str, object]]:
    """The lines of outages of the API server."""
    return [line for line in logs if line["event"] == "the API server does not answer"]


def _failed_paths(scrape: Families) -> Sequence[str]:
    """The paths whose watches failed."""
    failures = scrape.get("stowage_reflector_failures", {})
    return [path for path, count in failures.items() if count]
