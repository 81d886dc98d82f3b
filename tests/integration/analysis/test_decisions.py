"""``stowage decisions`` and ``stowage explain`` read the record of a running scheduler."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from structlog.testing import capture_logs

from simcluster import ClusterOptions, SimulatedCluster, write_kubeconfig
from simcluster.auth.users import User
from simcluster.ports import reserved_port
from simcluster.tests.support.api_client import ApiClient
from simcluster.tests.support.timeouts import WAIT_TIMEOUT_S
from stowage.operator.decisions.log_files import DecisionLogOptions
from stowage.operator.serving.server import ServingOptions
from tests.integration.scheduling.cluster import EVENTS, Cluster
from tests.support.integration.running_scheduler import running_scheduler

ADMIN, READER, UNAUTHORIZED = "admin-token", "reader-token", "unauthorized-token"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
RIGHTS = Path("docs/how-to/decisions.md")


@dataclass(frozen=True)
class _Observed:
    """A scheduler that has decided about two pods, and where its decisions are."""

    cluster: Cluster
    api: ApiClient
    server: Sequence[str]
    log: Path
    lines: list[Any]

    async def until_logged(self, pod: str, result: str) -> str:
        """Wait for the log line of a pod's attempt; returns the id of the decision."""
        async with asyncio.timeout(WAIT_TIMEOUT_S):
            while True:
                for line in self.lines:
                    if line["event"] == result and line["pod"] == f"default/{pod}":
                        return str(line["decision"])
                await asyncio.sleep(0.02)


async def _stowage(*arguments: str) -> tuple[int, str, str]:
    process = await _start(*arguments)
    out, err = await asyncio.wait_for(process.communicate(), WAIT_TIMEOUT_S)
    return process.returncode or 0, out.decode(), err.decode()


async def _start(*arguments: str) -> asyncio.subprocess.Process:
    pipe = asyncio.subprocess.PIPE
    command = (sys.executable, "-m", "stowage.cli", *arguments)
    return await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=pipe)


def _documented_rights() -> list[dict[str, Any]]:
    """The ClusterRole and its binding, as the page shows them."""
    text = RIGHTS.read_text(encoding="utf-8").split("```yaml\n")[1].split("```")[0]
    return list(yaml.safe_load_all(text))


async def _let_reader_read(api: ApiClient) -> None:
    role, binding = _documented_rights()
    await api.post(f"{RBAC}/clusterroles", role)
    await api.post(f"{RBAC}/clusterrolebindings", binding)


@asynccontextmanager
async def _observed(folder: Path) -> AsyncIterator[_Observed]:
    users = {READER: User("jane"), UNAUTHORIZED: User("unauthorized")}
    options = ClusterOptions(token=ADMIN, users=users, rbac=True)
    log = folder / "decisions"
    async with (
        SimulatedCluster(options=options) as simulated,
        ApiClient(simulated.url, ADMIN) as api,
    ):
        await _let_reader_read(api)
        cluster = Cluster(api)
        for name in ("n1", "n2"):
            await cluster.add_node(name)
        kubeconfig = write_kubeconfig(folder / "kubeconfig", simulated.url, ADMIN)
        with reserved_port() as port, capture_logs() as lines:
            serving = ServingOptions(bind_address="127.0.0.1", port=port)
            token = folder / "token"
            token.write_text(READER)
            server = (
                f"--server=https://127.0.0.1:{port}",
                f"--token-file={token}",
                "--insecure-skip-tls-verify",
            )
            async with running_scheduler(
                kubeconfig, serving=serving, decision_log=DecisionLogOptions(directory=log)
            ):
                await cluster.create("small", cpu="1")
                await cluster.create("big", cpu="64")
                yield _Observed(cluster, api, server, log, lines)


@pytest.fixture
async def observed(tmp_path: Path) -> AsyncIterator[_Observed]:
    async with _observed(tmp_path) as observed:
        yield observed


async def test_decisions_of_a_running_scheduler_are_shown_and_filtered(observed: _Observed) -> None:
    small = await observed.until_logged("small", "scheduled")
    big = await observed.until_logged("big", "unschedulable")

    status, text, errors = await _stowage("decisions", *observed.server, "-o", "json")
    assert (status, errors) == (0, "")
    by_pod = {each["pod"]: each for each in json.loads(text)["decisions"]}
    assert by_pod["default/small"]["id"] == small
    assert by_pod["default/big"]["id"] == big
    best = by_pod["default/small"]["nodes"]
    assert {each["node"] for each in best} == {"n1", "n2"}
    assert by_pod["default/small"]["node"] == best[0]["node"]
    assert by_pod["default/big"]["reasonCounts"] == {"Insufficient cpu": 2}

    _, table, _ = await _stowage("decisions", *observed.server, "--result=unschedulable", "-owide")
    heading, row, *_ = [line for line in table.splitlines() if "─" not in line]
    assert heading.split()[:4] == ["time", "pod", "attempt", "result"]
    assert "default/big" in row
    assert "0/2 nodes are available: 2 Insufficient cpu" in row
    assert "default/small" not in table
    _, table, _ = await _stowage("decisions", *observed.server, "--namespace=elsewhere")
    assert table == "no decision is recorded\n"


