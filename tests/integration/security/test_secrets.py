"""Logs at -v=10, Events and endpoints contain no token, password, key or annotation."""

from __future__ import annotations

import asyncio
import base64
import json
import signal
import sys
from pathlib import Path

import aiohttp

from simcluster import ClusterOptions, SimulatedCluster, make_node
from simcluster.kinds.resources import PODS
from simcluster.tests.support.timeouts import WAIT_TIMEOUT_S, wait_until
from stowage.operator.serving.self_signed import self_signed
from tests.support.integration.full_cluster import CAPACITY, small_pod

CANARY = "canary-of-the-kubeconfig"
CALLER = "canary-of-a-caller"
SECRET = "canary-of-a-pod"
NOTE = "canary-of-an-annotation"
PASSWORD = "canary-of-an-extender"
PATHS = (
    "/metrics",
    "/metrics/resources",
    "/metrics/slis",
    "/configz",
    "/flagz",
    "/statusz",
    "/debug/queue",
    "/debug/cache",
    "/version",
)


def _log_contains(log: Path, words: tuple[str, ...]) -> bool:
    output = log.read_text(encoding="utf-8")
    return all(word in output for word in words)


async def _until_logged(log: Path, *words: str) -> None:
    await wait_until(lambda: _log_contains(log, words))


def _events(cluster: SimulatedCluster) -> str:
    return str([each.obj for each in cluster.registry.store.collection("events").items()])


async def _ask(port: int, path: str, token: str) -> str:
    headers = {"Authorization": f"Bearer {token}"}
    url = f"https://127.0.0.1:{port}{path}"
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.get(url, ssl=False) as response,
    ):
        return f"{response.status} {response.headers} {await response.text()}"


def _configuration(file: Path, certificate: bytes, key: bytes) -> Path:
    """A configuration with an unreachable extender, a password in its URL and a client key."""
    encoded = [base64.b64encode(each).decode() for each in (certificate, key)]
    extender = {
        "urlPrefix": f"https://stowage:{PASSWORD}@127.0.0.1:1/extender",
        "filterVerb": "filter",
        "ignorable": True,
        "enableHTTPS": True,
        "tlsConfig": {"insecure": True, "certData": encoded[0], "keyData": encoded[1]},
    }
    kind = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
    }
    file.write_text(json.dumps({**kind, "extenders": [extender]}))
    return file


async def test_no_secret_is_in_logs_events_or_endpoints(tmp_path: Path, port: int) -> None:
    log, kubeconfig = tmp_path / "log", tmp_path / "kubeconfig"
    certificate, key = self_signed("127.0.0.1")
    config = _configuration(tmp_path / "config", certificate, key)
    key_lines = key.decode().splitlines()[1:-1]
    async with SimulatedCluster(options=ClusterOptions(token=CANARY)) as cluster:
        node = make_node("n0", dict(CAPACITY))
        node["metadata"]["annotations"] = {"example.com/note": NOTE}
        cluster.add_nodes([node])
        cluster.write_kubeconfig(kubeconfig)
        assert CANARY in kubeconfig.read_text(encoding="utf-8")
        pod = small_pod("p")
        pod["spec"]["containers"][0]["env"] = [{"name": "PASSWORD", "value": SECRET}]
        too_large = small_pod("q", cpu="64")
        too_large["spec"]["containers"][0]["env"] = [{"name": "PASSWORD", "value": SECRET}]
        for each in (pod, too_large):
            each["metadata"]["annotations"] = {"example.com/note": NOTE}
            cluster.registry.create(PODS, "default", each)
        with log.open("ab") as output:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "stowage.cli", "run", "-v", "10"),
                *("--leader-elect=false", "--bind-address=127.0.0.1", f"--secure-port={port}"),
                *(f"--kubeconfig={kubeconfig}", f"--config={config}"),
                stdout=output,
                stderr=output,
            )
        try:
            await _until_logged(
                log, '"serving"', '"scheduled"', '"unschedulable"', "extender ignored"
            )
            answers = [
                await _ask(port, path, token) for path in PATHS for token in (CALLER, CANARY)
            ]
            process.send_signal(signal.SIGUSR2)
            await _until_logged(log, "cache compared")
            await wait_until(lambda: "FailedScheduling" in _events(cluster))
        finally:
            process.terminate()
            await asyncio.wait_for(process.wait(), WAIT_TIMEOUT_S)
        outputs = [log.read_text(encoding="utf-8"), *answers, _events(cluster)]
    assert any(answer.startswith("200") for answer in answers)
    encoded = base64.b64encode(key).decode()
    assert len(key_lines) > 1
    for secret in (CANARY, CALLER, SECRET, NOTE, PASSWORD, encoded[:60], *key_lines):
        assert [text for text in outputs if secret in text] == []
