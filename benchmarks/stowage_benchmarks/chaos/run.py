"""A run of `stowage bench chaos`: cluster, replicas, load and faults, and the verdict.

The verdict rests on the history that the cluster's store writes (`chaos.history`), so faults of
watches and answers do not affect it.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections import Counter
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
from stowage_benchmarks.chaos.cluster import CALM, CLUSTER, FAULTY, HISTORY, kubeconfig_of
from stowage_benchmarks.chaos.history import HistoryReader
from stowage_benchmarks.chaos.judge import ChaosOptions, Judge, Storm
from stowage_benchmarks.chaos.ledger import Ledger
from stowage_benchmarks.chaos.load import ChaosLoad
from stowage_benchmarks.chaos.one_way import Ways
from stowage_benchmarks.chaos.pods import classes, devices, pod_lives
from stowage_benchmarks.chaos.replays import replay_all
from stowage_benchmarks.chaos.replicas import Replicas
from stowage_benchmarks.chaos.report import write_report
from stowage_benchmarks.chaos.result import (
    ChaosResult,
    this_machine,
)
from stowage_benchmarks.chaos.trouble import Trouble, create_config_map

_READ_EVERY_S = 0.05
_FIRST_BINDING_WITHIN_S = 180.0
_WARM_UP_S = 30.0


class ChaosRun:
    """One run.

    Args:
        options: What to run.
        processes: Where cluster and replicas are started.
        directory: For kubeconfigs, logs and the history.
        say: Called with progress messages.
        report: Where the report so far goes every ten seconds; None for nowhere.
    """

    def __init__(
        self,
        options: ChaosOptions,
        processes: ChildProcesses,
        directory: Path,
        say: Callable[[str], None],
        report: Path | None = None,
    ) -> None:
        self._options = options
        self._report = report
        self._machine = this_machine()
        self._plan = options.plan()
        self._began_at = 0.0
        self._memory_mib = 0.0
        self._done: Counter[str] = Counter()
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
            CLUSTER,
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
        self._done = trouble.done
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
        plan, self._began_at = self._plan, time.monotonic()
        async with _beside(load.create_pods(self._options.pods_per_s), self._tell()):
            await self._first_binding()
            await asyncio.sleep(min(_WARM_UP_S, plan.duration_s / 10))
            self._memory_mib = self._replicas.memory_mib()
            self._say(f"plan {plan.digest}: {len(plan.steps)} steps")
            await trouble.carry_out(plan)
        return self._storm_so_far()

    def _storm_so_far(self) -> Storm:
        pods_per_s = self._ledger.counts["pods created"] / (time.monotonic() - self._began_at)
        return Storm(
            self._machine,
            self._plan.digest,
            dict(self._done),
            pods_per_s,
            self._memory_mib,
            self._began_at,
        )

    def report_so_far(self) -> bool:
        """Write what has been found by now, once there are pods; whether it was written.

        Raises:
            OSError: the file cannot be written.
        """
        if self._report is None or not self._began_at:
            return False
        write_report(self._report, self._judge.so_far(self._storm_so_far()))
        return True

    async def _first_binding(self) -> None:
        deadline = time.monotonic() + _FIRST_BINDING_WITHIN_S
        while not self._ledger.counts["pods bound"]:
            if time.monotonic() > deadline:
                raise NotReadyError("no replica bound a pod")
            await asyncio.sleep(_READ_EVERY_S)

    async def _tell(self) -> None:
        """Say and write every ten seconds what has been found."""
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
            self.report_so_far()


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
    options: ChaosOptions,
    say: Callable[[str], None],
    keep_logs: Path | None,
    report: Path | None = None,
) -> ChaosResult:
    """Run once in separate processes.

    Args:
        options: What to run.
        say: Called with progress messages.
        keep_logs: Where the history and the logs stay; None to keep none.
        report: Where the report goes: so far every ten seconds, and whole at the end. It stays if
            the run is interrupted.

    Raises:
        ProcessDiedError, NotReadyError, ApiError, OSError: the run could not be completed.
    """
    with tempfile.TemporaryDirectory(prefix="stowage-chaos-") as name:
        directory = keep_logs or Path(name)
        directory.mkdir(parents=True, exist_ok=True)
        with ChildProcesses(directory) as processes:
            run = ChaosRun(options, processes, directory, say, report)
            try:
                result = asyncio.run(run.run())
            except BaseException as error:
                # Ctrl-C and SIGTERM, too.
                if run.report_so_far():
                    say(f"ended early: the report so far is in {report}")
                # All exceptions of a group have one cause; the first names it.
                raise _first(error) from None
        # The replicas have ended, so their recordings are whole.
        if options.replays:
            result = result.with_replays(replay_all(directory, say))
        if report is not None:
            write_report(report, result)
        return result


def _first(error: BaseException) -> BaseException:
    return _first(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error
