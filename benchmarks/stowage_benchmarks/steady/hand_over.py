"""Measures how long a standby takes from the end of the leader to its first binding."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path

from simcluster.harness.launch import wait_until_ready
from simcluster.harness.processes import ChildProcess, ChildProcesses
from simcluster.ports import reserved_port

LEASE = "stowage-bench-steady"
LEASE_PATH = f"/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/{LEASE}"
_LEADER, _STANDBY = "leader", "standby"


async def measure_hand_over(
    processes: ChildProcesses,
    kubeconfig: Path,
    scheduler_name: str,
    bind_one: Callable[[], Awaitable[None]],
) -> float:
    """Seconds from SIGTERM to the leader until the standby has bound a pod that is created then.

    Args:
        processes: Starts the two replicas; both are stopped at the end.
        kubeconfig: Of the API server.
        scheduler_name: The pods' ``spec.schedulerName``.
        bind_one: Creates a pod and returns when it is bound.

    Raises:
        ProcessDiedError, NotReadyError: a replica did not get ready, or the pod was not bound.
    """
    with ExitStack() as ports:
        leader = await _start(processes, kubeconfig, scheduler_name, _LEADER, ports)
        await bind_one()
        standby = await _start(processes, kubeconfig, scheduler_name, _STANDBY, ports)
        leader.send_signal(signal.SIGTERM)
        retired_at = time.monotonic()
        # The leader's end is expected, so it is checked no more.
        await asyncio.to_thread(processes.stop, leader)
        await bind_one()
        hand_over_s = time.monotonic() - retired_at
        processes.stop(standby)
    return hand_over_s


async def _start(
    processes: ChildProcesses, kubeconfig: Path, scheduler_name: str, name: str, ports: ExitStack
) -> ChildProcess:
    """Start a replica and wait until it is ready."""
    port = ports.enter_context(reserved_port())
    replica = processes.start_stowage(
        name,
        "run",
        f"--kubeconfig={kubeconfig}",
        f"--scheduler-name={scheduler_name}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--leader-elect-resource-name={LEASE}",
    )
    await wait_until_ready(replica, port)
    return replica
