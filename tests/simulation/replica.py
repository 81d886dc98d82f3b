"""One replica of the scheduler: the real process on a virtual clock and network."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Collection
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from scheduler.engine import Engine
from scheduler.operator.api_client import LOST_ANSWER_ERRORS, ApiClient
from scheduler.operator.api_error import ApiError
from scheduler.operator.app import Process, RunOptions, Surroundings
from scheduler.operator.backoff import Backoff, Jitter, Sleep
from scheduler.operator.clock import Clock
from scheduler.operator.connection import Connection
from scheduler.operator.engine_protocol import EngineParts
from scheduler.operator.leader_election import LeaderElectionOptions
from scheduler.operator.patience import Patience
from scheduler.operator.pending_pods import PendingPods, pending_pods_selector
from scheduler.operator.reflector import complete_lines
from tests.simulation.loop import VirtualLoop
from tests.simulation.network import Network, virtual_connection
from tests.simulation.server import PODS
from tests.support.engines import default_engine

SCHEDULER_NAME = "stowage"
RESTART_DELAY_S = 2.0
PATIENCE = Patience(request_s=10.0, silence_s=90.0, pause_s=5.0)
_EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


class ListAndWatch:
    """Pending pods by a plain list and watch, where Kopf is in a real process."""

    def __init__(
        self,
        connection: Connection,
        pods: PendingPods,
        scheduler_names: Collection[str],
        _after_start: Callable[[], None],
        jitter: Jitter,
        sleep: Sleep,
    ) -> None:
        self._client = ApiClient(connection)
        self._pods = pods
        self._params = {"fieldSelector": pending_pods_selector(scheduler_names)}
        self._backoff = Backoff(jitter, 0.2, connection.patience.pause_s)
        self._sleep = sleep

    async def run(self) -> None:
        """List and watch until cancelled."""
        version = ""
        while True:
            try:
                if not version:
                    body = await self._client.get(PODS, self._params)
                    version = self._pods.take_page(body, is_first=True).resource_version
                version = await self._watch(version)
            except (ApiError, *LOST_ANSWER_ERRORS) as error:
                if isinstance(error, ApiError) and error.status == 410:
                    version = ""
                await self._sleep(self._backoff.next_delay(error))

    def select(self, _scheduler_names: Collection[str]) -> None:
        """The profiles stay as they are here."""

    async def _watch(self, version: str) -> str:
        params = {"watch": "true", "resourceVersion": version, **self._params}
        chunks = self._client.stream(PODS, params, self._client.patience.silence_s)
        async for lines in complete_lines(chunks):
            for event in map(msgspec.json.decode, lines):
                if event["type"] == "ERROR":
                    raise ApiError(event["object"]["code"], "Expired")
                version = event["object"]["metadata"]["resourceVersion"]
                self._take(event)
            self._backoff.reset()
        return version

    def _take(self, event: dict[str, Any]) -> None:
        if event["type"] == "DELETED":
            self._pods.take_departure(event["object"]["metadata"]["uid"])
        else:
            self._pods.take_event(event["type"], event["object"])


class Replica:
    """A scheduler that is started again whenever it ends.

    Args:
        name: Of the replica; its processes are numbered.
        loop: Where it runs.
        network: What it reaches the server by.
        rng: Its luck.

    Attributes:
        engine: Of the present process; None between two.
        is_running: Whether there is a process, stopped or not.
    """

    def __init__(self, name: str, loop: VirtualLoop, network: Network, rng: random.Random) -> None:
        self.engine: Engine | None = None
        self.is_running = False
        self.process_name = ""
        self._name = name
        self._loop = loop
        self._network = network
        self._rng = rng
        self._num_starts = 0
        self._told_to_end = asyncio.Event()

    def start(self) -> None:
        """Start a fresh process."""
        self._num_starts += 1
        self.is_running = True
        self.process_name = f"{self._name}.{self._num_starts}"
        task = self._loop.start_process(self.process_name, self._main)
        task.add_done_callback(self._ended, context=None)

    def kill(self) -> None:
        """SIGKILL, and a restart by whoever looks after it."""
        if not self.is_running:
            return
        self._loop.kill_process(self.process_name)
        self.is_running = False
        self.engine = None
        self._loop.call_outside(RESTART_DELAY_S, self.start)

    def retire(self) -> None:
        """SIGTERM: it releases the lease and ends; a fresh one follows."""
        self._told_to_end.set()

    def stop_for(self, seconds: float) -> None:
        """SIGSTOP, and SIGCONT later; a process killed meanwhile stays dead."""
        if not self.is_running:
            return
        name = self.process_name
        self._loop.stop_process(name)
        self._loop.call_outside(seconds, self._loop.continue_process, name)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self.is_running = False
        self.engine = None
        if not task.cancelled() and task.exception() is not None:
            self._loop.call_exception_handler(
                {"message": f"{task.get_name()} crashed", "exception": task.exception()}
            )
        if not task.cancelled():
            self._loop.call_outside(RESTART_DELAY_S, self.start)

    async def _main(self) -> None:
        self._told_to_end = asyncio.Event()
        connection = virtual_connection(self.process_name, self._network, PATIENCE)
        options = RunOptions(
            engine_factory=self._make_engine,
            scheduler_names=(SCHEDULER_NAME,),
            serving=None,
            leader_election=LeaderElectionOptions(identity=self.process_name),
            patience=PATIENCE,
            stop=self._told_to_end,
            owns_process=False,
        )
        surroundings = Surroundings(self._clock(), ListAndWatch)
        async with AsyncExitStack() as cleanup:
            await Process(options, connection, surroundings).run(cleanup)

    def _make_engine(self, parts: EngineParts) -> Engine:
        self.engine = default_engine(parts.choose, profile={"schedulerName": SCHEDULER_NAME})
        return self.engine

    def _clock(self) -> Clock:
        now, rng = self._loop.time, self._rng

        def timestamp() -> str:
            return (_EPOCH + timedelta(seconds=now())).isoformat()

        return Clock(
            monotonic=now,
            timestamp=timestamp,
            timestamp_micro=timestamp,
            unix_nanoseconds=lambda: int(now() * 1e9) + rng.randrange(1_000_000),
            jitter=rng.random,
            choose=rng.randrange,
        )
