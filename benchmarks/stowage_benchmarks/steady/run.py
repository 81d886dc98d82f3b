"""Measures a running scheduler while pods are created at a constant rate."""

from __future__ import annotations

import asyncio
import tempfile
import time
from contextlib import suppress
from itertools import count
from pathlib import Path

import msgspec

from simcluster.cli.cluster_flags import Shape
from simcluster.harness.apply import create, create_all
from simcluster.harness.audit import overcommitted_nodes, read_cluster
from simcluster.harness.launch import NotReadyError, start_cluster, wait_until_ready
from simcluster.harness.placements import PlacementWatch
from simcluster.harness.processes import ChildProcess, ChildProcesses
from simcluster.ports import reserved_port
from stowage.operator.client.api_client import ApiClient
from stowage.operator.client.api_error import ApiError
from stowage.operator.client.connection import Connection, connect
from stowage_benchmarks.e2e.cleaning import clean
from stowage_benchmarks.e2e.run import create_nodes
from stowage_benchmarks.e2e.scenarios import MEASURED_PREFIX, SCENARIOS, Size
from stowage_benchmarks.process_cost import cpu_seconds, peak_memory_mib
from stowage_benchmarks.steady.hand_over import LEASE_PATH, measure_hand_over
from stowage_benchmarks.steady.request_count import answered_requests
from stowage_benchmarks.steady.result import Load, RateResult, SteadyResult, SteadyRun, rate_result

NUM_FIRST_PODS = 20
"""Pods that wait when the scheduler starts: their bindings are the first."""
AFTER_LOAD_S = 1.0
"""Events are written after the bindings; they belong to the cost of a pod."""


