"""The demo itself: start, apply, and watch until all pods are settled."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from simcluster.cli.cluster_flags import Shape
from simcluster.cli.kubectl import kubectl_command
from simcluster.demo.outcome import Outcome
from simcluster.demo.report import print_report
from simcluster.demo.sample import (
    SCHEDULER_NAME,
    expected_pods,
    gpu_node_file,
    is_meant_to_stay_pending,
    sample_objects,
)
from simcluster.harness.apply import create
from simcluster.harness.audit import read_cluster
from simcluster.harness.failures import FAILURES
from simcluster.harness.launch import start_cluster, start_scheduler, wait_until_ready
from simcluster.harness.placements import Placement, PlacementWatch
from simcluster.harness.processes import ChildProcesses
from simcluster.kubelet.node_file import read_node_file
from simcluster.ports import reserved_port
from stowage.operator.client.api_client import ApiClient
from stowage.operator.client.connection import connect

NUM_PLAIN_NODES = 96
PLACEMENT_TIMEOUT_S = 120.0


@dataclass(frozen=True, slots=True)
class Demo:
    """One run of the demo.

    Attributes:
        directory: For the kubeconfig and the logs.
    """

    console: Console
    processes: ChildProcesses
    directory: Path

    async def run(self) -> tuple[Outcome, Path]:
        """Run to the end; returns what happened and the cluster's kubeconfig.

        Raises:
            ProcessDiedError, NotReadyError: cluster or scheduler did not start, or ended.
            ApiError: a manifest was refused.
        """
        with gpu_node_file() as node_file:
            num_nodes = NUM_PLAIN_NODES + len(read_node_file(node_file))
            self.console.print(f"starting a simulated cluster of {num_nodes} nodes")
            kubeconfig = await start_cluster(
                self.processes,
                self.directory,
                NUM_PLAIN_NODES,
                Shape.DEMO,
                f"--node-file={node_file}",
            )
        self.console.print("starting the scheduler")
        with reserved_port() as port:
            scheduler = start_scheduler(self.processes, kubeconfig, SCHEDULER_NAME, port)
            await wait_until_ready(scheduler, port)
        connection = await connect(str(kubeconfig))
        try:
            return await self._place(ApiClient(connection)), kubeconfig
        finally:
            await connection.close()

    async def _place(self, client: ApiClient) -> Outcome:
        objects = sample_objects()
        total = expected_pods(objects)
        self.console.print(f"applying {len(objects)} sample objects that make {total} pods")
        with self.console.status("binding pods") as status:
            async with PlacementWatch(client) as watch:
                for obj in objects:
                    await create(client, obj)

                def check() -> None:
                    self.processes.check()
                    status.update(_progress(watch, total))

                deadline = time.monotonic() + PLACEMENT_TIMEOUT_S
                await watch.wait_until(lambda: _is_settled(watch, total), deadline, check)
                return Outcome(await read_cluster(client), list(watch.placements.values()), total)


def _progress(watch: PlacementWatch, total: int) -> str:
    placements = watch.placements.values()
    refused = sum(found.bound_at is None and found.is_unschedulable for found in placements)
    return f"{watch.num_bound} of {total} pods bound, {refused} unschedulable"


def _is_settled(watch: PlacementWatch, total: int) -> bool:
    """Whether all pods exist, and each was started by its kubelet or is meant to stay pending.

    Other pods may be unschedulable for a moment, while the scheduler has not seen their claims.
    """
    placements = watch.placements.values()
    return len(placements) >= total and all(map(_is_pod_settled, placements))


def _is_pod_settled(placement: Placement) -> bool:
    if placement.bound_at is None:
        return placement.is_unschedulable and is_meant_to_stay_pending(
            placement.pod.metadata.annotations
        )
    return placement.pod.status.phase != "Pending"


def run_demo(demo: Demo, keep: bool) -> list[str]:
    """Run the demo, report, and keep it running for ``keep``; returns problems, a sentence each."""
    try:
        outcome, kubeconfig = asyncio.run(demo.run())
    except FAILURES as error:
        return [str(error)]
    print_report(demo.console, outcome)
    problems = outcome.problems()
    if not problems:
        demo.console.print(
            "[green]ok:[/green] every pod that fits a node was bound, once; no node is overfull"
        )
    if keep:
        _keep_running(demo, kubeconfig)
    return problems


def _keep_running(demo: Demo, kubeconfig: Path) -> None:
    demo.console.print(
        "still running until Ctrl-C; try:\n"
        f"  {kubectl_command()} --kubeconfig {kubeconfig} -n harbour get pods -o wide\n"
        f"  {kubectl_command()} --kubeconfig {kubeconfig} -n harbour describe pod whale\n"
        f"scheduler log: {demo.directory / 'scheduler.log'}",
        highlight=False,
        soft_wrap=True,
    )
    try:
        while True:
            demo.processes.check()
            time.sleep(0.5)
    except KeyboardInterrupt:
        demo.console.print("stopping")
