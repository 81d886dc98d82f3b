"""What a scheduler imports until it has bound a pod, and how often it lists nodes."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from pathlib import Path

from simcluster import ClusterOptions, SimulatedCluster, make_node
from simcluster.kinds.resources import PODS
from simcluster.ports import reserved_port
from simcluster.tests.support.timeouts import WAIT_TIMEOUT_S
from tests.support.integration.full_cluster import CAPACITY, small_pod

NOT_NEEDED = (
    # Parts of libraries, see `lean_libraries`:
    *("rich", "pygments", "pydantic", "requests", "urllib3", "oauthlib", "websocket", "dateutil"),
    *("kubernetes.client", "kubernetes.config", "kubernetes.dynamic", "kubernetes.aio.dynamic"),
    *("kubernetes.aio.client.api_client", "prometheus_client.exposition"),
    *("numpy._core._add_newdocs", "numpy._core._add_newdocs_scalars", "numpy._typing"),
    # Parts that somebody has to ask for:
    *("cryptography", "opentelemetry", "grpc", "stowage.cel", "stowage.recording.recorder"),
    *("stowage.analysis", "stowage.cli.ask", "stowage.operator.tracing.traces"),
)
"""Modules that a scheduler has not imported when it has bound a pod."""

#: Prints the modules when the scheduler ends, as it ends without Python's own shutdown.
SCRIPT = """
import os, sys

def end(status):
    print(*sys.modules, sep="\\n", flush=True)
    end_now(status)

end_now, os._exit = os._exit, end
from stowage.cli.main import app
app()
"""


async def _run_until_bound(folder: Path, port: int) -> tuple[set[str], list[str]]:
    """The modules of a scheduler process that has bound a pod, and the events of its log."""
    nodes = [make_node("n0", dict(CAPACITY))]
    async with SimulatedCluster(nodes, ClusterOptions()) as cluster:
        cluster.registry.create(PODS, "default", small_pod("p"))
        kubeconfig = cluster.write_kubeconfig(folder / "kubeconfig")
        flags = f"--kubeconfig={kubeconfig}", "--bind-address=127.0.0.1", f"--secure-port={port}"
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", SCRIPT, "run", *flags),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        assert process.stderr is not None
        events: list[str] = []
        async with asyncio.timeout(WAIT_TIMEOUT_S):
            while "scheduled" not in events:
                line = await process.stderr.readline()
                assert line, events
                events.append(json.loads(line)["event"])
        process.send_signal(signal.SIGTERM)
        output, _ = await asyncio.wait_for(process.communicate(), WAIT_TIMEOUT_S)
    return set(output.decode().split()), events


async def test_a_started_scheduler_has_not_imported_what_it_does_not_need(tmp_path: Path) -> None:
    with reserved_port() as port:
        modules, events = await _run_until_bound(tmp_path, port)
    assert {"kopf", "kubernetes.aio.config", "numpy", "stowage.operator.process"} <= modules
    needless = [name for name in NOT_NEEDED if name in modules]
    assert needless == []
    assert "serving" in events
    assert "watching again on request" not in events
