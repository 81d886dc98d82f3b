"""The scheduler in a pod: it has its service account in files, and no kubeconfig."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from kubernetes.aio.config import incluster_config, kube_config
from yarl import URL

from simcluster import ClusterOptions, SimulatedCluster
from simcluster.auth.users import User, service_account_user
from simcluster.tests.support.api_client import NODES, PODS, ApiClient, node, pod, until
from stowage.operator.client import connection
from tests.integration.deployment.deployed import (
    apply,
    arguments,
    installed,
    needs_kubectl,
    options_of,
    running,
)
from tests.support.integration.authority import Authority

pytestmark = needs_kubectl

ADMINISTRATOR = "administrator"
SERVICE_ACCOUNT = service_account_user("stowage-system", "stowage")


@asynccontextmanager
async def _cluster(
    authority: Authority, users: dict[str, User]
) -> AsyncIterator[tuple[SimulatedCluster, ApiClient]]:
    """A cluster with TLS and RBAC."""
    certificate = authority.issue_server()
    options = ClusterOptions(
        cert_file=certificate, key_file=certificate, token=ADMINISTRATOR, users=users, rbac=True
    )
    trusted = ssl.create_default_context(cafile=str(authority.file))
    trusted.verify_flags &= ~ssl.VERIFY_X509_STRICT
    async with (
        SimulatedCluster(options=options) as cluster,
        ApiClient(cluster.url, ADMINISTRATOR, trusted) as api,
    ):
        yield cluster, api


def _enter_pod(
    monkeypatch: pytest.MonkeyPatch, url: str, authority: Authority, token: Path
) -> None:
    """Set what the kubelet gives a container, and hide the kubeconfigs of the machine."""
    address = URL(url)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", str(address.host))
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(address.port))
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(token))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(authority.file))
    nowhere = str(token.parent / "no-kubeconfig")
    for module in (kube_config, connection.kubernetes_config):
        monkeypatch.setattr(module, "KUBE_CONFIG_DEFAULT_LOCATION", nowhere)


async def test_a_scheduler_in_a_pod_uses_its_service_account_and_each_token_that_it_gets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects = installed()
    authority, token = Authority(tmp_path), tmp_path / "token"
    users = {"first": SERVICE_ACCOUNT}
    token.write_text("first")
    async with _cluster(authority, users) as (cluster, api):
        await apply(api, [found for found in objects if found["kind"] != "Deployment"])
        await api.create(NODES, node("n1"))
        _enter_pod(monkeypatch, cluster.url, authority, token)
        options = await asyncio.to_thread(options_of, arguments(objects))
        async with running(options):
            await api.create(PODS, pod("a", schedulerName="stowage"))
            await until(api, PODS, "a", lambda found: bool(found["spec"].get("nodeName")))
            token.write_text("second")
            users["second"] = users.pop("first")
            assert cluster.server.access.user_of_token("first") is None
            await api.create(PODS, pod("b", schedulerName="stowage"))
            await until(api, PODS, "b", lambda found: bool(found["spec"].get("nodeName")))
