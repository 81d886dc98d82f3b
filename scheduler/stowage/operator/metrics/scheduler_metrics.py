"""kube-scheduler's metrics: counted on the scheduling path, exposed at each scrape."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec
from prometheus_client.gc_collector import GCCollector
from prometheus_client.metrics_core import Metric
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector, CollectorRegistry

from stowage.api.instructions import (
    AttemptResult,
    BindingConditionsAwaited,
    PodBound,
    PodGroupAttemptResult,
    PreemptionAttempted,
    PreemptionFinished,
)
from stowage.engine import Engine
from stowage.operator.client.api_client import SentRequest
from stowage.operator.metrics import definitions, own_definitions
from stowage.operator.metrics.families import CounterVec, HistogramVec, Labels, family_of

SCHEDULED = "scheduled"
MAX_ATTEMPTS_LABEL = 15
ATTEMPTS_LABELS = [
    *((str(number),) for number in range(MAX_ATTEMPTS_LABEL)),
    (f"{MAX_ATTEMPTS_LABEL}+",),
]
BIND = "Bind"


class _Binding(msgspec.Struct):
    """The binding of a pod, from the attempt that scheduled it.

    Attributes:
        answered_at: When the request that binds the pod was answered; None before.
    """

    began: float
    scheduler_name: str
    answered_at: float | None = None


class Metrics(Collector):
    """Counts and times what the scheduler does, and exposes all registered metrics.

    Args:
        monotonic: Returns monotonic seconds.
        host: Host of the API server, a label of the client's metrics.
    """

    def __init__(self, monotonic: Callable[[], float], host: str = "") -> None:
        self._monotonic = monotonic
        self._engine: Engine | None = None
        self._dropped_events: Callable[[], int] = lambda: 0
        self._attempt_seconds = HistogramVec(definitions.SCHEDULING_ATTEMPT_DURATION)
        self._algorithm_seconds = HistogramVec(definitions.SCHEDULING_ALGORITHM_DURATION)
        self._sli_seconds = HistogramVec(definitions.POD_SCHEDULING_SLI_DURATION)
        self._attempts_per_pod = HistogramVec(definitions.POD_SCHEDULING_ATTEMPTS)
        self._point_seconds = HistogramVec(definitions.EXTENSION_POINT_DURATION)
        self._plugin_seconds = HistogramVec(definitions.PLUGIN_EXECUTION_DURATION)
        self._hint_seconds = HistogramVec(definitions.QUEUEING_HINT_DURATION)
        self._event_seconds = HistogramVec(definitions.EVENT_HANDLING_DURATION)
        self._group_seconds = HistogramVec(definitions.PODGROUP_ATTEMPT_DURATION)
        self._group_algorithm_seconds = HistogramVec(definitions.PODGROUP_ALGORITHM_DURATION)
        self._permit_seconds = HistogramVec(definitions.PERMIT_WAIT_DURATION)
        self._preemption_victims = HistogramVec(definitions.PREEMPTION_VICTIMS)
        self._preemption_attempts = CounterVec(definitions.PREEMPTION_ATTEMPTS)
        self._preemption_seconds = HistogramVec(definitions.PREEMPTION_GOROUTINES_DURATION)
        self._claim_creations = CounterVec(definitions.RESOURCE_CLAIM_CREATES)
        self._device_waits = CounterVec(definitions.DRA_BINDING_CONDITIONS_ALLOCATIONS)
        self._device_wait_seconds = HistogramVec(definitions.DRA_BINDING_CONDITIONS_WAIT_DURATION)
        self._requests = CounterVec(definitions.REST_CLIENT_REQUESTS, (host,))
        self._request_seconds = HistogramVec(definitions.REST_CLIENT_REQUEST_DURATION, (host,))
        self._request_bytes = HistogramVec(definitions.REST_CLIENT_REQUEST_SIZE, (host,))
        self._response_bytes = HistogramVec(definitions.REST_CLIENT_RESPONSE_SIZE, (host,))
        self._rate_limit_seconds = HistogramVec(
            definitions.REST_CLIENT_RATE_LIMITER_DURATION, (host,)
        )
        self._after_flush = CounterVec(definitions.POD_SCHEDULED_AFTER_FLUSH)
        self._num_problems = 0
        self._binding: dict[str, _Binding] = {}
        self.registry = CollectorRegistry()
        self.registry.register(self)
        ProcessCollector(registry=self.registry)
        GCCollector(registry=self.registry)

    def attach_engine(self, engine: Engine, dropped_events: Callable[[], int]) -> None:
        """Read the engine's counts at each scrape from now on."""
        self._engine = engine
        self._dropped_events = dropped_events

    def observe_attempt(self, attempt: AttemptResult) -> None:
        """Count a scheduling attempt; a scheduled pod counts when it is bound."""
        labels = (attempt.result, attempt.scheduler_name)
        # A scheduled pod that could not be bound is reported again, with another result.
        unbound = self._binding.pop(attempt.pod.uid, None)
        if attempt.result != SCHEDULED and unbound is not None:
            self._attempt_seconds.observe(labels, self._monotonic() - unbound.began)
            return
        self._algorithm_seconds.observe((), attempt.duration_s)
        if attempt.result == SCHEDULED:
            began = self._monotonic() - attempt.duration_s
            self._binding[attempt.pod.uid] = _Binding(began, attempt.scheduler_name)
        else:
            self._attempt_seconds.observe(labels, attempt.duration_s)

    def observe_group_attempt(self, attempt: PodGroupAttemptResult) -> None:
        """Count and time a scheduling attempt of a pod group."""
        labels = (attempt.result, attempt.scheduler_name)
        self._group_seconds.observe(labels, attempt.duration_s)
        self._group_algorithm_seconds.observe((), attempt.algorithm_duration_s)

    def observe_bind(self, uid: str, status: str, duration_s: float) -> None:
        """Time the Bind extension point, whatever the outcome of the request."""
        binding = self._binding.get(uid)
        profile = ""
        if binding is not None:
            binding.answered_at = self._monotonic()
            profile = binding.scheduler_name
        self._point_seconds.observe((BIND, status, profile), duration_s)

    def observe_preemption(self, attempted: PreemptionAttempted) -> None:
        """Count a preemption attempt and its victims."""
        self._preemption_attempts.add(())
        if attempted.num_victims:
            self._preemption_victims.observe((), attempted.num_victims)

    def observe_preemption_finished(self, finished: PreemptionFinished) -> None:
        """Time the evictions for a pod, from the first request to the last answer."""
        result = "error" if finished.is_error else "success"
        self._preemption_seconds.observe((result,), finished.duration_s)

    def observe_bound(self, bound: PodBound) -> None:
        """Count a bound pod."""
        now = self._monotonic()
        binding = self._binding.pop(bound.pod.uid, None)
        # The engine hears of the answer a little later.
        bound_at = now if binding is None else binding.answered_at or now
        began = now if binding is None else binding.began
        self._attempt_seconds.observe((SCHEDULED, bound.scheduler_name), bound_at - began)
        attempts = bound.attempts
        labels = ATTEMPTS_LABELS[min(attempts, MAX_ATTEMPTS_LABEL)]
        since_first_s = bound.since_first_attempt_s - (now - bound_at)
        self._sli_seconds.observe(labels, max(0.0, since_first_s))
        self._attempts_per_pod.observe((), attempts)
        if bound.was_flushed:
            self._after_flush.add()

    def observe_binding_conditions(self, awaited: BindingConditionsAwaited) -> None:
        """Count and time a wait for devices with binding conditions, for each of their drivers."""
        for driver in awaited.drivers:
            labels = (awaited.scheduler_name, driver, awaited.status)
            self._device_waits.add(labels)
            self._device_wait_seconds.observe(labels, awaited.duration_s)

    def observe_claim_creation(self, status: str) -> None:
        """Count a claim for extended resources, created or not: ``success`` or ``failure``."""
        self._claim_creations.add((status,))

    def observe_extension_point(
        self, point: str, status: str, profile: str, duration_s: float
    ) -> None:
        """Time all plugins of an extension point, in sampled cycles only."""
        self._point_seconds.observe((point, status, profile), duration_s)

    def observe_plugin(self, plugin: str, point: str, status: str, duration_s: float) -> None:
        """Time one plugin over all nodes, in sampled cycles only."""
        self._plugin_seconds.observe((plugin, point, status), duration_s)

    def observe_event(self, event: str, duration_s: float) -> None:
        """Time the handling of a watch event."""
        self._event_seconds.observe((event,), duration_s)

    def observe_hint(self, plugin: str, event: str, hint: str, duration_s: float) -> None:
        """Time a queueing hint of a plugin."""
        self._hint_seconds.observe((plugin, event, hint), duration_s)

    def observe_permit_wait(self, result: str, duration_s: float) -> None:
        """Time the wait of a pod at Permit."""
        self._permit_seconds.observe((result,), duration_s)

    def observe_problem(self) -> None:
        """Count a problem that the engine has reported."""
        self._num_problems += 1

    def observe_request(self, sent: SentRequest) -> None:
        """Count, time and measure a request to the API server, except watches."""
        labels = (sent.method,)
        self._requests.add((sent.code, sent.method))
        self._request_seconds.observe(labels, sent.duration_s)
        self._request_bytes.observe(labels, sent.num_sent)
        if sent.num_received is not None:
            self._response_bytes.observe(labels, sent.num_received)

    def observe_rate_limit(self, method: str, delay_s: float) -> None:
        """Time the wait of a request for the client's rate limit."""
        self._rate_limit_seconds.observe((method,), delay_s)

    def exposition(self) -> bytes:
        """All metrics in Prometheus' text format."""
        # Imported late: it imports HTTP servers.
        from prometheus_client import generate_latest  # noqa: PLC0415

        return generate_latest(self.registry)

    def collect(self) -> Iterator[Metric]:
        """Make the metric families; the registry calls it."""
        # Every attempt is timed, so the histogram has their number.
        yield family_of(definitions.SCHEDULE_ATTEMPTS, self._attempt_seconds.counts())
        yield family_of(definitions.PODGROUP_ATTEMPTS, self._group_seconds.counts())
        finished = self._preemption_seconds.counts()
        yield family_of(definitions.PREEMPTION_GOROUTINES_EXECUTION, finished)
        for vec in (
            self._attempt_seconds,
            self._algorithm_seconds,
            self._sli_seconds,
            self._attempts_per_pod,
            self._point_seconds,
            self._plugin_seconds,
            self._hint_seconds,
            self._event_seconds,
            self._group_seconds,
            self._group_algorithm_seconds,
            self._permit_seconds,
            self._preemption_victims,
            self._preemption_attempts,
            self._preemption_seconds,
            self._claim_creations,
            self._device_waits,
            self._device_wait_seconds,
            self._requests,
            self._request_seconds,
            self._request_bytes,
            self._response_bytes,
            self._rate_limit_seconds,
            self._after_flush,
        ):
            yield vec.family()
        yield family_of(own_definitions.PROBLEMS, [((), self._num_problems)])
        yield family_of(own_definitions.EVENTS_DROPPED, [((), self._dropped_events())])
        if self._engine is not None:
            yield from _engine_families(self._engine)
            oldest = self._engine.oldest_attempt_at()
            waited_s = 0.0 if oldest is None else self._monotonic() - oldest
            yield family_of(own_definitions.OLDEST_PENDING_POD, [((), waited_s)])


def _engine_families(engine: Engine) -> Iterator[Metric]:
    """The metric families made from the engine's counts."""
    for definition, counts in (
        (definitions.PENDING_PODS, engine.pending_counts()),
        (definitions.CACHE_SIZE, engine.cache_counts()),
        (definitions.INFLIGHT_EVENTS, engine.in_flight_event_counts()),
        (definitions.VOLUME_STAGE_ERRORS, engine.volume_error_counts()),
        (own_definitions.PLUGIN_FAILURES, engine.plugin_failure_counts()),
    ):
        yield family_of(definition, (((label,), count) for label, count in counts.items()))
    yield family_of(definitions.QUEUE_INCOMING_PODS, engine.incoming_counts().items())
    yield family_of(definitions.PLUGIN_EVALUATIONS, engine.evaluation_counts().items())
    rejected: list[tuple[Labels, float]] = [
        ((plugin, profile), count)
        for (profile, plugin), count in engine.unschedulable_counts().items()
    ]
    yield family_of(definitions.UNSCHEDULABLE_PODS, rejected)
