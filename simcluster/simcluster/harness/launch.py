"""Starts the simulated cluster and the scheduler as processes, and waits until they are ready."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import aiohttp

from simcluster.cli.cluster_flags import Shape
from simcluster.harness.processes import ChildProcess, ChildProcesses

START_TIMEOUT_S = 120.0
"""Longer than a start takes on a loaded machine."""
_POLL_S = 0.05


class NotReadyError(Exception):
    """A process runs but does not get ready."""


async def start_cluster(
    processes: ChildProcesses,
    directory: Path,
    num_nodes: int,
    shape: Shape,
    *flags: str,
    timeout_s: float = START_TIMEOUT_S,
) -> Path:
    """Start ``stowage cluster`` on a free port; returns its kubeconfig once it answers.

    Args:
        processes: Those of the caller; it stops the cluster.
        directory: Where its kubeconfig goes.
        num_nodes: How many nodes it has.
        shape: Of the nodes.
        flags: Further flags of ``stowage cluster``.
        timeout_s: How long it may take.

    Raises:
        ProcessDiedError: it ended.
        NotReadyError: it wrote no kubeconfig in time.
    """
    kubeconfig = directory / "kubeconfig"
    child = processes.start_stowage(
        "cluster",
        "cluster",
        f"--nodes={num_nodes}",
        f"--shape={shape}",
        "--listen=127.0.0.1:0",
        f"--write-kubeconfig={kubeconfig}",
        *flags,  # last, so that they count
    )
    await wait_for_file(child, kubeconfig, timeout_s)
    return kubeconfig


def start_scheduler(
    processes: ChildProcesses, kubeconfig: Path, scheduler_name: str, port: int
) -> ChildProcess:
    """Start ``stowage run``, alone, so without leader election; ``port`` 0 serves no health."""
    return processes.start_stowage(
        "scheduler",
        "run",
        f"--kubeconfig={kubeconfig}",
        f"--scheduler-name={scheduler_name}",
        "--leader-elect=false",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
    )


async def wait_for_file(
    child: ChildProcess, file: Path, timeout_s: float = START_TIMEOUT_S
) -> None:
    """Wait until a process has written a file.

    Raises:
        ProcessDiedError: it ended.
        NotReadyError: it wrote nothing in time.
    """
    deadline = time.monotonic() + timeout_s
    while not _is_written(file):
        child.check()
        if time.monotonic() > deadline:
            raise NotReadyError(f"{child.name} wrote no {file}:\n{child.log_tail()}")
        await asyncio.sleep(_POLL_S)


def _is_written(file: Path) -> bool:
    return file.exists() and file.stat().st_size > 0


async def wait_until_ready(child: ChildProcess, port: int) -> None:
    """Wait until /readyz of a process answers 200.

    Raises:
        ProcessDiedError: it ended.
        NotReadyError: it did not get ready in time.
    """
    deadline = time.monotonic() + START_TIMEOUT_S
    timeout = aiohttp.ClientTimeout(total=2)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        while True:
            child.check()
            if await _answers_ready(session, port):
                return
            if time.monotonic() > deadline:
                raise NotReadyError(f"{child.name} is not ready:\n{child.log_tail()}")
            await asyncio.sleep(_POLL_S)


async def _answers_ready(session: aiohttp.ClientSession, port: int) -> bool:
    try:
        async with session.get(f"https://127.0.0.1:{port}/readyz", ssl=False) as response:
            return response.status == 200
    except (aiohttp.ClientError, TimeoutError):
        return False