class SteadyMeasurement:
    """One run of one scheduler.

    Args:
        run: What to run.
        processes: Starts cluster and scheduler.
        directory: For the kubeconfig of a simulated cluster.
    """

    def __init__(self, run: SteadyRun, processes: ChildProcesses, directory: Path) -> None:
        self._run = run
        self._scenario = SCENARIOS[run.workload]
        self._processes = processes
        self._directory = directory
        self._numbers = count()
        self._sent_at: dict[str, float] = {}
        self._idle_requests_per_s = 0.0

    async def measure(self) -> SteadyResult:
        """Prepare, measure start, idle process, each rate and the hand-over, and clean up.

        Raises:
            ProcessDiedError, NotReadyError: cluster or scheduler did not start, or ended.
            ApiError: an object was refused.
            OSError: the scheduler's program does not exist.
        """
        run = self._run
        kubeconfig = run.kubeconfig or await self._start_cluster()
        connection = await connect(str(kubeconfig))
        try:
            client = ApiClient(connection)
            await self._prepare(client)
            async with PlacementWatch(client, _is_measured) as watch:
                result = await self._measure_process(connection, client, watch, kubeconfig)
                if run.hand_over and not run.contender.command:
                    hand_over_s = await measure_hand_over(
                        self._processes,
                        kubeconfig,
                        run.scheduler_name,
                        lambda: self._bind_one(client, watch),
                    )
                    result = msgspec.structs.replace(result, hand_over_s=round(hand_over_s, 2))
            problems = (*result.problems, *overcommitted_nodes(await read_cluster(client)))
            if run.kubeconfig is not None:
                await clean(client)
                with suppress(ApiError):
                    await client.delete(LEASE_PATH, b"{}")
            return msgspec.structs.replace(result, problems=problems)
        finally:
            await connection.close()

    async def _start_cluster(self) -> Path:
        # Kubelets and controllers would take CPU time from the scheduler.
        return await start_cluster(
            self._processes,
            self._directory,
            self._run.nodes,
            Shape.BENCH,
            "--no-kubelet",
            "--no-controllers",
        )

    async def _prepare(self, client: ApiClient) -> None:
        run = self._run
        per_rate = sum(int(rate * run.seconds) for rate in run.rates)
        size = Size(run.nodes, run.running, per_rate + NUM_FIRST_PODS + 2)
        if run.kubeconfig is not None:
            await clean(client)
            await create_nodes(client, size)
        await create_all(client, self._scenario.setting(size, run.scheduler_name))

    async def _measure_process(
        self,
        connection: Connection,
        client: ApiClient,
        watch: PlacementWatch,
        kubeconfig: Path,
    ) -> SteadyResult:
        run = self._run
        await asyncio.gather(*(self._create(client) for _ in range(NUM_FIRST_PODS)))
        started_at = time.monotonic()
        with reserved_port() as port:
            scheduler = run.contender.start(self._processes, kubeconfig, run.scheduler_name, port)
            await self._wait_until_bound(watch, NUM_FIRST_PODS)
            first_bind_at = min(each.bound_at or 0.0 for each in watch.placements.values())
            await asyncio.sleep(AFTER_LOAD_S)
            start_cpu_s = cpu_seconds(scheduler.pid)
            idle_cpu_s = await self._measure_idle(connection, scheduler)
            rates = [
                await self._measure_rate(connection, client, watch, scheduler, rate)
                for rate in run.rates
            ]
            peak_mib = peak_memory_mib(scheduler.pid)
            self._processes.stop(scheduler)
        return SteadyResult(
            run.contender.name,
            run.workload,
            run.nodes,
            run.running,
            rates,
            idle_cpu_ms_per_s=round(1000 * idle_cpu_s / run.idle_s, 2),
            ready_s=await self._ready_s(kubeconfig),
            first_bind_s=round(first_bind_at - started_at, 2),
            start_cpu_s=round(start_cpu_s, 2),
            rss_mib=round(peak_mib),
            problems=tuple(_problems(watch, rates)),
        )

    async def _ready_s(self, kubeconfig: Path) -> float | None:
        """Seconds until another process of Stowage is ready; None for another command.

        Not the process of the first binding: to be asked while it starts slows it down, and the
        other command is not asked.
        """
        run = self._run
        if run.contender.command:
            return None
        started_at = time.monotonic()
        with reserved_port() as port:
            scheduler = run.contender.start(self._processes, kubeconfig, run.scheduler_name, port)
            await wait_until_ready(scheduler, port)
            ready_s = time.monotonic() - started_at
            self._processes.stop(scheduler)
        return round(ready_s, 2)

    async def _measure_idle(self, connection: Connection, scheduler: ChildProcess) -> float:
        """CPU seconds of the process while nothing happens; also counts the server's requests."""
        before, cpu_s = await answered_requests(connection), cpu_seconds(scheduler.pid)
        await asyncio.sleep(self._run.idle_s)
        cpu_s = cpu_seconds(scheduler.pid) - cpu_s
        after = await answered_requests(connection)
        if before is not None and after is not None:
            # One of them is the first question itself.
            self._idle_requests_per_s = max(0.0, after - before - 1) / self._run.idle_s
        return cpu_s

    async def _measure_rate(
        self,
        connection: Connection,
        client: ApiClient,
        watch: PlacementWatch,
        scheduler: ChildProcess,
        rate: float,
    ) -> RateResult:
        num_pods, num_before = int(rate * self._run.seconds), len(self._sent_at)
        before, cpu_s = await answered_requests(connection), cpu_seconds(scheduler.pid)
        began_at = time.monotonic()
        await self._create_at_rate(client, rate, num_pods)
        await self._wait_until_bound(watch, num_before + num_pods)
        await asyncio.sleep(AFTER_LOAD_S)
        cpu_s = cpu_seconds(scheduler.pid) - cpu_s
        after, requests = await answered_requests(connection), None
        if before is not None and after is not None:
            idle = self._idle_requests_per_s * (time.monotonic() - began_at)
            requests = max(0.0, after - before - 1 - num_pods - idle)
        sent_at = dict(list(self._sent_at.items())[num_before:])
        bound_at = {
            each.pod.metadata.name: each.bound_at
            for each in watch.placements.values()
            if each.bound_at is not None and each.pod.metadata.name in sent_at
        }
        return rate_result(Load(rate, sent_at, bound_at, cpu_s, requests))

    async def _create_at_rate(self, client: ApiClient, rate: float, num_pods: int) -> None:
        began_at = time.monotonic()
        async with asyncio.TaskGroup() as requests:
            for index in range(num_pods):
                delay_s = began_at + index / rate - time.monotonic()
                if delay_s > 0:
                    await asyncio.sleep(delay_s)
                requests.create_task(self._create(client))

    async def _create(self, client: ApiClient) -> None:
        pod = self._scenario.measured(next(self._numbers), self._run.scheduler_name)
        self._sent_at[pod["metadata"]["name"]] = time.monotonic()
        await create(client, pod)

    async def _bind_one(self, client: ApiClient, watch: PlacementWatch) -> None:
        """Create a pod and wait until it is bound."""
        await self._create(client)
        await self._wait_until_bound(watch, len(self._sent_at))

    async def _wait_until_bound(self, watch: PlacementWatch, num_pods: int) -> None:
        """Wait until that many pods are bound.

        Raises:
            NotReadyError: they were not bound in time.
        """
        deadline = time.monotonic() + self._run.timeout_s
        check = self._processes.check
        if not await watch.wait_until(lambda: watch.num_bound >= num_pods, deadline, check):
            raise NotReadyError(f"{watch.num_bound} pods were bound of {num_pods}")


def _is_measured(pod_name: str) -> bool:
    return pod_name.startswith(MEASURED_PREFIX)


def _problems(watch: PlacementWatch, rates: list[RateResult]) -> list[str]:
    problems = [
        f"pod {each.pod.metadata.namespaced_name} was seen on {' and '.join(each.node_names)}"
        for each in watch.placements.values()
        if len(each.node_names) > 1
    ]
    problems += [
        f"at {each.rate:g} a second, {each.bound} pods were bound of {each.pods}"
        for each in rates
        if each.bound < each.pods
    ]
    return problems


def run_steady(run: SteadyRun) -> SteadyResult:
    """Measure once in separate processes.

    Raises:
        ProcessDiedError, NotReadyError, ApiError, OSError: the run could not be completed.
    """
    with (
        tempfile.TemporaryDirectory(prefix="stowage-bench-") as name,
        ChildProcesses(Path(name)) as processes,
    ):
        return asyncio.run(SteadyMeasurement(run, processes, Path(name)).measure())
