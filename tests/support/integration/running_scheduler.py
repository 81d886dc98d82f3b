"""The real scheduler, in the test's event loop or as a separate process."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simcluster.tests.support.timeouts import WAIT_TIMEOUT_S
from stowage.api.config.feature_gates import DEFAULT_FEATURE_GATES
from stowage.api.config.loading import load_configuration
from stowage.cli.profiles import make_frameworks
from stowage.engine import Engine, make_engine
from stowage.framework import PluginFactory
from stowage.operator.app import run
from stowage.operator.run_options import EngineDependencies, RunOptions
from stowage.plugins import in_tree_registry

CONFIGURATION = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [{"schedulerName": "stowage"}],
}
QUEUE_SETTINGS = {"initial_backoff_s": 0.25, "max_backoff_s": 2.0, "max_in_unschedulable_s": 300.0}
"""Shorter backoffs than by default, so that tests need not wait."""


@dataclass
class RunningScheduler:
    """A running scheduler and its engine."""

    engine: Engine
    process: asyncio.Task[int]

    async def ended(self) -> None:
        """Return once it has ended by itself."""
        await asyncio.wait([self.process], timeout=WAIT_TIMEOUT_S)
        assert self.process.done()

    @property
    def num_waiting(self) -> int:
        """Number of pods in all queues."""
        return sum(self.engine.pending_counts().values())

    @property
    def is_idle(self) -> bool:
        """Whether no binding is in progress and the watch has confirmed each one."""
        waiting = self.engine.pending_counts()
        return (
            self.engine.in_flight() == 0
            and self.engine.cache_counts()["assumed_pods"] == 0
            and waiting["active"] == waiting["backoff"] == 0
        )


@asynccontextmanager
async def running_scheduler(
    kubeconfig: Path,
    configuration: Mapping[str, Any] = CONFIGURATION,
    plugins: Sequence[PluginFactory] = (),
    ends_with: int = 0,
    **changes: Any,
) -> AsyncIterator[RunningScheduler]:
    """A scheduler in this event loop; `changes` are `RunOptions`.

    It ends with the exit status `ends_with`.
    It has the default profile, named stowage, unless `configuration` has others, which may name
    `plugins`, too.
    """
    gates = changes.get("feature_gates", DEFAULT_FEATURE_GATES)
    registry = in_tree_registry(gates).merged_with(*plugins)
    loaded = load_configuration(configuration)
    frameworks = make_frameworks(loaded, registry)
    engines: list[Engine] = []
    made, stop = asyncio.Event(), asyncio.Event()

    def make(parts: EngineDependencies) -> Engine:
        engine = make_engine(
            frameworks,
            parts.choose,
            queue_settings=QUEUE_SETTINGS,
            wall_clock=parts.wall_clock,
        )
        engines.append(engine)
        made.set()
        return engine

    options: dict[str, Any] = {"serving": None, "stop": stop, "owns_process": False, **changes}
    process = asyncio.create_task(
        run(
            RunOptions(
                engine_factory=make,
                scheduler_names=tuple(each.scheduler_name for each in loaded.profiles),
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
        yield RunningScheduler(engines[0], process)
    finally:
        stop.set()
        assert await asyncio.wait_for(process, WAIT_TIMEOUT_S) == ends_with


@asynccontextmanager
async def scheduler_process(
    kubeconfig: Path, log: Path, *more_flags: str
) -> AsyncIterator[asyncio.subprocess.Process]:
    """``stowage run`` without a lease; killed at the end if it still runs."""
    flags = ("--leader-elect=false", "--secure-port=0", f"--kubeconfig={kubeconfig}", *more_flags)
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
