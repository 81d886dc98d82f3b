"""The drain benchmark: how fast a backlog of pods is bound, and what that costs.

All pods are created before the scheduler starts, so the rate of creation does not limit it. The
result has the API server's clockwork in it, as users have: rates are between the first and the
last binding that a watch saw.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path

import msgspec
from rich.console import Console
from rich.markup import escape

from scheduler.cli.apply import create_all
from scheduler.cli.audit import read_cluster
from scheduler.cli.bench.drain_result import Cost, DrainOptions, DrainResult, drain_result
from scheduler.cli.bench.process_cost import cpu_seconds, peak_memory_mib
from scheduler.cli.bench.report import print_drain_result
from scheduler.cli.bench.workloads import bench_node, pending_pod, running_pod
from scheduler.cli.cluster import Shape
from scheduler.cli.failures import FAILURES
from scheduler.cli.launch import start_cluster, start_scheduler
from scheduler.cli.placements import PlacementWatch
from scheduler.cli.processes import ChildProcesses
from scheduler.operator.api_client import ApiClient
from scheduler.operator.connection import connect

SCHEDULER_NAME = "stowage"


class Drain:
    """One run of the benchmark.

    Args:
        options: What to drain.
        processes: Where cluster and scheduler are started.
        directory: For the kubeconfig of an embedded cluster.
    """

    def __init__(self, options: DrainOptions, processes: ChildProcesses, directory: Path) -> None:
        self._options = options
        self._processes = processes
        self._directory = directory

    async def run(self) -> DrainResult:
        """Prepare, start the scheduler, wait, measure.

        Raises:
            ProcessDiedError, NotReadyError: cluster or scheduler did not come up, or went down.
            ApiError: an object was refused.
        """
        kubeconfig = self._options.kubeconfig or await self._start_cluster()
        connection = await connect(str(kubeconfig))
        try:
            client = ApiClient(connection)
            await self._prepare(client)
            return await self._measure(client, kubeconfig)
        finally:
            await connection.close()

    async def _start_cluster(self) -> Path:
        # Kubelet and controllers would take CPU time from what is measured.
        return await start_cluster(
            self._processes,
            self._directory,
            self._options.num_nodes,
            Shape.BENCH,
            "--no-kubelet",
            "--no-controllers",
        )

    async def _prepare(self, client: ApiClient) -> None:
        options = self._options
        if options.kubeconfig is not None:
            await _create_nodes(client, options.num_nodes)
        running = (
            running_pod(options.workload, index, options.num_nodes, SCHEDULER_NAME)
            for index in range(options.num_running)
        )
        await create_all(client, running)

    async def _measure(self, client: ApiClient, kubeconfig: Path) -> DrainResult:
        options, check = self._options, self._processes.check
        async with PlacementWatch(client) as watch:
            pending = (
                pending_pod(options.workload, index, SCHEDULER_NAME)
                for index in range(options.num_pods)
            )
            await create_all(client, pending)
            deadline = time.monotonic() + options.timeout_s
            await watch.wait_until(
                lambda: len(watch.placements) >= options.num_pods, deadline, check
            )
            started_at = time.monotonic()
            scheduler = start_scheduler(self._processes, kubeconfig, SCHEDULER_NAME, port=0)
            await watch.wait_until(lambda: watch.num_bound > 0, deadline, check)
            cpu_s_at_first_bind = cpu_seconds(scheduler.pid)
            await watch.wait_until(lambda: watch.num_bound >= options.num_pods, deadline, check)
            cost = Cost(
                cpu_seconds(scheduler.pid), cpu_s_at_first_bind, peak_memory_mib(scheduler.pid)
            )
            return drain_result(
                options,
                list(watch.placements.values()),
                await read_cluster(client),
                started_at,
                cost,
            )


async def _create_nodes(client: ApiClient, count: int) -> None:
    """Make the nodes ready: an API server taints new ones until a controller sees them ready."""
    nodes = [bench_node(index) for index in range(count)]
    await create_all(client, nodes)
    for node in nodes:
        path = f"/api/v1/nodes/{node['metadata']['name']}"
        await client.patch(path, b'{"spec":{"taints":null}}')


def run_drain(options: DrainOptions, console: Console, as_json: bool) -> int:
    """Run the benchmark and print its result; the exit status."""
    with (
        tempfile.TemporaryDirectory(prefix="stowage-bench-") as name,
        ChildProcesses(Path(name)) as processes,
    ):
        try:
            result = asyncio.run(Drain(options, processes, Path(name)).run())
        except FAILURES as error:
            console.print(f"[red]failed:[/red] {escape(str(error))}")
            return 1
    if as_json:
        console.out(msgspec.json.encode(result).decode())
    else:
        print_drain_result(console, result)
    return 1 if result.problems else 0
