"""All parts of a running scheduler, and how they are connected."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, TypeAlias

import structlog

from stowage.api.instructions import ConfigurationApplied
from stowage.api.objects.device import ResourceClaim
from stowage.api.reflected_kinds import ASSIGNED_PODS, NODES, REFLECTED_KINDS, ReflectedKind
from stowage.engine import Engine
from stowage.operator import garbage_collection as collector
from stowage.operator.cancellation import cancel
from stowage.operator.client.api_client import ApiClient
from stowage.operator.client.connection import Connection, connect
from stowage.operator.client.gated_client import GatedClient
from stowage.operator.client.rate_limit import token_bucket
from stowage.operator.clock import timer
from stowage.operator.configuration.live_configuration import ConfigMapOptions, LiveConfiguration
from stowage.operator.decisions.kept import KeptDecisions
from stowage.operator.dispatcher import Dispatcher, Writers
from stowage.operator.environment import REAL_ENVIRONMENT, Environment, PodWatcher
from stowage.operator.extenders.dispatcher import ExtenderDispatcher
from stowage.operator.extenders.objects import ExtenderObjects, RawObjects
from stowage.operator.inbox import Inbox
from stowage.operator.leader_election import ElectionObservers, LeaderElector
from stowage.operator.lease import LEASE_API
from stowage.operator.loop import LoopOptions, SchedulingLoop
from stowage.operator.metrics.configuration_metrics import ConfigurationMetrics
from stowage.operator.metrics.disabled_metrics import DisabledMetrics
from stowage.operator.metrics.replica_metrics import (
    CertificateMetrics,
    DecisionLogMetrics,
    ExtenderMetrics,
    FeatureGateMetrics,
    RecordingMetrics,
    ReflectorMetrics,
    ReplicaMetrics,
    TransportMetrics,
)
from stowage.operator.metrics.resource_metrics import ResourceMetrics
from stowage.operator.metrics.scheduler_metrics import Metrics
from stowage.operator.metrics.work_queue_metrics import WorkQueueMetrics
from stowage.operator.run_options import EngineDependencies, RunOptions
from stowage.operator.serving.delegated_access import AccessOptions, DelegatedAccess
from stowage.operator.serving.health import Check, Checks
from stowage.operator.serving.server import Content, Server
from stowage.operator.signals import EXIT_FAILED, SignalHandlers
from stowage.operator.state_dump import dump_for_people
from stowage.operator.state_validator import StateValidator
from stowage.operator.watch.cache_comparer import CacheComparer
from stowage.operator.watch.cache_sync import CacheSync
from stowage.operator.watch.custom_resources import CustomResourceWatch
from stowage.operator.watch.pending_pods import PendingPods
from stowage.operator.watch.pod_groups import PodGroupWatch
from stowage.operator.watch.reflector import Reflector
from stowage.operator.watch.restore import Restore
from stowage.operator.writers.binder import Binder
from stowage.operator.writers.claim_releaser import ClaimReleaser
from stowage.operator.writers.claim_writer import ClaimWriter
from stowage.operator.writers.event_recorder import EventRecorder
from stowage.operator.writers.evictor import Evictor
from stowage.operator.writers.object_events import ObjectEventRecorder, OwnObject
from stowage.operator.writers.pod_group_status import PodGroupStatusWriter
from stowage.operator.writers.pod_reader import PodReader
from stowage.operator.writers.pod_status import PodStatusWriter
from stowage.operator.writers.pre_binder import PRE_BIND_LIMIT_S, PreBinder
from stowage.operator.writers.volume_writer import VolumeWriter

if TYPE_CHECKING:
    # Not needed unless they are asked for; traces need OpenTelemetry, which is optional.
    from stowage.operator.tracing.traces import Traces
    from stowage.recording.recorder import Recorder

log = structlog.get_logger("stowage.operator.process")

EXIT_OK = 0

MAX_IDLE_AS_LEADER_S = 5.0
"""A new leader lists pending pods again unless their watch has had data within this time."""

_Job: TypeAlias = Callable[[], Coroutine[Any, Any, None]]

DECISION_LOG_GRACE_S = 1.0
"""How long the end of the process waits for decisions that are not written yet."""


class Process:
    """All parts of a running scheduler: makes, connects, starts and ends them.

    Args:
        options: Options of the process.
        connection: Connection to the API server.
        environment: The parts that a simulation replaces.
        traces: Traces of attempts; None makes none.
    """

    def __init__(
        self,
        options: RunOptions,
        connection: Connection,
        environment: Environment = REAL_ENVIRONMENT,
        traces: Traces | None = None,
    ) -> None:
        self._options = options
        self._clock = clock = environment.clock
        self._environment = environment
        self._connection = connection
        self._connections = [connection]
        self._stop = options.stop or asyncio.Event()
        self._restore = Restore()
        self._has_synced_once = False
        self._inbox = Inbox()
        self._decisions = KeptDecisions(options.decision_log, clock.unix_nanoseconds)
        self._metrics = Metrics(clock.monotonic, connection.host)
        self._disabled_metrics = DisabledMetrics(options.disabled_metrics)
        self._attempt_traces = (
            None if traces is None else traces.of_attempts(self._metrics, clock.unix_nanoseconds)
        )
        connection.log_outages(clock.monotonic)
        self._client = ApiClient(connection, self._metrics.observe_request)
        self._elector = self._make_elector()
        self._gated_client = self._make_gated_client()
        self._objects = ExtenderObjects(self._client, clock, options.extenders)
        self._reflectors = self._make_reflectors()
        self._cache_sync = CacheSync(
            self._inbox, lambda: self.has_synced, self._reflectors_to_refresh()
        )
        self._pending_pods = PendingPods(
            self._inbox, options.scheduler_names, self._objects.pods, clock.monotonic
        )
        self._recorder = self._make_recorder()
        self._engine = self._make_engine()
        self._custom_resources = CustomResourceWatch(self._client, self._inbox, clock)
        self._custom_resources.follow(self._engine.custom_resources())
        self._pod_groups = PodGroupWatch(self._client, self._inbox, clock, lambda: self.has_synced)
        self._comparer = CacheComparer(self._client, self._engine, clock)
        self._validator = self._make_validator()
        self._signals = self._make_signal_handlers()
        self._pending_pod_watch = self._make_pending_pod_watch()
        self._configuration = LiveConfiguration(
            options.configuration, self._inbox.put, self._pending_pod_watch.select
        )
        self._dispatcher = self._make_dispatcher()
        self._register_metrics()
        self._loop = self._make_loop()

    @property
    def has_synced(self) -> bool:
        """Whether all first lists are in the inbox."""
        return self._pending_pods.has_synced and all(
            reflector.has_synced for reflector in self._reflectors
        )

    async def run(self, cleanup: AsyncExitStack) -> int:
        """Run until a signal, `options.stop` or a failure; returns the exit status."""
        self._signals.install()
        if self._recorder is not None:
            cleanup.callback(self._recorder.close)
        if self._options.serving is not None:
            access = await self._make_access(self._options.serving.access, cleanup)
            server = Server(self._options.serving, self._content(), access)
            await server.start()
            self._metrics.registry.register(CertificateMetrics(server.certificate))
            self._metrics.registry.register(access.metrics)
            cleanup.push_async_callback(server.stop)
        self._decisions.start()
        cleanup.callback(self._decisions.close, DECISION_LOG_GRACE_S)
        background = self._start_background()
        cleanup.push_async_callback(cancel, *background)
        if self._elector is not None:
            cleanup.push_async_callback(self._release_lease, self._elector)
        cleanup.push_async_callback(self._dispatcher.close, self._options.shutdown_grace_s)
        return await self._run_until_stopped(background)

    async def _make_access(
        self, options: AccessOptions, cleanup: AsyncExitStack
    ) -> DelegatedAccess:
        """Access control with the kubeconfigs of the options, or else the scheduler's own."""
        clients = []
        for kubeconfig in (options.authentication_kubeconfig, options.authorization_kubeconfig):
            if kubeconfig in (None, self._options.kubeconfig):
                clients.append(self._client)
                continue
            connection = await connect(kubeconfig, timeouts=self._options.timeouts)
            connection.log_outages(self._clock.monotonic)
            cleanup.push_async_callback(connection.close)
            self._connections.append(connection)
            clients.append(ApiClient(connection, self._metrics.observe_request))
        return DelegatedAccess(clients[0], options, self._clock.monotonic, clients[1])

    async def _run_until_stopped(self, background: Sequence[asyncio.Task[None]]) -> int:
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
            # The elector's task ends when the lease is lost; all others run until cancelled.
            error = task.exception()
            log.error("ended unexpectedly", task=task.get_name(), exc_info=error)
        return EXIT_FAILED

    def _start_background(self) -> list[asyncio.Task[None]]:
        jobs: list[tuple[str, Coroutine[Any, Any, None]]] = [
            ("credentials", self._connection.keep_fresh()),
            ("restore", self._restore.until_noted()),
            ("pending pods", self._when_to_list(self._pending_pod_watch.run)),
            ("custom resources", self._custom_resources.run()),
            *((f"{it.kind} reflector", self._when_to_list(it.run)) for it in self._reflectors),
        ]
        if self._options.feature_gates.set_to("GenericWorkload") is not False:
            jobs.append(("pod groups", self._pod_groups.run()))
        if self._elector is not None:
            jobs.append(("leader election", self._run_leader_election(self._elector)))
            jobs.append(("validation", self._validator.run()))
        if self._options.config_map is not None:
            jobs.append(("configuration", self._run_config_map_watch(self._options.config_map)))
        return [asyncio.create_task(job, name=name) for name, job in jobs]

    def _when_to_list(self, run: _Job) -> Coroutine[Any, Any, None]:
        return run() if self._elector is None else self._elector.after_first_attempt(run)

    async def _run_config_map_watch(self, options: ConfigMapOptions) -> None:
        """Follow the ConfigMap of the configuration until cancelled."""
        reference = options.reference
        events = ObjectEventRecorder(
            self._gated_client,
            OwnObject("v1", "ConfigMap", reference.namespace, reference.name),
            "Configuring",
            self._clock,
            self._may_write,
        )
        reader = self._environment.make_configuration_reader()
        self._configuration.follow(options, events, reader.read)
        watch = self._environment.watch_config_map(
            self._connection, reference, self._configuration, self._signals.install, self._clock
        )
        try:
            await watch.run()
        finally:
            await reader.close()
            await events.close(0)

    async def _run_leader_election(self, elector: LeaderElector) -> None:
        await elector.acquire()
        self._cache_sync.refresh(elector.lease_version)
        # A standby may not have noticed that its watch is dead.
        self._pending_pod_watch.reconnect(self._clock.monotonic() - MAX_IDLE_AS_LEADER_S)
        await elector.renew()

    async def _release_lease(self, elector: LeaderElector) -> None:
        await elector.release(self._dispatcher.num_unknown_outcomes)

    def _may_write(self) -> bool:
        is_leader = self._elector is None or self._elector.may_write()
        return is_leader and not self._restore.is_noted

    def _is_standby(self) -> bool:
        return self._cache_sync.is_complete() and not self._may_write()

    def _check_state(self) -> None:
        """Dump the state, compare it with the API server and validate it, in the background."""
        self._comparer.start()
        self._validator.start()

    def _may_schedule(self) -> bool:
        if not self._has_synced_once and self._cache_sync.is_complete():
            self._has_synced_once = True
            if self._options.owns_process:
                collector.freeze_tracked_objects()
        return self._has_synced_once and self._may_write() and self._cache_sync.is_current()

    def _reflectors_to_refresh(self) -> list[Reflector[Any]]:
        """The reflectors whose lists a new leader reads again.

        So it overcommits no node, and gives no device that another leader has given.
        """
        if self._elector is None:
            return []
        kinds = (NODES.kind, ASSIGNED_PODS.kind, ResourceClaim.__name__)
        return [reflector for reflector in self._reflectors if reflector.kind in kinds]

    def _raw_objects(self, kind: ReflectedKind[Any]) -> RawObjects | None:
        """The store of a kind's complete objects for extenders; None if they are not kept."""
        if kind is NODES:
            return self._objects.nodes
        return self._objects.assigned_pods if kind is ASSIGNED_PODS else None

    def _make_gated_client(self) -> GatedClient:
        """The client for writes, with the lease check and the rate limit."""
        options, metrics = self._options, self._metrics
        bucket = token_bucket(options.kube_api_qps, options.kube_api_burst, self._clock)
        return GatedClient(
            self._connection,
            self._may_write,
            bucket,
            metrics.observe_request,
            metrics.observe_rate_limit,
        )

    def _make_engine(self) -> Engine:
        clock, traces = self._clock, self._attempt_traces
        return self._options.engine_factory(
            EngineDependencies(
                clock.choose,
                timer,
                self._inbox.put,
                self._metrics,
                None if traces is None else traces.trace_cycle,
                lambda: clock.unix_nanoseconds() / 1e9,
                self._recorder,
            )
        )

    def _make_validator(self) -> StateValidator:
        return StateValidator(
            self._engine,
            lambda problem: self._dispatcher.dispatch([problem]),
            self._is_standby,
            self._clock,
        )

    def _make_recorder(self) -> Recorder | None:
        options = self._options.recording
        if options is None:
            return None
        from stowage.operator.recording import start_recording  # noqa: PLC0415

        return start_recording(options, self._options.configuration, self._clock)

    def _make_reflectors(self) -> list[Reflector[Any]]:
        client, inbox, clock, note = self._client, self._inbox, self._clock, self._restore.note
        return [
            Reflector(kind, client, inbox, clock, self._raw_objects(kind), note)
            for kind in REFLECTED_KINDS
        ]

    def _all_reflectors(self) -> Sequence[Reflector[Any]]:
        of_groups = self._pod_groups.reflectors
        return (*self._reflectors, *self._custom_resources.reflectors, *of_groups)

    def _configuration_applied(self, applied: ConfigurationApplied) -> None:
        self._configuration.handle_applied(applied)
        self._custom_resources.follow(self._engine.custom_resources())

    def _make_pending_pod_watch(self) -> PodWatcher:
        return self._environment.watch_pending_pods(
            self._connection,
            self._pending_pods,
            self._options.scheduler_names,
            self._signals.install,
            self._clock,
        )

    def _make_loop(self) -> SchedulingLoop:
        return SchedulingLoop(
            self._engine,
            self._inbox,
            self._dispatcher,
            self._may_schedule,
            self._clock.monotonic,
            LoopOptions(),
        )

    def _register_metrics(self) -> None:
        """Register the collectors that read the parts of the process at each scrape."""
        registry = self._metrics.registry
        registry.register(self._disabled_metrics)
        registry.register(ConfigurationMetrics(self._configuration))
        self._metrics.attach_engine(self._engine, lambda: self._events.num_dropped)
        registry.register(
            ReplicaMetrics(
                self._elector,
                lambda: self._dispatcher.num_unfinished_bindings,
                self._validator.result_counts,
            )
        )
        registry.register(ReflectorMetrics(self._all_reflectors, self._pending_pods))
        if self._recorder is not None:
            registry.register(RecordingMetrics(self._recorder))
        registry.register(FeatureGateMetrics(self._options.feature_gates))
        registry.register(TransportMetrics(self._connections))
        registry.register(WorkQueueMetrics(self._dispatcher.pools))
        registry.register(ExtenderMetrics(self._dispatcher.extender_failure_counts))
        if self._decisions.log is not None:
            registry.register(DecisionLogMetrics(self._decisions.log))

    def _make_elector(self) -> LeaderElector | None:
        options = self._options.leader_election
        if options is None:
            return None
        # Not the client that needs the Lease: the Event that it was lost is written without it.
        lease = OwnObject(LEASE_API, "Lease", options.lease_namespace, options.lease_name)
        events = ObjectEventRecorder(self._client, lease, "LeaderElection", self._clock)
        observers = ElectionObservers(self._reconnect, self._restore.note)
        return LeaderElector(self._client, options, self._clock, observers, events)

    def _reconnect(self, unresponsive_since: float | None) -> None:
        """Reconnect all watches, because the API server answers again."""
        for reflector in self._all_reflectors():
            reflector.reconnect(unresponsive_since)
        self._pending_pod_watch.reconnect(unresponsive_since)

    def _make_dispatcher(self) -> Dispatcher:
        client, clock = self._gated_client, self._clock
        self._events = EventRecorder(client, socket.gethostname(), clock, self._decisions.ids)
        binder = Binder(client, self._may_write, clock)
        return Dispatcher(
            self._inbox,
            Writers(
                pre_binder=PreBinder(self._engine.pre_bind, PRE_BIND_LIMIT_S),
                volumes=VolumeWriter(client, self._may_write, clock),
                claims=ClaimWriter(
                    client, self._may_write, clock, self._metrics.observe_claim_creation
                ),
                claim_releaser=ClaimReleaser(client, clock),
                binder=binder,
                pod_reader=PodReader(client, clock),
                pod_status=PodStatusWriter(client, self._may_write, clock),
                pod_group_status=PodGroupStatusWriter(client, self._may_write, clock),
                evictor=Evictor(client, clock),
                events=self._events,
                decisions=self._decisions.recorder,
                configuration_applied=self._configuration_applied,
                configuration_failed=self._configuration.handle_failed,
                extenders=ExtenderDispatcher(
                    self._options.extenders,
                    self._inbox,
                    self._objects,
                    binder,
                    self._may_write,
                    self._environment.make_extender_client,
                ),
            ),
            self._metrics,
            self._attempt_traces,
        )

    def _content(self) -> Content:
        resources, disabled = ResourceMetrics(self._engine.pods), self._disabled_metrics
        return Content(
            metrics=lambda: disabled.exposition(self._metrics.registry),
            resource_metrics=lambda: disabled.exposition(resources) if self._may_write() else b"",
            configz=self._configuration.configz,
            dump=lambda: dump_for_people(self._engine, self._clock),
            checks=self._checks(),
            decisions=self._decisions.store,
            flags=self._options.flags,
            is_profiling_enabled=self._configuration.is_profiling_enabled,
            clock=self._clock,
            disabled_metrics=disabled,
        )

    def _checks(self) -> Checks:
        elector = self._elector
        election: dict[str, Check] = {}
        if elector is not None:
            election = {"leaderElection": lambda: elector.is_healthy}
        ready: dict[str, Check] = {
            "shutdown": lambda: not self._stop.is_set(),
            "informer-sync": lambda: self.has_synced,
            "sched-handler-sync": self._cache_sync.is_complete,
        }
        return Checks(
            health=election,
            live={},
            ready={**election, **ready},
            ready_notes=self._configuration.notes,
        )

    def _make_signal_handlers(self) -> SignalHandlers:
        elector = self._elector
        return SignalHandlers(
            self._stop,
            self._check_state,
            lambda: elector is not None and elector.has_run_out,
            owns_process=self._options.owns_process,
        )
