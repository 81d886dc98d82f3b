"""A replica of the scheduler: the real process on a virtual clock and network."""

from __future__ import annotations

import asyncio
import random
from contextlib import AsyncExitStack
from typing import Any, TypeAlias

from msgspec.structs import replace

from stowage.api.config.feature_gates import DEFAULT_FEATURE_GATES, parse_feature_gates
from stowage.api.config.loading import Extender, InvalidConfiguration
from stowage.engine import CallRecorder, Engine, Journal
from stowage.operator.client.timeouts import Timeouts
from stowage.operator.clock import Clock
from stowage.operator.configuration.live_configuration import LiveConfiguration, LoadedConfiguration
from stowage.operator.environment import Environment
from stowage.operator.extenders.client import ExtenderClient
from stowage.operator.lease import LeaderElectionOptions
from stowage.operator.process import Process
from stowage.operator.run_options import EngineDependencies, RunOptions
from tests.simulation.configurations import CONFIG_MAP_KEY, Composition, text_in
from tests.simulation.extender_network import VirtualExtenderClient
from tests.simulation.extender_servers import ExtenderServer
from tests.simulation.kept_files import KeptFiles
from tests.simulation.loop import VirtualLoop
from tests.simulation.network import Network, virtual_connection
from tests.simulation.plain_watch import (
    ConfigMapFollower,
    PendingPodsWatch,
    ReaderWithoutThread,
)
from tests.simulation.server import CONFIG_MAPS, EPOCH, wall_time

Recordings: TypeAlias = list[tuple[LoadedConfiguration, CallRecorder | None]]

RESTART_DELAY_S = 2.0
WITHOUT_GROUPS = parse_feature_gates(["GenericWorkload=false"])
PATIENCE = Timeouts(request_s=10.0, watch_idle_s=90.0, max_backoff_s=5.0)


class Replica:
    """A scheduler process that is restarted whenever it ends.

    Args:
        name: Name of the replica; its processes are numbered.
        loop: The event loop.
        network: Connects it with the server.
        extenders: The extender servers, by URL.
        rng: Draws its random choices.

    Attributes:
        engine: The engine of the running process; None if none runs.
        is_running: Whether a process exists, stopped or not.
        process_name: Name of the running or the last process.
        wall_clock_error_s: Error of its wall clock.
        has_gangs: Whether it looks for pod groups; otherwise it sends no requests about them.
        recordings: Receives the configuration and the journal of each process; None keeps none.
        files: Where the processes record and log their decisions; None writes no files.
    """

    def __init__(
        self,
        name: str,
        loop: VirtualLoop,
        network: Network,
        extenders: dict[str, ExtenderServer],
        rng: random.Random,
    ) -> None:
        self.engine: Engine | None = None
        self.is_running = False
        self.process_name = ""
        self.wall_clock_error_s = 0.0
        self.has_gangs = False
        self.recordings: Recordings | None = None
        self.files: KeptFiles | None = None
        self._name = name
        self._loop = loop
        self._network = network
        self._extenders = extenders
        self._rng = rng
        self._num_starts = 0
        self._configuration: LiveConfiguration | None = None
        self._told_to_end = asyncio.Event()

    @property
    def configuration_hash(self) -> str:
        """Hash of the active configuration; empty if no process runs."""
        return "" if self._configuration is None else self._configuration.active.hash

    def start(self) -> None:
        """Start a new process."""
        self._num_starts += 1
        self.is_running = True
        self.process_name = f"{self._name}.{self._num_starts}"
        task = self._loop.start_process(self.process_name, self._main)
        task.add_done_callback(self._ended, context=None)

    def kill(self) -> None:
        """Send SIGKILL; a new process follows."""
        if not self.is_running:
            return
        self._loop.kill_process(self.process_name)
        self._forget()
        self._loop.call_outside(RESTART_DELAY_S, self.start)

    def retire(self) -> None:
        """Send SIGTERM: the process releases the lease and ends; a new one follows."""
        self._told_to_end.set()

    def stop_for(self, seconds: float) -> None:
        """Send SIGSTOP, and SIGCONT later unless the process was killed in between."""
        if not self.is_running:
            return
        name = self.process_name
        self._loop.stop_process(name)
        self._loop.call_outside(seconds, self._loop.continue_process, name)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._forget()
        if task.cancelled():
            return
        if task.exception() is not None:
            self._loop.call_exception_handler(
                {"message": f"{task.get_name()} crashed", "exception": task.exception()}
            )
        self._loop.call_outside(RESTART_DELAY_S, self.start)

    def _forget(self) -> None:
        self.is_running = False
        self.engine = None
        self._configuration = None

    async def _main(self) -> None:
        self._told_to_end = asyncio.Event()
        stored = self._network.server.collection(CONFIG_MAPS).get(CONFIG_MAP_KEY)
        try:
            composition = Composition(text_in(stored or {"data": {}}))
        except (InvalidConfiguration, KeyError):
            # The process logs the error and ends.
            return
        connection = virtual_connection(self.process_name, self._network, PATIENCE)

        def make_engine(parts: EngineDependencies) -> Engine:
            if self.recordings is not None:
                parts = replace(parts, journal=Journal(max_entries=1_000_000))
                self.recordings.append((composition.loaded, parts.journal))
            self.engine = composition.make_engine(parts)
            return self.engine

        files = self.files
        options = RunOptions(
            engine_factory=make_engine,
            scheduler_names=composition.scheduler_names,
            serving=None,
            leader_election=LeaderElectionOptions(identity=self.process_name),
            configuration=composition.loaded,
            config_map=composition.config_map_options,
            extenders=composition.extenders,
            timeouts=PATIENCE,
            stop=self._told_to_end,
            owns_process=False,
            recording=None if files is None else files.recording(self.process_name),
            decision_log=None if files is None else files.decision_log(self.process_name),
            feature_gates=DEFAULT_FEATURE_GATES if self.has_gangs else WITHOUT_GROUPS,
        )
        environment = Environment(
            self._clock(),
            PendingPodsWatch,
            self._watch_config_map,
            ReaderWithoutThread,
            self._extender_client,
        )
        async with AsyncExitStack() as cleanup:
            await Process(options, connection, environment).run(cleanup)

    def _watch_config_map(self, *arguments: Any) -> ConfigMapFollower:
        follower = ConfigMapFollower(*arguments)
        self._configuration = follower.configuration
        return follower

    def _extender_client(self, config: Extender) -> ExtenderClient:
        return VirtualExtenderClient(config, self.process_name, self._network, self._extenders)

    def _clock(self) -> Clock:
        now, rng = self._loop.time, self._rng

        def wall_clock() -> float:
            return now() + self.wall_clock_error_s

        def unix_nanoseconds() -> int:
            return int((EPOCH.timestamp() + wall_clock()) * 1e9) + rng.randrange(1_000_000)

        return Clock(
            monotonic=now,
            timestamp=lambda: wall_time(wall_clock()),
            timestamp_micro=lambda: wall_time(wall_clock(), "microseconds"),
            unix_nanoseconds=unix_nanoseconds,
            jitter=rng.random,
            choose=rng.randrange,
        )
