"""Counting and timing of kube-scheduler's metrics."""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families

from stowage.api.instructions import AttemptResult, PodBound, PodReference
from stowage.operator.metrics.histogram import Histogram, exponential_buckets
from stowage.operator.metrics.scheduler_metrics import Metrics
from tests.support.fake_api import FakeTime
from tests.support.round_robin_engine import RoundRobinEngine

POD = PodReference("default", "p", "u1")


def _samples(metrics: Metrics) -> dict[tuple[str, frozenset[str]], float]:
    families = text_string_to_metric_families(metrics.exposition().decode())
    return {
        (sample.name, frozenset(sample.labels.values())): sample.value
        for family in families
        for sample in family.samples
    }


def test_a_scheduled_attempt_counts_when_the_pod_is_bound() -> None:
    time = FakeTime()
    metrics = Metrics(time.monotonic)
    metrics.observe_attempt(AttemptResult(POD, "scheduled", "stowage", 1, duration_s=0.002))
    total = ("scheduler_schedule_attempts_total", frozenset({"scheduled", "stowage"}))
    assert total not in _samples(metrics)
    time.now += 0.1
    metrics.observe_bound(PodBound(POD, "n", "stowage", 1, 0.5))
    samples = _samples(metrics)
    assert samples[total] == 1
    attempt = "scheduler_scheduling_attempt_duration_seconds_sum"
    assert samples[(attempt, frozenset({"scheduled", "stowage"}))] == pytest.approx(0.102)
    assert samples[("scheduler_pod_scheduling_sli_duration_seconds_sum", frozenset({"1"}))] == 0.5
    assert samples[("scheduler_pod_scheduling_attempts_count", frozenset())] == 1
    assert samples[("scheduler_scheduling_algorithm_duration_seconds_count", frozenset())] == 1


def test_a_refused_attempt_counts_at_once() -> None:
    metrics = Metrics(FakeTime().monotonic)
    metrics.observe_attempt(AttemptResult(POD, "unschedulable", "stowage", 2))
    samples = _samples(metrics)
    assert (
        samples[("scheduler_schedule_attempts_total", frozenset({"unschedulable", "stowage"}))] == 1
    )


def test_attempts_beyond_the_largest_label_share_one() -> None:
    metrics = Metrics(FakeTime().monotonic)
    metrics.observe_bound(PodBound(POD, "n", "stowage", 40, 0.5))
    assert ("scheduler_pod_scheduling_sli_duration_seconds_sum", frozenset({"15+"})) in _samples(
        metrics
    )


def test_events_and_hints_are_timed_by_name() -> None:
    metrics = Metrics(FakeTime().monotonic)
    metrics.observe_event("NodeAdd", 0.25)
    metrics.observe_hint("NodeResourcesFit", "NodeAdd", "QueueSkip", 0.5)
    samples = _samples(metrics)
    event = "scheduler_event_handling_duration_seconds_sum"
    assert samples[(event, frozenset({"NodeAdd"}))] == 0.25
    hint = "scheduler_queueing_hint_execution_duration_seconds_sum"
    labels = frozenset({"NodeResourcesFit", "NodeAdd", "QueueSkip"})
    assert samples[(hint, labels)] == 0.5


def test_counts_of_the_engine_are_read_at_each_scrape() -> None:
    metrics, engine = Metrics(FakeTime().monotonic), RoundRobinEngine()
    metrics.attach_engine(engine, lambda: 7)
    engine.nodes["n"] = None
    engine.ready.append(POD)
    samples = _samples(metrics)
    assert samples[("scheduler_pending_pods", frozenset({"active"}))] == 1
    assert samples[("scheduler_cache_size", frozenset({"nodes"}))] == 1
    assert samples[("stowage_events_dropped_total", frozenset())] == 7
    incoming = ("scheduler_queue_incoming_pods_total", frozenset({"active", "UnschedulablePodAdd"}))
    assert samples[incoming] == 0


def test_bucket_bounds_are_inclusive() -> None:
    assert exponential_buckets(1, 2, 5) == (1, 2, 4, 8, 16)
    histogram = Histogram((1.0, 2.0))
    for value in (0.5, 1.0, 1.5, 9.0):
        histogram.observe(value)
    assert histogram.cumulative() == [("1", 2), ("2", 3), ("+Inf", 4)]
    assert histogram.sum == 12.0
