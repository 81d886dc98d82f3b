"""The HTTPS endpoints of a running scheduler answer users whom the API server authorizes."""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from docs.tables import exposed_metrics, recorded_metrics
from simcluster import ClusterOptions, SimulatedCluster, write_kubeconfig
from simcluster.auth.users import User
from simcluster.ports import reserved_port
from simcluster.tests.support.api_client import ApiClient
from simcluster.tests.support.timeouts import WAIT_TIMEOUT_S
from stowage.operator.app import run
from stowage.operator.decisions.log_files import DecisionLogOptions
from stowage.operator.lease import LeaderElectionOptions
from stowage.operator.run_options import RecordingOptions, RunOptions
from stowage.operator.serving.delegated_access import AccessOptions
from stowage.operator.serving.server import ServingOptions
from stowage.recording.limits import RecordingLimits
from tests.support.round_robin_engine import RoundRobinEngine

ADMIN, MONITORING, UNAUTHORIZED = "admin-token", "monitoring-token", "unauthorized-token"
DEFAULT_ACCESS = AccessOptions()
RBAC = "/apis/rbac.authorization.k8s.io/v1"


class _Endpoints:
    def __init__(self, port: int) -> None:
        self._url = f"https://127.0.0.1:{port}"

    async def get(self, path: str, token: str = "") -> tuple[int, str]:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        async with (
            aiohttp.ClientSession(headers=headers) as session,
            session.get(self._url + path, ssl=False) as response,
        ):
            return response.status, await response.text()


async def _let_monitoring_read(api: ApiClient, *paths: str) -> None:
    rule = {"nonResourceURLs": list(paths), "verbs": ["get"]}
    await api.post(f"{RBAC}/clusterroles", {"metadata": {"name": "metrics"}, "rules": [rule]})
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "metrics"}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "monitoring"}
    binding = {"metadata": {"name": "metrics"}, "roleRef": reference, "subjects": [subject]}
    await api.post(f"{RBAC}/clusterrolebindings", binding)


@asynccontextmanager
async def _running(kubeconfig: Path, **changes: Any) -> AsyncIterator[_Endpoints]:
    with reserved_port() as port:
        async with _serving(kubeconfig, port, **changes) as endpoints:
            yield endpoints


@asynccontextmanager
async def _serving(
    kubeconfig: Path,
    port: int,
    access: AccessOptions = DEFAULT_ACCESS,
    ready_status: int = 200,
    **changes: Any,
) -> AsyncIterator[_Endpoints]:
    """A running scheduler, once it is ready, or not ready if `ready_status` is 500."""
    stop = asyncio.Event()
    options = RunOptions(
        engine_factory=lambda _parts: RoundRobinEngine(),
        scheduler_names=("stowage",),
        kubeconfig=str(kubeconfig),
        serving=ServingOptions(bind_address="127.0.0.1", port=port, access=access),
        stop=stop,
        owns_process=False,
        **changes,
    )
    process = asyncio.create_task(run(options))
    endpoints = _Endpoints(port)
    try:
        async with asyncio.timeout(WAIT_TIMEOUT_S):
            while await _readiness(endpoints) != ready_status:  # noqa: ASYNC110 - polled
                await asyncio.sleep(0.02)
        yield endpoints
    finally:
        stop.set()
        assert await asyncio.wait_for(process, WAIT_TIMEOUT_S) == 0


async def _readiness(endpoints: _Endpoints) -> int:
    """The status of ``/readyz``; 0 while the server does not answer."""
    try:
        return (await endpoints.get("/readyz"))[0]
    except aiohttp.ClientError:
        return 0


@asynccontextmanager
async def _cluster(kubeconfig: Path, *readable: str) -> AsyncIterator[Path]:
    """A cluster whose user `monitoring` may read these paths."""
    users = {MONITORING: User("monitoring"), UNAUTHORIZED: User("unauthorized")}
    options = ClusterOptions(
        token=ADMIN, users=users, rbac=True, with_kubelet=False, with_controllers=False
    )
    async with SimulatedCluster(options=options) as cluster:
        async with ApiClient(cluster.url, ADMIN, None) as api:
            await _let_monitoring_read(api, *readable)
        yield write_kubeconfig(kubeconfig, cluster.url, ADMIN)


@pytest.fixture
async def kubeconfig(tmp_path: Path) -> AsyncIterator[Path]:
    async with _cluster(tmp_path / "kubeconfig", "/metrics", "/metrics/resources") as kubeconfig:
        yield kubeconfig


async def test_health_paths_are_public_and_other_endpoints_need_permission(
    kubeconfig: Path,
) -> None:
    async with _running(kubeconfig) as endpoints:
        assert await endpoints.get("/livez") == (200, "ok")
        assert (await endpoints.get("/metrics"))[0] == 403
        assert (await endpoints.get("/metrics", "unknown-token"))[0] == 401
        status, text = await endpoints.get("/metrics", UNAUTHORIZED)
        assert status == 403
        assert 'User \\"unauthorized\\" cannot get path \\"/metrics\\"' in text
        status, text = await endpoints.get("/metrics", MONITORING)
        assert status == 200
        assert 'rest_client_requests_total{code="200",host="127.0.0.1:' in text
        assert (await endpoints.get("/debug/queue", MONITORING))[0] == 403
        assert (await endpoints.get("/debug/queue", ADMIN))[0] == 200


