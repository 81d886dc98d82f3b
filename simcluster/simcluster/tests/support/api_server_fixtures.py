"""The API server of each integration test: simulated, a real kube-apiserver, or an existing one.

The simulated cluster is the default. ``KUBEBUILDER_ASSETS`` naming a folder with ``kube-apiserver``
and ``etcd`` runs the tests against those; ``STOWAGE_TEST_KUBECONFIG`` against that cluster, which
the tests empty, its nodes included. It must be a bare API server as envtest starts it, without
ServiceAccount and TaintNodesByCondition admission: no controller that would taint the tests' nodes
or delete their pods.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from simcluster import ClusterOptions, SimulatedCluster
from simcluster.ports import reserved_port
from simcluster.tests.support.api_client import ApiClient
from simcluster.tests.support.api_servers import (
    EXISTING,
    ApiServerUnderTest,
    configured_assets,
    existing_api_server,
    real_api_server,
)
from simcluster.tests.support.cleanup import empty

TOKEN = "integration-test-token"
TLS_SHUTDOWN_S = 0.25
"""aiohttp closes cancelled watches in the background; the event loop must run until then."""


@pytest.fixture(scope="session")
def foreign_api_server(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[ApiServerUnderTest | None]:
    """The configured API server; none if the simulated one is to be used."""
    existing = os.environ.get(EXISTING)
    assets = configured_assets()
    if existing:
        yield existing_api_server(Path(existing))
    elif assets is not None:
        with real_api_server(assets, tmp_path_factory.mktemp("api-server")) as server:
            yield server
    else:
        yield None


@pytest.fixture
def port() -> Iterator[int]:
    """A port that is reserved while the test runs."""
    with reserved_port() as port:
        yield port


@pytest.fixture
async def api_server(
    foreign_api_server: ApiServerUnderTest | None, tmp_path: Path
) -> AsyncIterator[ApiServerUnderTest]:
    """An API server without controllers and kubelet, and without objects of earlier tests."""
    if foreign_api_server is not None:
        server = foreign_api_server
        async with ApiClient(server.url, server.token, server.tls) as client:
            await empty(client)
        yield server
        if server.tls is not None:
            await asyncio.sleep(TLS_SHUTDOWN_S)
        return
    options = ClusterOptions(
        token=TOKEN, with_kubelet=False, with_controllers=False, faults_over_http=True
    )
    async with SimulatedCluster(options=options) as cluster:
        kubeconfig = cluster.write_kubeconfig(tmp_path / "kubeconfig")
        yield ApiServerUnderTest(cluster.url, kubeconfig, TOKEN, is_simulated=True, cluster=cluster)


@pytest.fixture
async def api(api_server: ApiServerUnderTest) -> AsyncIterator[ApiClient]:
    """A plain HTTP client of the API server."""
    async with ApiClient(api_server.url, api_server.token, api_server.tls) as client:
        yield client


@pytest.fixture
def simulated_cluster(api_server: ApiServerUnderTest) -> SimulatedCluster:
    """The simulated cluster; tests that use it are skipped on any other server."""
    if api_server.cluster is None:
        pytest.skip("only the simulated cluster has faults")
    return api_server.cluster
