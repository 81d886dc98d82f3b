"""kube-scheduler's metrics: same names, labels and buckets.

Counting happens in plain dicts and lists on the scheduling path; the Prometheus families are made
when somebody scrapes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from prometheus_client import CollectorRegistry, GCCollector, ProcessCollector, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from scheduler.api.instructions import AttemptResult, PodBound
from scheduler.operator.engine_protocol import Engine
from scheduler.operator.histogram import Histogram, exponential_buckets

SCHEDULED = "scheduled"
ATTEMPT_BUCKETS = exponential_buckets(0.001, 2, 15)
SLI_BUCKETS = exponential_buckets(0.01, 2, 20)
ATTEMPTS_BUCKETS = exponential_buckets(1, 2, 5)
MAX_ATTEMPTS_LABEL = 15

_Labels = tuple[str, ...]


class Metrics(Collector):
    """What is counted, and its exposition.

    Args:
        monotonic: The process's clock, seconds.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._engine: Engine | None = None
        self._dropped_events: Callable[[], int] = lambda: 0
        self._attempts: Counter[_Labels] = Counter()
        self._attempt_seconds: dict[_Labels, Histogram] = defaultdict(
            lambda: Histogram(ATTEMPT_BUCKETS)
        )
        self._algorithm_seconds = Histogram(ATTEMPT_BUCKETS)
        self._sli_seconds: dict[_Labels, Histogram] = defaultdict(lambda: Histogram(SLI_BUCKETS))
        self._attempts_per_pod = Histogram(ATTEMPTS_BUCKETS)
        self._binding_since: dict[str, float] = {}
        self.registry = CollectorRegistry()
        self.registry.register(self)
        ProcessCollector(registry=self.registry)
        GCCollector(registry=self.registry)

    def observe_engine(self, engine: Engine, dropped_events: Callable[[], int]) -> None:
        """Whose gauges to read when scraped."""
        self._engine = engine
        self._dropped_events = dropped_events

    def observe_attempt(self, attempt: AttemptResult) -> None:
        """Count one scheduling attempt; a scheduled one counts once it is bound."""
        self._algorithm_seconds.observe(attempt.duration_s)
        if attempt.result == SCHEDULED:
            self._binding_since[attempt.pod.uid] = self._monotonic() - attempt.duration_s
            return
        # A pod whose binding failed is reported once more, as an error.
        self._binding_since.pop(attempt.pod.uid, None)
        labels = (attempt.result, attempt.scheduler_name)
        self._attempts[labels] += 1
        self._attempt_seconds[labels].observe(attempt.duration_s)

    def observe_bound(self, bound: PodBound) -> None:
        """Count a pod that reached its node."""
        now = self._monotonic()
        labels = (SCHEDULED, bound.scheduler_name)
        self._attempts[labels] += 1
        self._attempt_seconds[labels].observe(now - self._binding_since.pop(bound.pod.uid, now))
        attempts = bound.attempts
        label = f"{MAX_ATTEMPTS_LABEL}+" if attempts >= MAX_ATTEMPTS_LABEL else str(attempts)
        self._sli_seconds[(label,)].observe(bound.since_first_attempt_s)
        self._attempts_per_pod.observe(attempts)

    def exposition(self) -> bytes:
        """Everything in Prometheus' text format."""
        return generate_latest(self.registry)

    def collect(self) -> Iterator[Metric]:
        """Make the families; called by the registry."""
        yield _counter(
            "scheduler_schedule_attempts",
            "Number of attempts to schedule pods, by the result. 'unschedulable' means a pod could "
            "not be scheduled, while 'error' means an internal scheduler problem.",
            ("result", "profile"),
            self._attempts.items(),
        )
        yield _histogram(
            "scheduler_scheduling_attempt_duration_seconds",
            "Scheduling attempt latency in seconds (scheduling algorithm + binding)",
            ("result", "profile"),
            self._attempt_seconds,
        )
        yield _histogram(
            "scheduler_scheduling_algorithm_duration_seconds",
            "Scheduling algorithm latency in seconds",
            (),
            {(): self._algorithm_seconds},
        )
        yield _histogram(
            "scheduler_pod_scheduling_sli_duration_seconds",
            "E2e latency for a pod being scheduled, from the time the pod enters the scheduling "
            "queue and might involve multiple scheduling attempts.",
            ("attempts",),
            self._sli_seconds,
        )
        yield _histogram(
            "scheduler_pod_scheduling_attempts",
            "Number of attempts to successfully schedule a pod.",
            (),
            {(): self._attempts_per_pod},
        )
        yield from self._collect_engine()

    def _collect_engine(self) -> Iterator[Metric]:
        if self._engine is None:
            return
        yield _gauge(
            "scheduler_pending_pods",
            "Number of pending pods, by the queue type.",
            "queue",
            self._engine.pending_counts(),
        )
        yield _gauge(
            "scheduler_cache_size",
            "Number of nodes, pods, and assumed (bound) pods in the scheduler cache.",
            "type",
            self._engine.cache_counts(),
        )
        yield _counter(
            "scheduler_queue_incoming_pods",
            "Number of pods added to scheduling queues by event and queue type.",
            ("queue", "event"),
            self._engine.incoming_counts().items(),
        )
        yield CounterMetricFamily(
            "stowage_events_dropped",
            "Number of Kubernetes Events dropped because too many were waiting.",
            value=self._dropped_events(),
        )


def _counter(
    name: str, text: str, labels: Sequence[str], counts: Iterable[tuple[Sequence[str], int]]
) -> Metric:
    family = CounterMetricFamily(name, text, labels=labels)
    for values, count in counts:
        family.add_metric(values, count)
    return family


def _gauge(name: str, text: str, label: str, values: Mapping[str, int]) -> Metric:
    family = GaugeMetricFamily(name, text, labels=[label])
    for value, count in values.items():
        family.add_metric([value], count)
    return family


def _histogram(
    name: str, text: str, labels: Sequence[str], histograms: Mapping[_Labels, Histogram]
) -> Metric:
    family = HistogramMetricFamily(name, text, labels=labels)
    for values, histogram in histograms.items():
        family.add_metric(values, histogram.cumulative(), histogram.sum)
    return family
