"""kubectl for a simulated cluster."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

from simcluster import SimulatedCluster
from simcluster.tests.support.timeouts import WAIT_TIMEOUT_S

KUBECTL = Path(sys.executable).parent / "kubectl"
Kubectl = Callable[..., Awaitable[str]]
WAIT = f"--timeout={WAIT_TIMEOUT_S:g}s"
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: server, image: "registry.example/web:1", ports: [{containerPort: 80}]}
"""


def environment_for(cluster: SimulatedCluster, tmp_path: Path) -> dict[str, str]:
    """The environment variables of a kubectl for that cluster."""
    kubeconfig = cluster.write_kubeconfig(tmp_path / "kubeconfig")
    return {**os.environ, "KUBECONFIG": str(kubeconfig), "HOME": str(tmp_path)}


def kubectl_for(cluster: SimulatedCluster, tmp_path: Path) -> Kubectl:
    """Runs kubectl and returns its output; it must succeed unless ``succeeds`` is false."""
    environment = environment_for(cluster, tmp_path)

    async def run(*arguments: str, stdin: str = "", succeeds: bool = True) -> str:
        process = await asyncio.create_subprocess_exec(
            str(KUBECTL),
            *arguments,
            env=environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await asyncio.wait_for(process.communicate(stdin.encode()), WAIT_TIMEOUT_S)
        text = output.decode()
        assert (process.returncode == 0) is succeeds, text
        return text

    return run
