"""The composition root: makes every part of the process, joins them, runs them, ends them."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import socket
import sys
from collections.abc import Awaitable, Sequence
from contextlib import AsyncExitStack
from typing import Any

import structlog
import uvloop

from stowage.engine import Engine
from stowage.operator import garbage_collection as collector
from stowage.operator.client.api_client import ApiClient
from stowage.operator.client.connection import Connection, connect
from stowage.operator.client.gated_client import GatedClient
from stowage.operator.client.rate_limit import TokenBucket
from stowage.operator.clock import Clock, timer
from stowage.operator.configuration.config_map_events import ConfigMapEventRecorder
from stowage.operator.configuration.live_configuration import ConfigMapOptions, LiveConfiguration
from stowage.operator.dispatcher import Dispatcher, Writers
from stowage.operator.environment import REAL_ENVIRONMENT, Environment
from stowage.operator.extenders.dispatcher import ExtenderDispatcher
from stowage.operator.extenders.objects import ExtenderObjects, RawObjects
from stowage.operator.inbox import Inbox
from stowage.operator.leader_election import ElectionClock, LeaderElector
from stowage.operator.logging.sink import flush_logs
from stowage.operator.loop import SchedulingLoop
from stowage.operator.metrics.configuration_metrics import ConfigurationMetrics
from stowage.operator.metrics.replica_metrics import (
    CertificateMetrics,
    ExtenderMetrics,
    ReflectorMetrics,
    ReplicaMetrics,
)
from stowage.operator.metrics.resource_metrics import ResourceMetrics
from stowage.operator.metrics.scheduler_metrics import Metrics
from stowage.operator.run_options import EngineDependencies, RunOptions
from stowage.operator.serving.delegated_access import AccessOptions, DelegatedAccess
from stowage.operator.serving.health import Check, Checks
from stowage.operator.serving.server import Content, Server
from stowage.operator.watch.cache_comparer import CacheComparer
from stowage.operator.watch.cache_sync import CacheSync
from stowage.operator.watch.kinds import ASSIGNED_PODS, NODES, REFLECTED_KINDS, ReflectedKind
from stowage.operator.watch.pending_pods import PendingPods
from stowage.operator.watch.reflector import Reflector
from stowage.operator.writers.binder import Binder
from stowage.operator.writers.event_recorder import EventClock, EventRecorder
from stowage.operator.writers.evictor import Evictor
from stowage.operator.writers.pod_reader import PodReader
from stowage.operator.writers.pod_status import PodStatusWriter
from stowage.operator.writers.pre_binder import PreBinder
from stowage.operator.writers.volume_writer import VolumeWriter

log = structlog.get_logger("stowage.operator.app")

EXIT_OK = 0
EXIT_FAILED = 1
"""Also after a lost lease, as kube-scheduler does: a fresh process starts from a fresh view."""

LATELY_S = 5.0
"""A new leader lists pending pods anew unless it has heard of them so lately."""

STOPPED_TOO_LONG = b'{"event":"stopped for longer than the lease lasts","level":"error"}\n'


def run_blocking(options: RunOptions) -> int:
    """Run under uvloop until told to end; the exit code, which a process of our own ends with."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.get_loop().set_exception_handler(_log_loop_error)
        status = runner.run(run(options))
        if options.owns_process:
            # All is done. What would be waited for now are threads that nobody needs: those that
            # ask a name server which does not answer take their time.
            flush_logs()
            os._exit(status)
        return status


async def run(options: RunOptions) -> int:
    """Run until SIGTERM, SIGINT or `options.stop`; the process's exit code.

    Raises:
        ConfigException: no usable kubeconfig, and not running in a cluster.
        OSError: the serving address is taken, or a certificate of an extender is unusable.
    """
    if options.owns_process:
        collector.raise_collection_thresholds()
    async with AsyncExitStack() as cleanup:
        connection = await connect(
            options.kubeconfig, options.context, options.master, options.timeouts
        )
        cleanup.push_async_callback(connection.close)
        process = Process(options, connection)
        return await process.run(cleanup)


