"""Counting and timing of kube-scheduler's metrics."""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families

from stowage.api.events import PendingPodSeen
from stowage.api.instructions import AttemptResult, PodBound, PodGroupAttemptResult, PodReference
from stowage.operator.client.api_client import SentRequest
from stowage.operator.metrics.histogram import Histogram, exponential_buckets
from stowage.operator.metrics.scheduler_metrics import Metrics
from tests.support.builders import make_pod
from tests.support.engines import default_engine
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


def test_a_pod_is_bound_when_its_binding_is_answered() -> None:
    """The engine hears of the answer later; that time does not count."""
    time = FakeTime()
    metrics = Metrics(time.monotonic)
    metrics.observe_attempt(AttemptResult(POD, "scheduled", "stowage", 1, duration_s=0.002))
    time.now += 0.1
    metrics.observe_bind(POD.uid, "Success", 0.1)
    time.now += 0.05
    metrics.observe_bound(PodBound(POD, "n", "stowage", 1, 0.5))
    samples = _samples(metrics)
    attempt = "scheduler_scheduling_attempt_duration_seconds_sum"
    assert samples[(attempt, frozenset({"scheduled", "stowage"}))] == pytest.approx(0.102)
    since_first = samples[("scheduler_pod_scheduling_sli_duration_seconds_sum", frozenset({"1"}))]
    assert since_first == pytest.approx(0.45)


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


def test_an_attempt_whose_binding_fails_lasts_until_the_failure() -> None:
    time = FakeTime()
    metrics = Metrics(time.monotonic)
    metrics.observe_attempt(AttemptResult(POD, "scheduled", "stowage", 1, duration_s=0.25))
    time.now += 1.0
    metrics.observe_attempt(AttemptResult(POD, "error", "stowage", 1))
    samples, labels = _samples(metrics), frozenset({"error", "stowage"})
    assert samples["scheduler_scheduling_attempt_duration_seconds_sum", labels] == 1.25
    algorithm = "scheduler_scheduling_algorithm_duration_seconds"
    assert samples[f"{algorithm}_count", frozenset()] == 1
    assert samples[f"{algorithm}_sum", frozenset()] == 0.25


def test_a_refused_attempt_counts_at_once() -> None:
    metrics = Metrics(FakeTime().monotonic)
    metrics.observe_attempt(AttemptResult(POD, "unschedulable", "stowage", 2))
    samples = _samples(metrics)
    assert (
        samples[("scheduler_schedule_attempts_total", frozenset({"unschedulable", "stowage"}))] == 1
    )


def test_attempts_of_pod_groups_have_metrics_of_their_own() -> None:
    metrics = Metrics(FakeTime().monotonic)
    attempt = PodGroupAttemptResult(
        "d", "g", "waiting_on_preemption", "stowage", duration_s=0.5, algorithm_duration_s=0.25
    )
    metrics.observe_group_attempt(attempt)
    samples, prefix = _samples(metrics), "scheduler_podgroup"
    labels = frozenset({"waiting_on_preemption", "stowage"})
    assert samples[f"{prefix}_schedule_attempts_total", labels] == 1
    assert samples[f"{prefix}_scheduling_attempt_duration_seconds_sum", labels] == 0.5
    assert samples[f"{prefix}_scheduling_algorithm_duration_seconds_sum", frozenset()] == 0.25
    pods = ("scheduler_schedule_attempts_total", labels)
    assert pods not in samples


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


def _lines(metrics: Metrics) -> list[str]:
    return metrics.exposition().decode().splitlines()


def test_the_sizes_of_requests_and_answers_are_measured() -> None:
    metrics = Metrics(FakeTime().monotonic, "host")
    metrics.observe_request(SentRequest("POST", "201", 0.1, num_sent=300, num_received=70))
    metrics.observe_request(SentRequest("POST", "<error>", 0.1, num_sent=300))
    lines = _lines(metrics)
    labels = '{host="host",verb="POST"}'
    assert f"rest_client_request_size_bytes_count{labels} 2.0" in lines
    assert f"rest_client_request_size_bytes_sum{labels} 600.0" in lines
    assert f"rest_client_response_size_bytes_count{labels} 1.0" in lines
    assert f"rest_client_response_size_bytes_sum{labels} 70.0" in lines


def test_a_pod_bound_after_its_timeout_is_counted() -> None:
    metrics = Metrics(FakeTime().monotonic)
    name = "scheduler_pod_scheduled_after_flush_total"
    assert f"{name} 0.0" in _lines(metrics)
    metrics.observe_bound(PodBound(POD, "n", "stowage", 2, 300.0, was_flushed=True))
    metrics.observe_bound(PodBound(POD, "n", "stowage", 2, 10.0))
    assert f"{name} 1.0" in _lines(metrics)


def test_the_oldest_pending_pod_counts_from_when_it_was_first_ready() -> None:
    time, engine = FakeTime(now=1000.0), default_engine()
    metrics = Metrics(time.monotonic)
    metrics.attach_engine(engine, lambda: 0)
    assert "stowage_oldest_pending_pod_seconds 0.0" in _lines(metrics)
    engine.handle([PendingPodSeen(make_pod("gated", gates=["wait"]))], 100.0)
    engine.handle([PendingPodSeen(make_pod("old"))], 900.0)
    engine.handle([PendingPodSeen(make_pod("young"))], 990.0)
    assert "stowage_oldest_pending_pod_seconds 100.0" in _lines(metrics)


def test_what_is_observed_is_counted_with_its_labels() -> None:
    metrics = Metrics(FakeTime().monotonic, "api:6443")
    metrics.observe_claim_creation("failure")
    metrics.observe_permit_wait("rejected", 0.5)
    metrics.observe_plugin("NodePorts", "Filter", "Success", 0.25)
    metrics.observe_rate_limit("POST", 0.125)
    value = metrics.registry.get_sample_value
    assert value("scheduler_resourceclaim_creates_total", {"status": "failure"}) == 1
    assert value("scheduler_permit_wait_duration_seconds_sum", {"result": "rejected"}) == 0.5
    labels = {"plugin": "NodePorts", "extension_point": "Filter", "status": "Success"}
    assert value("scheduler_plugin_execution_duration_seconds_sum", labels) == 0.25
    labels = {"verb": "POST", "host": "api:6443"}
    assert value("rest_client_rate_limiter_duration_seconds_sum", labels) == 0.125


def test_the_collections_of_garbage_have_metrics() -> None:
    labels = {"generation": "0"}
    metrics = Metrics(FakeTime().monotonic)
    assert metrics.registry.get_sample_value("python_gc_collections_total", labels) is not None
