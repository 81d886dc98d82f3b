"""A run of `stowage bench chaos`: cluster, replicas, load and faults, and the verdict.

The verdict rests on the history that the cluster's store writes (`chaos.history`), so faults of
watches and answers do not affect it.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

from simcluster.harness.apply import create_all
from simcluster.harness.launch import NotReadyError, wait_for_file
from simcluster.harness.processes import ChildProcess, ChildProcesses
from stowage.operator.client.api_client import ApiClient
from stowage.operator.client.connection import connect
from stowage_benchmarks.chaos.cluster import CALM, FAULTY, HISTORY, kubeconfig_of
from stowage_benchmarks.chaos.history import HistoryReader
from stowage_benchmarks.chaos.judge import ChaosOptions, Judge, Storm
from stowage_benchmarks.chaos.ledger import Ledger
from stowage_benchmarks.chaos.load import ChaosLoad
from stowage_benchmarks.chaos.one_way import Ways
from stowage_benchmarks.chaos.pods import classes, devices, pod_lives
from stowage_benchmarks.chaos.replays import replay_all
from stowage_benchmarks.chaos.replicas import Replicas
from stowage_benchmarks.chaos.result import (
    ChaosResult,
    this_machine,
)
from stowage_benchmarks.chaos.trouble import Trouble, create_config_map

_READ_EVERY_S = 0.05
_FIRST_BINDING_WITHIN_S = 180.0
_WARM_UP_S = 30.0


class _Run:
    """One run.

    Args:
        options: What to run.
        processes: Where cluster and replicas are started.
        directory: For kubeconfigs, logs and the history.
        say: Called with progress messages.
    """

    def __init__(
        self,
        options: ChaosOptions,
        processes: ChildProcesses,
        directory: Path,
        say: Callable[[str], None],
    ) -> None:
        self._options = options
        self._processes = processes
        self._directory = directory
        self._say = say
        self._ledger = Ledger(options.scheduler_name, options.times.lease_s)
        self._replicas = Replicas(processes, directory, options.times, records=options.replays)
        self._ways = Ways()
        self._judge = Judge(options, self._ledger, self._replicas)

    async def run(self) -> ChaosResult:
        """Run everything and clean up.

        Raises:
            ProcessDiedError, NotReadyError: the cluster or the replicas did not come up.
            ApiError: the calm API server refused a request.
        """
        cluster = self._start_cluster()
        await wait_for_file(cluster, kubeconfig_of(self._directory, CALM))
        calm_connection = await connect(str(kubeconfig_of(self._directory, CALM)))
        faulty_connection = await connect(str(kubeconfig_of(self._directory, FAULTY)))
        reader = HistoryReader(self._directory / HISTORY)
        await self._ways.open(self._directory)
        try:
            async with _beside(self._follow(reader, cluster)):
                return await self._measure(ApiClient(calm_connection), ApiClient(faulty_connection))
        finally:
            reader.close()
            await self._ways.close()
            await calm_connection.close()
            await faulty_connection.close()

    def _start_cluster(self) -> ChildProcess:
        options = self._options
        return self._processes.start_stowage(
            "cluster",
            "bench",
            "chaos-cluster",
            str(self._directory),
            str(options.num_nodes),
            str(options.seed),
            *(("--gangs",) if options.has_gangs else ()),
        )

    async def _follow(self, reader: HistoryReader, cluster: ChildProcess) -> None:
        while True:
            cluster.check()
            self._ledger.take(reader.new_lines())
            await asyncio.sleep(_READ_EVERY_S)

    async def _measure(self, calm: ApiClient, faulty: ApiClient) -> ChaosResult:
        options = self._options
        await create_config_map(calm, options.scheduler_name)
        await create_all(calm, classes())
        if options.has_claims:
            await create_all(calm, devices(options.num_nodes))
        trouble = Trouble(calm, faulty, self._replicas, self._ledger, self._ways)
        lives = pod_lives(
            options.seed,
            options.scheduler_name,
            with_claims=options.has_claims,
            with_gangs=options.has_gangs,
        )
        random = Random(f"{options.seed} load")  # noqa: S311 - to be repeatable
        load = ChaosLoad(calm, self._ledger, lives, random)
        self._replicas.start()
        try:
            async with _beside(self._replicas.keep_running(), load.remove_finished()):
                storm = await self._storm(load, trouble)
                load.forget_intentions()
                return await self._judge.judge(calm, storm, await trouble.hits())
        finally:
            await load.close()

    async def _storm(self, load: ChaosLoad, trouble: Trouble) -> Storm:
        """Create pods, first without faults, then with them."""
        machine, plan, counts = this_machine(), self._options.plan(), self._ledger.counts
        begin = time.monotonic()
        async with _beside(load.create_pods(self._options.pods_per_s), self._tell()):
            await self._first_binding()
            await asyncio.sleep(min(_WARM_UP_S, plan.duration_s / 10))
            memory_mib = self._replicas.memory_mib()
            self._say(f"plan {plan.digest}: {len(plan.steps)} steps")
            await trouble.carry_out(plan)
        pods_per_s = counts["pods created"] / (time.monotonic() - begin)
        return Storm(machine, plan.digest, dict(trouble.done), pods_per_s, memory_mib)

    async def _first_binding(self) -> None:
        deadline = time.monotonic() + _FIRST_BINDING_WITHIN_S
        while not self._ledger.counts["pods bound"]:
            if time.monotonic() > deadline:
                raise NotReadyError("no replica bound a pod")
            await asyncio.sleep(_READ_EVERY_S)

    async def _tell(self) -> None:
        """Report progress every ten seconds."""
        started_at = time.monotonic()
        while True:
            await asyncio.sleep(10.0)
            ledger = self._ledger
            self._say(
                f"{time.monotonic() - started_at:5.0f} s: {ledger.counts['pods created']} pods "
                f"created, {ledger.counts['pods bound']} bound, {len(ledger.waiting)} waiting, "
                f"{ledger.holding_replica or 'no replica'} leads, "
                f"{len(ledger.violations)} violations"
            )


@asynccontextmanager
async def _beside(*work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run endless tasks for as long as the block lasts; a failing task ends the block."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(each) for each in work]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()


def run_chaos(
    options: ChaosOptions, say: Callable[[str], None], keep_logs: Path | None
) -> ChaosResult:
    """Run once in separate processes.

    Raises:
        ProcessDiedError, NotReadyError, ApiError, OSError: the run could not be completed.
    """
    with tempfile.TemporaryDirectory(prefix="stowage-chaos-") as name:
        directory = keep_logs or Path(name)
        directory.mkdir(parents=True, exist_ok=True)
        with ChildProcesses(directory) as processes:
            try:
                result = asyncio.run(_Run(options, processes, directory, say).run())
            except* Exception as group:
                # All exceptions of the group have one cause; the first names it.
                raise _first(group) from None
        # The replicas have ended, so their recordings are whole.
        return result.with_replays(replay_all(directory, say)) if options.replays else result


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    first = group.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first