async def test_a_scheduler_whose_api_server_does_not_answer_is_alive_but_not_ready(
    tmp_path: Path, port: int
) -> None:
    """No access can be reviewed either; paths that are always allowed need no review."""
    kubeconfig = write_kubeconfig(tmp_path / "kubeconfig", f"http://127.0.0.1:{port}", ADMIN)
    statuses = {
        "/healthz": 200,
        "/livez": 200,
        "/livez/ping": 200,
        "/readyz": 500,
        "/readyz/shutdown": 200,
        "/readyz/informer-sync": 500,
        "/readyz/sched-handler-sync": 500,
        "/statusz": 200,
        "/flagz": 200,
        "/metrics": 200,
    }
    access = AccessOptions(always_allow_paths=tuple(statuses))
    async with _running(kubeconfig, access=access, ready_status=500) as endpoints:
        assert {path: (await endpoints.get(path))[0] for path in statuses} == statuses
        assert (await endpoints.get("/configz"))[0] == 500


async def test_access_may_be_reviewed_with_kubeconfigs_of_its_own(
    kubeconfig: Path, tmp_path: Path
) -> None:
    tokens, rights = (shutil.copy(kubeconfig, tmp_path / name) for name in ("tokens", "rights"))
    access = AccessOptions(
        authentication_kubeconfig=str(tokens), authorization_kubeconfig=str(rights)
    )
    async with _running(kubeconfig, access=access) as endpoints:
        assert (await endpoints.get("/metrics", MONITORING))[0] == 200
        assert (await endpoints.get("/metrics", UNAUTHORIZED))[0] == 403
        assert (await endpoints.get("/metrics", "unknown-token"))[0] == 401


async def test_the_cluster_of_the_authorization_kubeconfig_says_what_a_user_may_read(
    kubeconfig: Path, tmp_path: Path
) -> None:
    async with _cluster(tmp_path / "rights", "/configz") as rights:
        access = AccessOptions(authorization_kubeconfig=str(rights))
        async with _running(kubeconfig, access=access) as endpoints:
            assert (await endpoints.get("/configz", MONITORING))[0] == 200
            assert (await endpoints.get("/metrics", MONITORING))[0] == 403


async def test_the_recorded_metrics_of_kube_scheduler_are_exposed_or_the_reason_is_given(
    kubeconfig: Path, tmp_path: Path
) -> None:
    async with _running(
        kubeconfig,
        leader_election=LeaderElectionOptions(identity="me"),
        recording=RecordingOptions(tmp_path / "recording", RecordingLimits(2**20, 3600.0), 300.0),
        decision_log=DecisionLogOptions(directory=tmp_path / "decisions"),
    ) as endpoints:
        pages = [
            (await endpoints.get(path, ADMIN))[1]
            for path in ("/metrics", "/metrics/slis", "/metrics/resources")
        ]
    found = re.findall(r"^# TYPE (\S+) ", "".join(pages), re.MULTILINE)
    rows = recorded_metrics()
    given = {row["metric"] for row in rows if row["not exposed because"]}
    assert {row["metric"] for row in rows} - set(found) == given
    assert set(found) >= exposed_metrics()


async def test_disabled_metrics_are_on_no_page(kubeconfig: Path) -> None:
    disabled = {"rest_client_requests_total", "process_cpu_seconds_total", "kubernetes_healthcheck"}
    async with _running(kubeconfig, disabled_metrics=frozenset(disabled)) as endpoints:
        pages = [(await endpoints.get(path, ADMIN))[1] for path in ("/metrics", "/metrics/slis")]
    found = set(re.findall(r"^# TYPE (\S+) ", "".join(pages), re.MULTILINE))
    assert not disabled & found
    assert {"scheduler_pending_pods", "kubernetes_healthchecks_total"} <= found
    assert "\ndisabled_metrics_total 3.0\n" in pages[0]


async def test_a_request_to_an_endpoint_is_counted_by_the_results_of_its_checks(
    kubeconfig: Path,
) -> None:
    async with _running(kubeconfig) as endpoints:
        await endpoints.get("/metrics", "unknown-token")
        await endpoints.get("/metrics", UNAUTHORIZED)
        _, text = await endpoints.get("/metrics", ADMIN)
    for sample in (
        'authentication_attempts{result="failure"} 1.0',
        'authentication_attempts{result="success"} 2.0',
        'authorization_attempts_total{result="denied"} 1.0',
        'authorization_attempts_total{result="allowed"} 1.0',
        'authenticated_user_requests{username="other"} 2.0',
        'authentication_token_cache_request_total{status="miss"} 3.0',
    ):
        assert f"\n{sample}\n" in text


async def test_verbose_readiness_lists_the_checks_of_kube_scheduler(kubeconfig: Path) -> None:
    election = LeaderElectionOptions(identity="me", retry_period_s=0.1)
    async with _running(kubeconfig, leader_election=election) as endpoints:
        status, text = await endpoints.get("/readyz?verbose")
        assert status == 200
        names = ("leaderElection", "shutdown", "informer-sync", "sched-handler-sync")
        assert text == "".join(f"[+]{name} ok\n" for name in names) + "readyz check passed\n"
        status, text = await endpoints.get("/metrics", MONITORING)
        assert 'leader_election_master_status{name="stowage"}' in text
