"""Limits: large bodies, many requests and connections, clients that stop reading."""

import asyncio
import contextlib
import dataclasses
import socket
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from simcluster import ClusterOptions, FaultRule, SimulatedCluster
from simcluster.apiserver import connections, read_endpoints
from simcluster.tests.support.api_client import CONFIG_MAPS, PODS, ApiClient, config_map, pod
from simcluster.tests.support.timeouts import WAIT_TIMEOUT_S, wait_until

LIMIT_BYTES = 3 * 1024 * 1024


@contextlib.asynccontextmanager
async def cluster_with(**limits: int) -> AsyncIterator[SimulatedCluster]:
    """A bare simulated cluster with its own limits."""
    bare = ClusterOptions(with_kubelet=False, with_controllers=False)
    options: Any = limits
    async with SimulatedCluster(options=dataclasses.replace(bare, **options)) as cluster:
        yield cluster


def address(cluster: SimulatedCluster) -> tuple[str, int]:
    host, _, port = cluster.url.removeprefix("http://").partition(":")
    return host, int(port)


@pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
async def test_a_body_over_three_mebibytes_is_refused(api: ApiClient, method: str) -> None:
    path = CONFIG_MAPS if method == "POST" else f"{CONFIG_MAPS}/a"
    large = config_map(data="x" * LIMIT_BYTES)
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
    await api.create(CONFIG_MAPS, config_map())
    reply = await api.request(method, path, large, kind)
    assert (reply.status, reply.body["reason"]) == (413, "RequestEntityTooLarge")
    assert reply.body["message"] == f"Request entity too large: limit is {LIMIT_BYTES}"
    assert (await api.get(f"{CONFIG_MAPS}/a")).body["data"] == {"a": "b"}


@pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")
async def test_the_connection_stays_open_after_a_refused_body(api: ApiClient) -> None:
    await api.post(CONFIG_MAPS, config_map(data="x" * LIMIT_BYTES))
    assert (await api.create(CONFIG_MAPS, config_map()))["data"] == {"a": "b"}


async def test_requests_beyond_the_limit_are_answered_429() -> None:
    async with cluster_with(max_in_flight=2) as cluster, ApiClient(cluster.url, "") as api:
        cluster.faults.add(FaultRule("GET", "/configmaps", times=2, delay_s=WAIT_TIMEOUT_S))
        held = [asyncio.create_task(api.get(CONFIG_MAPS)) for _ in range(2)]
        await wait_until(lambda: cluster.faults.hits == 2)
        refused = await api.get(PODS)
        assert (refused.status, refused.headers["Retry-After"]) == (429, "1")
        assert refused.text == "Too many requests, please try again later.\n"
        assert (await api.get("/readyz")).status == 200
        for task in held:
            task.cancel()
        await asyncio.gather(*held, return_exceptions=True)


async def test_watches_do_not_count_as_requests_in_flight() -> None:
    async with (
        cluster_with(max_in_flight=1) as cluster,
        ApiClient(cluster.url, "") as api,
        api.watch(PODS, "resourceVersion=0"),
        api.watch(PODS, "resourceVersion=0"),
    ):
        await wait_until(lambda: len(cluster.server.watchers) == 2)
        assert (await api.get(PODS)).status == 200


async def test_connections_beyond_the_limit_are_answered_429() -> None:
    async with cluster_with(max_connections=2) as cluster:
        url = f"{cluster.url}/readyz"
        async with contextlib.AsyncExitStack() as stack:
            sessions = [await stack.enter_async_context(aiohttp.ClientSession()) for _ in range(3)]
            replies = []
            for session in sessions:
                async with session.get(url) as response:
                    replies.append((response.status, response.headers.get("Retry-After")))
            assert replies == [(200, None), (200, None), (429, "1")]
            await sessions[0].close()

            async def is_answered() -> bool:
                return await _status(sessions[2], url) == 200

            await wait_until(is_answered)


async def _status(session: aiohttp.ClientSession, url: str) -> int:
    async with session.get(url) as response:
        return response.status


async def test_a_watch_is_removed_when_its_client_disconnects() -> None:
    async with cluster_with() as cluster:
        reader, writer = await asyncio.open_connection(*address(cluster))
        writer.write(f"GET {PODS}?watch=1 HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        await reader.readuntil(b"\r\n\r\n")
        await wait_until(lambda: len(cluster.server.watchers) == 1)
        writer.transport.abort()
        await wait_until(lambda: len(cluster.server.watchers) == 0)


async def test_only_the_watch_that_is_not_read_is_aborted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(read_endpoints, "SLOW_WATCHER_S", 0.1)
    async with cluster_with(max_pending_frames=50) as cluster, ApiClient(cluster.url, "") as api:
        with socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect(address(cluster))
            client.send(f"GET {CONFIG_MAPS}?watch=1 HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            await wait_until(lambda: len(cluster.server.watchers) == 1)
            large = "x" * 100_000
            await api.create(CONFIG_MAPS, config_map())
            for number in range(200):
                await api.patch(
                    f"{CONFIG_MAPS}/a",
                    {"data": {"a": f"{number}{large}"}},
                    "application/merge-patch+json",
                )
            await wait_until(lambda: len(cluster.server.watchers) == 0)
        assert (await api.get(PODS)).status == 200


@pytest.mark.parametrize(
    "sent",
    [
        "",
        "GET /readyz HTTP/1.1\r\nHo",
        f"POST {PODS} HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{{",
    ],
    ids=["nothing", "half a head", "half a body"],
)
async def test_a_connection_on_which_no_whole_request_arrives_is_closed(
    sent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "IDLE_TIMEOUT_S", 0.2)
    monkeypatch.setattr(connections, "LINGER_S", 0.2)
    monkeypatch.setattr("simcluster.apiserver.server.BODY_TIMEOUT_S", 0.2)
    async with cluster_with() as cluster:
        reader, writer = await asyncio.open_connection(*address(cluster))
        writer.write(sent.encode())
        async with asyncio.timeout(WAIT_TIMEOUT_S):
            answer = await reader.read()
        assert answer.startswith(b"HTTP/1.1 408") if "POST" in sent else answer == b""
        writer.close()


async def test_the_server_answers_other_requests_while_it_sends_a_large_list() -> None:
    async with cluster_with() as cluster, ApiClient(cluster.url, "") as api:
        for number in range(3000):
            cluster.store.put(
                "configmaps",
                {"metadata": {"name": f"c{number}", "namespace": "default"}, "data": {}},
            )
        async with asyncio.TaskGroup() as group:
            listing = group.create_task(api.get(CONFIG_MAPS))
            group.create_task(api.create(PODS, pod()))
        assert len(listing.result().body["items"]) == 3000


async def test_a_user_agent_that_is_no_text_is_answered() -> None:
    body = b'{"metadata":{"name":"a"},"data":{"k":"v"}}'
    head = (
        "POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nUser-Agent: "
    )
    async with cluster_with() as cluster:
        reader, writer = await asyncio.open_connection(*address(cluster))
        writer.write(head.encode() + b"\xff/1\r\n\r\n" + body)
        answer = await reader.read()
        writer.close()
    assert answer.startswith(b"HTTP/1.1 201 ")
    assert '"manager":"\ufffd"'.encode() in answer
