"""The real scheduler, running: as a guest in the test's event loop, or as a process of its own."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simcluster.tests.support.timeouts import WAIT_TIMEOUT_S
from stowage.api.config.loading import load_configuration
from stowage.cli.profiles import make_frameworks
from stowage.engine import Engine, make_engine
from stowage.operator import EngineDependencies, RunOptions, run

CONFIGURATION = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [{"schedulerName": "stowage"}],
}
QUEUE_SETTINGS = {"initial_backoff_s": 0.25, "max_backoff_s": 2.0, "max_in_unschedulable_s": 300.0}
"""Pods come back sooner than they do by default, so that a test need not wait for them."""


@dataclass
class RunningScheduler:
    """A scheduler at work, and the engine in it."""

    engine: Engine

    @property
    def num_waiting(self) -> int:
        """Pods in any of its queues."""
        return sum(self.engine.pending_counts().values())

    @property
    def is_idle(self) -> bool:
        """Whether nothing is under way: no binding, and each one confirmed by the watch."""
        waiting = self.engine.pending_counts()
        return (
            self.engine.in_flight() == 0
            and self.engine.cache_counts()["assumed_pods"] == 0
            and waiting["active"] == waiting["backoff"] == 0
        )


@asynccontextmanager
async def running_scheduler(
    kubeconfig: Path, configuration: Mapping[str, Any] = CONFIGURATION, **changes: Any
) -> AsyncIterator[RunningScheduler]:
    """One profile, named stowage, in this event loop; `changes` are `RunOptions`' own.

    It is the default profile unless `configuration` has another.
    """
    frameworks = make_frameworks(load_configuration(configuration))
    engines: list[Engine] = []
    made, stop = asyncio.Event(), asyncio.Event()

    def make(parts: EngineDependencies) -> Engine:
        engine = make_engine(frameworks, parts.choose, queue_settings=QUEUE_SETTINGS)
        engines.append(engine)
        made.set()
        return engine

    options: dict[str, Any] = {"serving": None, "stop": stop, "owns_process": False, **changes}
    process = asyncio.create_task(
        run(
            RunOptions(
                engine_factory=make,
                scheduler_names=("stowage",),
                kubeconfig=str(kubeconfig),
                **options,
            )
        )
    )
    ready = asyncio.create_task(made.wait())
    await asyncio.wait([process, ready], return_when=asyncio.FIRST_COMPLETED)
    ready.cancel()
    if process.done():
        await process
    try:
        yield RunningScheduler(engines[0])
    finally:
        stop.set()
        assert await asyncio.wait_for(process, WAIT_TIMEOUT_S) == 0


@asynccontextmanager
async def scheduler_process(
    kubeconfig: Path, log: Path
) -> AsyncIterator[asyncio.subprocess.Process]:
    """``stowage run`` without a lease; killed at the end unless it has ended before."""
    flags = ("--leader-elect=false", "--secure-port=0", f"--kubeconfig={kubeconfig}")
    with log.open("ab") as output:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "stowage.cli", "run"), *flags, stdout=output, stderr=output
        )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
