"""Objects that arrive as invalid JSON, as a broken proxy may send them.

A proxy damages single objects. The scheduler logs their names and goes on: it does not list again,
and it delays no other pod.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import structlog

from simcluster import SimulatedCluster, make_node
from simcluster.tests.support.api_client import PODS as PODS_PATH
from simcluster.tests.support.api_client import ApiClient
from simcluster.tests.support.timeouts import wait_until
from tests.support.integration.auditor import node_of
from tests.support.integration.full_cluster import CAPACITY, small_pod
from tests.support.integration.running_scheduler import running_scheduler

#: A value as it is stored -> what arrives of it; equally long, for the length was announced.
DAMAGE = {
    value: arrives.ljust(len(value))
    for value, arrives in {
        '"@not-a-number@"': b"NaN",
        '"@no-characters"': b'"\xff\xfe"',
        '"@control-chars"': b'"\x00\x01"',
        '"@half-surrogat"': b'"\\ud800"',
        '"@nested-deeply"': b"[[[[[[[[]]]]]]]]",
        '"@number-for-it"': b"123456789012345",
    }.items()
}


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, damaging: bool) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(2**20):
            for value, arrives in DAMAGE.items() if damaging else ():
                data = data.replace(value.encode(), arrives)
            writer.write(data)
            await writer.drain()
    writer.close()


@asynccontextmanager
async def _damaging_proxy(server: str) -> AsyncIterator[str]:
    target = urlsplit(server)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        back, forth = await asyncio.open_connection(target.hostname, target.port)
        await asyncio.gather(_pump(reader, forth, False), _pump(back, writer, True))

    proxy = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{proxy.sockets[0].getsockname()[1]}"
    finally:
        proxy.close()


def _damaged(name: str, value: str, **spec: Any) -> dict[str, Any]:
    pod = {**small_pod(name, **spec), "status": {"phase": "Pending"}}
    pod["metadata"]["labels"] = {"odd": value.strip('"')}
    return pod


async def test_damaged_objects_are_logged_and_delay_no_other_pod(tmp_path: Path) -> None:
    nodes = [make_node(f"n{index}", dict(CAPACITY)) for index in range(2)]
    async with (
        SimulatedCluster(nodes) as cluster,
        _damaging_proxy(cluster.url) as url,
        ApiClient(cluster.url, "") as api,
    ):
        config = cluster.write_kubeconfig(tmp_path / "kubeconfig")
        config.write_text(config.read_text().replace(cluster.url, url))
        for index, value in enumerate(DAMAGE):
            _put(cluster, _damaged(f"before-{index}", value))
            _put(cluster, _damaged(f"placed-{index}", value, nodeName="n0"))
        with structlog.testing.capture_logs() as logs:
            async with running_scheduler(config) as scheduler:
                await api.create(PODS_PATH, small_pod("first", cpu="100m"))
                await _bound(api, "first")
                for index, value in enumerate(DAMAGE):
                    _put(cluster, _damaged(f"after-{index}", value))
                    _put(cluster, _damaged(f"put-{index}", value, nodeName="n1"))
                await api.create(PODS_PATH, small_pod("second", cpu="100m"))
                await _bound(api, "second")
                scheduler.engine.validate()
    waits = [each for each in logs if each["event"] == "reflector waits"]
    assert waits == []
    for name in ("before-0", "placed-0", "after-0", "put-0"):
        assert 1 <= sum(name in str(each) for each in logs) <= 2


def _put(cluster: SimulatedCluster, pod: dict[str, Any]) -> None:
    """Put a pod into the store without admission, as if another API server had accepted it."""
    from simcluster.kinds.resources import PODS

    pod["metadata"] |= {"uid": pod["metadata"]["name"]}
    cluster.registry.store.put(PODS.stored_in, {"apiVersion": "v1", "kind": "Pod", **pod})


async def _bound(api: ApiClient, name: str) -> None:
    async def is_bound() -> bool:
        return bool(node_of((await api.get(f"{PODS_PATH}/{name}")).body))

    await wait_until(is_bound)
