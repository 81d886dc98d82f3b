"""No token, no kubeconfig and no Secret is in what the scheduler says, at its most talkative."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import aiohttp

from scheduler.cluster import ClusterOptions, EmbeddedCluster, make_node
from scheduler.cluster.resources import PODS
from tests.support.patience import PATIENCE_S
from tests.support.troubled_cluster import CAPACITY, small_pod

CANARY = "canary-of-the-kubeconfig"
CALLER = "canary-of-a-caller"
SECRET = "canary-of-a-pod"
PATHS = ("/metrics", "/metrics/resources", "/configz", "/debug/queue", "/debug/cache", "/version")


def _says(log: Path, words: tuple[str, ...]) -> bool:
    said = log.read_text(encoding="utf-8")
    return all(word in said for word in words)


async def _until_said(log: Path, *words: str) -> None:
    await _until(lambda: _says(log, words))


async def _until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds():  # noqa: ASYNC110 - the process tells nobody else
            await asyncio.sleep(0.05)


def _events(cluster: EmbeddedCluster) -> str:
    return str([each.obj for each in cluster.registry.store.collection("events").items()])


async def _ask(port: int, path: str, token: str) -> str:
    headers = {"Authorization": f"Bearer {token}"}
    url = f"https://127.0.0.1:{port}{path}"
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.get(url, ssl=False) as response,
    ):
        return f"{response.status} {response.headers} {await response.text()}"


async def test_no_secret_is_in_logs_events_or_dumps(tmp_path: Path, port: int) -> None:
    log, kubeconfig = tmp_path / "log", tmp_path / "kubeconfig"
    async with EmbeddedCluster(options=ClusterOptions(token=CANARY)) as cluster:
        cluster.add_nodes([make_node("n0", dict(CAPACITY))])
        cluster.write_kubeconfig(kubeconfig)
        assert CANARY in kubeconfig.read_text(encoding="utf-8")
        pod = small_pod("p")
        pod["spec"]["containers"][0]["env"] = [{"name": "PASSWORD", "value": SECRET}]
        too_large = small_pod("q", cpu="64")
        too_large["spec"]["containers"][0]["env"] = [{"name": "PASSWORD", "value": SECRET}]
        for each in (pod, too_large):
            cluster.registry.create(PODS, "default", each)
        with log.open("ab") as output:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "scheduler.cli", "run", "-v", "10"),
                *("--leader-elect=false", "--bind-address=127.0.0.1", f"--secure-port={port}"),
                f"--kubeconfig={kubeconfig}",
                stdout=output,
                stderr=output,
            )
        try:
            await _until_said(log, '"serving"', '"scheduled"', '"unschedulable"')
            answers = [
                await _ask(port, path, token) for path in PATHS for token in (CALLER, CANARY)
            ]
            process.send_signal(signal.SIGUSR2)
            await _until_said(log, "cache compared")
            await _until(lambda: "FailedScheduling" in _events(cluster))
        finally:
            process.terminate()
            await asyncio.wait_for(process.wait(), PATIENCE_S)
        said = [log.read_text(encoding="utf-8"), *answers, _events(cluster)]
    assert any(answer.startswith("200") for answer in answers)
    for secret in (CANARY, CALLER, SECRET):
        assert [text for text in said if secret in text] == []