class Process:
    """All parts of a running scheduler."""

    def __init__(
        self,
        options: RunOptions,
        connection: Connection,
        surroundings: Environment = REAL_ENVIRONMENT,
    ) -> None:
        self._options = options
        self._clock = surroundings.clock
        self._surroundings = surroundings
        self._connection = connection
        self._stop = options.stop or asyncio.Event()
        self._is_settled = False
        self._inbox = Inbox()
        self._metrics = Metrics(self._clock.monotonic, connection.host)
        self._client = ApiClient(connection, self._metrics.observe_request)
        self._elector = self._make_elector()
        self._gated_client = self._make_gated_client()
        self._objects = ExtenderObjects(
            self._client, self._clock.jitter, asyncio.sleep, options.extenders
        )
        self._reflectors = self._make_reflectors()
        self._view = CacheSync(self._inbox, lambda: self.has_synced, self._to_refresh())
        self._pending_pods = PendingPods(
            self._inbox, options.scheduler_names, self._objects.pods, self._clock.monotonic
        )
        self._engine = self._make_engine()
        self._pending_pod_watch = surroundings.watch_pending_pods(
            connection,
            self._pending_pods,
            options.scheduler_names,
            self._take_signals,
            self._clock.jitter,
            asyncio.sleep,
        )
        self._configuration = LiveConfiguration(
            options.configuration, self._inbox.put, self._pending_pod_watch.select
        )
        self._dispatcher = self._make_dispatcher()
        self._register_metrics()
        self._comparer = CacheComparer(self._client, self._engine)
        self._loop = SchedulingLoop(
            self._engine,
            self._inbox,
            self._dispatcher,
            self._may_schedule,
            self._clock.monotonic,
            options.loop,
        )

    @property
    def has_synced(self) -> bool:
        """Whether everything listed at the start is in the inbox."""
        return self._pending_pods.has_synced and all(
            reflector.has_synced for reflector in self._reflectors
        )

    async def run(self, cleanup: AsyncExitStack) -> int:
        """Start, go on until told to end, and end in order; the exit code."""
        self._take_signals()
        if self._options.serving is not None:
            access = await self._make_access(self._options.serving.access, cleanup)
            server = Server(self._options.serving, self._content(), access)
            await server.start()
            self._metrics.registry.register(CertificateMetrics(server.certificate))
            cleanup.push_async_callback(server.stop)
        background = self._start_background()
        cleanup.push_async_callback(_cancel, background)
        if self._elector is not None:
            cleanup.push_async_callback(self._elector.release)
        cleanup.push_async_callback(self._dispatcher.close, self._options.shutdown_grace_s)
        return await self._run_until_told(background)

    async def _make_access(
        self, options: AccessOptions, cleanup: AsyncExitStack
    ) -> DelegatedAccess:
        """Who may read, asked about as the users of these kubeconfigs, where they are given."""
        clients = []
        for kubeconfig in (options.authentication_kubeconfig, options.authorization_kubeconfig):
            if kubeconfig in (None, self._options.kubeconfig):
                clients.append(self._client)
                continue
            connection = await connect(kubeconfig, None, None, self._options.timeouts)
            cleanup.push_async_callback(connection.close)
            clients.append(ApiClient(connection, self._metrics.observe_request))
        return DelegatedAccess(clients[0], options, self._clock.monotonic, clients[1])

    async def _run_until_told(self, background: Sequence[asyncio.Task[None]]) -> int:
        scheduling = asyncio.create_task(self._loop.run(), name="scheduling")
        stopping = asyncio.create_task(self._stop.wait(), name="stop")
        done, _ = await asyncio.wait(
            [scheduling, stopping, *background], return_when=asyncio.FIRST_COMPLETED
        )
        self._loop.stop()
        await asyncio.wait([scheduling])
        stopping.cancel()
        if done == {stopping}:
            log.info("stopping")
            return EXIT_OK
        for task in done - {stopping}:
            # The elector's task ends when the lease is lost; no other ends by itself.
            error = task.exception()
            log.error("ended unexpectedly", task=task.get_name(), exc_info=error)
        return EXIT_FAILED

    def _start_background(self) -> list[asyncio.Task[None]]:
        jobs: list[tuple[str, Awaitable[None]]] = [
            ("credentials", self._connection.keep_fresh()),
            ("pending pods", self._pending_pod_watch.run()),
            *((f"{reflector.kind} reflector", reflector.run()) for reflector in self._reflectors),
        ]
        if self._elector is not None:
            jobs.append(("leader election", self._take_part(self._elector)))
        if self._options.config_map is not None:
            jobs.append(("configuration", self._follow_config_map(self._options.config_map)))
        return [asyncio.create_task(_as_coroutine(job), name=name) for name, job in jobs]

    async def _follow_config_map(self, options: ConfigMapOptions) -> None:
        """Take other configurations from their ConfigMap, until cancelled."""
        events = ConfigMapEventRecorder(
            self._gated_client,
            options.reference,
            self._event_clock,
            self._may_write,
            self._clock.jitter,
            asyncio.sleep,
        )
        self._configuration.follow(options, events)
        watch = self._surroundings.watch_config_map(
            self._connection,
            options.reference,
            self._configuration,
            self._take_signals,
            self._clock.jitter,
            asyncio.sleep,
        )
        try:
            await watch.run()
        finally:
            await events.close(0)

    async def _take_part(self, elector: LeaderElector) -> None:
        await elector.acquire()
        self._view.refresh(elector.lease_version)
        # Nobody else would notice that a watch went deaf while there was nothing to do here.
        self._pending_pod_watch.reconnect(self._clock.monotonic() - LATELY_S)
        await elector.renew()

    def _may_write(self) -> bool:
        return self._elector is None or self._elector.may_write()

    def _may_schedule(self) -> bool:
        if not self._is_settled and self._view.is_complete():
            self._is_settled = True
            if self._options.owns_process:
                collector.freeze_tracked_objects()
        return self._is_settled and self._may_write() and self._view.is_current()

    def _to_refresh(self) -> list[Reflector[Any]]:
        """Whose lists a new leader needs anew: without them it may put too much on a node."""
        if self._elector is None:
            return []
        kinds = (NODES.kind, ASSIGNED_PODS.kind)
        return [reflector for reflector in self._reflectors if reflector.kind in kinds]

    def _raw_objects(self, kind: ReflectedKind[Any]) -> RawObjects | None:
        """Who reads along with a reflector: extenders see whole objects."""
        readers = ((NODES, self._objects.nodes), (ASSIGNED_PODS, self._objects.assigned_pods))
        return next((reader for followed, reader in readers if followed is kind), None)

    def _make_gated_client(self) -> GatedClient:
        """The client for writes: of a replica that leads, at the rate it may have."""
        bucket = _bucket(self._options, self._clock)
        return GatedClient(self._connection, self._may_write, bucket, self._metrics.observe_request)

    def _make_engine(self) -> Engine:
        clock = self._clock
        return self._options.engine_factory(
            EngineDependencies(clock.choose, timer, self._inbox.put, self._metrics)
        )

    def _make_reflectors(self) -> list[Reflector[Any]]:
        return [
            Reflector(
                kind,
                self._client,
                self._inbox,
                self._clock.jitter,
                asyncio.sleep,
                self._raw_objects(kind),
                self._clock.monotonic,
            )
            for kind in REFLECTED_KINDS
        ]

    def _register_metrics(self) -> None:
        """Have /metrics show what is read off the parts at each scrape."""
        registry = self._metrics.registry
        registry.register(ConfigurationMetrics(self._configuration))
        self._metrics.attach_engine(self._engine, lambda: self._events.num_dropped)
        registry.register(
            ReplicaMetrics(self._elector, lambda: self._dispatcher.num_unfinished_bindings)
        )
        registry.register(ReflectorMetrics(self._reflectors, self._pending_pods))
        registry.register(ExtenderMetrics(self._dispatcher.extender_failure_counts))

    def _make_elector(self) -> LeaderElector | None:
        if self._options.leader_election is None:
            return None
        times = ElectionClock(
            self._clock.monotonic, self._clock.timestamp_micro, asyncio.sleep, self._clock.jitter
        )
        return LeaderElector(self._client, self._options.leader_election, times, self._reconnect)

    def _reconnect(self, unresponsive_since: float | None) -> None:
        """The server answers again: nobody need wait, or listen to a dead connection, longer."""
        log.info("the server is back")
        for reflector in self._reflectors:
            reflector.reconnect(unresponsive_since)
        self._pending_pod_watch.reconnect(unresponsive_since)

    def _make_dispatcher(self) -> Dispatcher:
        client, sleep, jitter = self._gated_client, asyncio.sleep, self._clock.jitter
        timestamp = self._clock.timestamp
        self._event_clock = EventClock(
            self._clock.monotonic, self._clock.timestamp_micro, self._clock.unix_nanoseconds
        )
        self._events = EventRecorder(
            client,
            socket.gethostname(),
            self._event_clock,
            jitter,
            sleep,
        )
        binder = Binder(client, self._may_write, jitter, sleep)
        return Dispatcher(
            self._inbox,
            Writers(
                pre_binder=PreBinder(self._engine.pre_bind, self._options.pre_bind_limit_s),
                volumes=VolumeWriter(client, self._may_write, jitter, sleep),
                binder=binder,
                pod_reader=PodReader(client, jitter, sleep),
                pod_status=PodStatusWriter(client, self._may_write, timestamp, jitter, sleep),
                evictor=Evictor(client, timestamp, jitter, sleep),
                events=self._events,
                configuration_applied=self._configuration.applied,
                extenders=ExtenderDispatcher(
                    self._options.extenders,
                    self._inbox,
                    self._objects,
                    binder,
                    self._may_write,
                    self._surroundings.make_extender_client,
                ),
            ),
            self._metrics,
        )

    def _content(self) -> Content:
        resources = ResourceMetrics(self._engine.pods)
        return Content(
            metrics=self._metrics.exposition,
            resource_metrics=lambda: resources.exposition() if self._may_write() else b"",
            configz=self._configuration.configz,
            dump=self._engine.dump,
            checks=self._checks(),
        )

    def _checks(self) -> Checks:
        elector = self._elector
        election: dict[str, Check] = {}
        if elector is not None:
            election = {"leaderElection": lambda: elector.is_healthy}
        ready: dict[str, Check] = {
            "shutdown": lambda: not self._stop.is_set(),
            "informer-sync": lambda: self.has_synced,
            "sched-handler-sync": self._view.is_complete,
        }
        return Checks(
            health=election,
            live={},
            ready={**election, **ready},
            ready_notes=self._configuration.notes,
        )

    def _take_signals(self) -> None:
        """Let SIGTERM and SIGINT end us in order; done again whenever Kopf has taken them."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            if self._options.owns_process:
                loop.add_signal_handler(number, self._stop.set)
            else:
                loop.remove_signal_handler(number)
        if self._options.owns_process:
            loop.add_signal_handler(signal.SIGUSR2, self._comparer.start)
            # Not the loop's: that one would have its turn after what is about to be sent.
            signal.signal(signal.SIGCONT, self._continue)

    def _continue(self, _number: int, _frame: object) -> None:
        """Stopped and resumed: end at once if the lease ran out meanwhile.

        Runs before the next Python instruction, whatever it was going to be, so that no request
        that was let pass before the stop leaves after it.
        """
        if self._elector is not None and self._elector.has_run_out:
            try:
                # The interrupted code may hold the log's lock, so this goes past the log.
                if select.select([], [sys.stderr], [], 0)[1]:
                    os.write(sys.stderr.fileno(), STOPPED_TOO_LONG)
            finally:
                os._exit(EXIT_FAILED)


def _bucket(options: RunOptions, clock: Clock) -> TokenBucket | None:
    if options.kube_api_qps <= 0:
        return None
    return TokenBucket(options.kube_api_qps, options.kube_api_burst, clock.monotonic, asyncio.sleep)


def _log_loop_error(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log what nobody awaited; Kopf's watch generator cannot be closed cleanly once it is left."""
    write = log.debug if "asyncgen" in context else log.error
    write("event loop", problem=context["message"], exc_info=context.get("exception"))


async def _as_coroutine(job: Awaitable[None]) -> None:
    await job


async def _cancel(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