async def test_the_event_of_a_pod_names_its_decision(observed: _Observed) -> None:
    wanted = {
        ("small", "Scheduled"): await observed.until_logged("small", "scheduled"),
        ("big", "FailedScheduling"): await observed.until_logged("big", "unschedulable"),
    }
    async with asyncio.timeout(WAIT_TIMEOUT_S):
        found: dict[tuple[str, str], str] = {}
        while found.keys() < wanted.keys():
            events = (await observed.api.get(EVENTS)).body["items"]
            found = {
                (each["regarding"]["name"], each["reason"]): each["metadata"]["annotations"][
                    "stowage/decision"
                ]
                for each in events
                if each["reportingController"] == "stowage"
            }
            await asyncio.sleep(0.02)
    assert found == wanted


async def test_a_pod_is_explained_by_its_recorded_decision(observed: _Observed) -> None:
    decision = await observed.until_logged("small", "scheduled")
    await observed.until_logged("big", "unschedulable")

    _, text, _ = await _stowage("explain", "pod", "small", *observed.server, "-o", "json")
    explained = json.loads(text)
    assert explained["basis"].startswith(f"the decision {decision} as it was made at 20")
    assert explained["basis"].endswith("attempt 1")
    ranked = explained["decision"]["nodes"]
    assert ranked[0]["node"] == explained["node"] == explained["decision"]["chosen"]
    assert ranked[0]["total"] == sum(each["weighted"] for each in ranked[0]["scores"])

    _, table, _ = await _stowage("explain", "pod", "big", *observed.server)
    assert "default/big found no node (Unschedulable): 0/2 nodes are available" in table
    assert table.splitlines()[-1].split() == ["2", "Insufficient", "cpu"]
    status, _, errors = await _stowage("explain", "pod", "unknown", *observed.server)
    assert (status, errors) == (1, "error: no decision about pod default/unknown is recorded\n")


async def test_new_decisions_are_followed_until_ctrl_c(observed: _Observed) -> None:
    await observed.until_logged("small", "scheduled")
    flags = (*observed.server, "--follow", "--node=n1", "-o", "json")
    followed = await _start("decisions", *flags)
    assert followed.stdout is not None
    here = {"kubernetes.io/hostname": "n1"}
    await observed.cluster.create("pinned", nodeSelector=here)
    async with asyncio.timeout(WAIT_TIMEOUT_S):
        pods = []
        while "default/pinned" not in pods:
            pods.append(json.loads(await followed.stdout.readline())["pod"])
    followed.send_signal(signal.SIGINT)
    assert await asyncio.wait_for(followed.wait(), WAIT_TIMEOUT_S) == 130
    assert followed.stderr is not None
    assert await followed.stderr.read() == b""


async def test_the_files_of_the_decision_log_hold_the_same_decisions(observed: _Observed) -> None:
    await observed.until_logged("small", "scheduled")
    await observed.until_logged("big", "unschedulable")
    _, served, _ = await _stowage("decisions", *observed.server, "--pod=small", "-o", "json")
    log = ("--decision-log", str(observed.log))
    async with asyncio.timeout(WAIT_TIMEOUT_S):
        while True:
            status, text, errors = await _stowage("decisions", *log, "--pod=small", "-o", "json")
            if status == 0 and json.loads(text).get("decisions"):
                break
    assert json.loads(text)["decisions"] == json.loads(served)["decisions"]
    assert errors == ""
    _, explained, _ = await _stowage("explain", "pod", "small", *log)
    assert "default/small went to node n" in explained


async def test_a_user_without_the_right_is_told_so(observed: _Observed, tmp_path: Path) -> None:
    server, _, insecure = observed.server
    for content, want in (
        (UNAUTHORIZED, "status 403 (the user needs the right to get /debug/decisions)"),
        ("nonsense", "status 401 (the token is not valid)"),
    ):
        token = tmp_path / "another"
        token.write_text(content)
        flags = (server, insecure, f"--token-file={token}")
        status, text, errors = await _stowage("decisions", *flags)
        assert (status, text) == (1, "")
        assert want in errors


async def test_an_unverified_certificate_is_refused(observed: _Observed) -> None:
    status, _, errors = await _stowage("decisions", *observed.server[:2])
    assert status == 1
    assert "CERTIFICATE_VERIFY_FAILED" in errors
