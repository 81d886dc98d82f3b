"""Measures how fast a scheduler binds a backlog of pods, and at what cost.

All pods are created before the scheduler starts, so the rate of creation does not limit it. Rates
are between the first and the last binding that a watch saw, so they include the API server.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path

from simcluster.cli.cluster_flags import Shape
from simcluster.harness.apply import create_all
from simcluster.harness.audit import read_cluster
from simcluster.harness.launch import NotReadyError, start_cluster
from simcluster.harness.placements import PlacementWatch
from simcluster.harness.processes import ChildProcesses
from stowage.operator.client.api_client import ApiClient
from stowage.operator.client.connection import connect
from stowage_benchmarks.e2e.churn import churning
from stowage_benchmarks.e2e.cleaning import clean
from stowage_benchmarks.e2e.result import Cost, Drain, E2EResult, e2e_result
from stowage_benchmarks.e2e.scenarios import MEASURED_PREFIX, SCENARIOS, Size, scenario_nodes
from stowage_benchmarks.process_cost import cpu_seconds, peak_memory_mib

_NODE_GRACE_S = 86_400


class _Run:
    """One run of one scheduler with one workload at one size.

    Args:
        drain: The run.
        processes: Starts cluster and scheduler.
        directory: For the kubeconfig of a simulated cluster.
    """

    def __init__(self, drain: Drain, processes: ChildProcesses, directory: Path) -> None:
        self._drain = drain
        self._scenario = SCENARIOS[drain.workload]
        self._processes = processes
        self._directory = directory

    async def run(self) -> E2EResult:
        """Prepare, start the scheduler, measure until all pods are bound, and clean up.

        Raises:
            ProcessDiedError, NotReadyError: cluster or scheduler did not start, or ended, or the
                pods did not get their claims.
            ApiError: an object was refused.
            OSError: the scheduler's program does not exist.
        """
        kubeconfig = self._drain.kubeconfig or await self._start_cluster()
        connection = await connect(str(kubeconfig))
        try:
            client = ApiClient(connection)
            await self._prepare(client)
            result = await self._measure(client, kubeconfig)
            if self._drain.kubeconfig is not None:
                await clean(client)
            return result
        finally:
            await connection.close()

    async def _start_cluster(self) -> Path:
        # Kubelets and controllers would take CPU time from the scheduler. Claims are made by a
        # controller; with controllers, nodes without a kubelet would become Unknown.
        controllers = f"--node-grace-seconds={_NODE_GRACE_S}", "--controllers"
        return await start_cluster(
            self._processes,
            self._directory,
            self._drain.size.nodes,
            Shape.BENCH,
            "--no-kubelet",
            *(controllers if self._scenario.has_claims else ("--no-controllers",)),
            *self._scenario.cluster_flags,
        )

    async def _prepare(self, client: ApiClient) -> None:
        drain = self._drain
        if drain.kubeconfig is not None:
            await clean(client)
            await create_nodes(client, drain.size)
        await create_all(client, self._scenario.setting(drain.size, drain.scheduler_name))

    async def _measure(self, client: ApiClient, kubeconfig: Path) -> E2EResult:
        drain, check = self._drain, self._processes.check
        async with PlacementWatch(client, _is_measured) as watch:
            pods = (
                self._scenario.measured(index, drain.scheduler_name)
                for index in range(drain.size.pods)
            )
            await create_all(client, pods)
            deadline = time.monotonic() + drain.timeout_s
            if not await watch.wait_until(lambda: self._is_prepared(watch), deadline, check):
                raise NotReadyError("not all pods were created, or got their claims, in time")
            async with self._stirring(client):
                started_at = time.monotonic()
                scheduler = drain.contender.start(self._processes, kubeconfig, drain.scheduler_name)
                cost = await self._cost(scheduler.pid, watch, deadline, check)
            self._processes.stop(scheduler)
            return e2e_result(
                drain, list(watch.placements.values()), await read_cluster(client), started_at, cost
            )

    def _is_prepared(self, watch: PlacementWatch) -> bool:
        """Whether all pods exist, with their claims."""
        placements = watch.placements.values()
        return len(placements) >= self._drain.size.pods and (
            not self._scenario.has_claims
            or all(each.pod.status.resource_claim_statuses for each in placements)
        )

    async def _cost(
        self, pid: int, watch: PlacementWatch, deadline: float, check: Callable[[], None]
    ) -> Cost:
        """Wait until all pods are bound or the deadline; returns the scheduler's cost."""
        await watch.wait_until(lambda: watch.num_bound > 0, deadline, check)
        cpu_s_at_first_bind = cpu_seconds(pid)
        await watch.wait_until(lambda: watch.num_bound >= self._drain.size.pods, deadline, check)
        return Cost(cpu_seconds(pid), cpu_s_at_first_bind, peak_memory_mib(pid))

    def _stirring(self, client: ApiClient) -> AbstractAsyncContextManager[None]:
        if self._scenario.has_churn:
            return churning(client, self._drain.scheduler_name)
        return nullcontext()


def _is_measured(pod_name: str) -> bool:
    return pod_name.startswith(MEASURED_PREFIX)


async def create_nodes(client: ApiClient, size: Size) -> None:
    """Create nodes and remove the taint that an API server adds to new ones."""
    nodes = list(scenario_nodes(size))
    await create_all(client, nodes)
    for node in nodes:
        path = f"/api/v1/nodes/{node['metadata']['name']}"
        await client.patch(path, b'{"spec":{"taints":null}}')


def run_once(drain: Drain) -> E2EResult:
    """Measure once in separate processes.

    Raises:
        ProcessDiedError, NotReadyError, ApiError, OSError: the run could not be completed.
    """
    with (
        tempfile.TemporaryDirectory(prefix="stowage-bench-") as name,
        ChildProcesses(Path(name)) as processes,
    ):
        return asyncio.run(_Run(drain, processes, Path(name)).run())
