"""One API server for each module of contract tests; tests delete what disturbs others."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import kubernetes.aio
import kubernetes.client
import pytest

from simcluster import ClusterOptions, SimulatedCluster
from simcluster.tests.support.api_client import ApiClient
from simcluster.tests.support.api_servers import (
    ApiServerUnderTest,
    insecure_tls,
    self_signed_certificate,
)
from simcluster.tests.support.cleanup import empty
from simcluster.tests.support.timeouts import WAIT_TIMEOUT_S

TOKEN = "contract-test-token"


async def _serve(
    options: ClusterOptions, ready: "Future[SimulatedCluster]", end: asyncio.Event
) -> None:
    async with SimulatedCluster(options=options) as cluster:
        ready.set_result(cluster)
        await end.wait()


@contextmanager
def running(options: ClusterOptions, folder: Path) -> Iterator[ApiServerUnderTest]:
    """Run a simulated cluster in a separate thread."""
    ready: Future[SimulatedCluster] = Future()
    loop, end = asyncio.new_event_loop(), asyncio.Event()
    serving = threading.Thread(target=lambda: loop.run_until_complete(_serve(options, ready, end)))
    serving.start()
    try:
        cluster = ready.result(WAIT_TIMEOUT_S)
        path = cluster.write_kubeconfig(folder / "kubeconfig")
        tls = insecure_tls() if options.cert_file else None
        yield ApiServerUnderTest(
            cluster.url, path, TOKEN, is_simulated=True, tls=tls, cluster=cluster
        )
    finally:
        loop.call_soon_threadsafe(end.set)
        serving.join()
        loop.close()


OPTIONS = ClusterOptions(token=TOKEN, rbac=True, with_kubelet=False, with_controllers=False)


@pytest.fixture(scope="module")
def shared_server(
    foreign_api_server: ApiServerUnderTest | None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ApiServerUnderTest]:
    """An API server with roles, without controllers and kubelet."""
    if foreign_api_server is not None:
        asyncio.run(_emptied(foreign_api_server))
        yield foreign_api_server
        return
    with running(OPTIONS, tmp_path_factory.mktemp("server")) as server:
        yield server


@pytest.fixture(scope="module")
def secure_server(
    foreign_api_server: ApiServerUnderTest | None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ApiServerUnderTest]:
    """The same over TLS, without which kubectl sends no token."""
    if foreign_api_server is not None:
        asyncio.run(_emptied(foreign_api_server))
        yield foreign_api_server
        return
    folder = tmp_path_factory.mktemp("server")
    certificate, key = self_signed_certificate(folder)
    options = replace(OPTIONS, cert_file=certificate, key_file=key)
    with running(options, folder) as server:
        yield server


async def _emptied(server: ApiServerUnderTest) -> None:
    async with ApiClient(server.url, server.token, server.tls) as client:
        await empty(client)


@pytest.fixture
async def http(shared_server: ApiServerUnderTest) -> AsyncIterator[ApiClient]:
    """A plain HTTP client of the administrator."""
    server = shared_server
    async with ApiClient(server.url, server.token, server.tls) as client:
        yield client


@pytest.fixture
async def anonymous(shared_server: ApiServerUnderTest) -> AsyncIterator[ApiClient]:
    """A plain HTTP client without credentials."""
    async with ApiClient(shared_server.url, "", shared_server.tls) as client:
        yield client


def configured(configuration: Any, server: ApiServerUnderTest) -> Any:
    """A client's configuration for a server."""
    configuration.host = server.url
    configuration.verify_ssl = False
    if server.token:
        configuration.api_key = {"authorization": server.token, "BearerToken": server.token}
        configuration.api_key_prefix = {"authorization": "Bearer", "BearerToken": "Bearer"}
    return configuration


@pytest.fixture
def sync_client(shared_server: ApiServerUnderTest) -> Iterator[kubernetes.client.ApiClient]:
    """The synchronous client."""
    configuration = configured(kubernetes.client.Configuration(), shared_server)
    with kubernetes.client.ApiClient(configuration) as client:
        yield client


@pytest.fixture
async def aio_client(
    shared_server: ApiServerUnderTest,
) -> AsyncIterator[kubernetes.aio.client.ApiClient]:
    """The asynchronous client."""
    configuration = configured(kubernetes.aio.client.Configuration(), shared_server)
    async with kubernetes.aio.client.ApiClient(configuration) as client:
        yield client
