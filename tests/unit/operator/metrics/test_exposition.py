"""kube-scheduler's metrics are exposed with its names, labels and buckets."""

from __future__ import annotations

from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from stowage.api.instructions import (
    AttemptResult,
    BindingConditionsAwaited,
    PodBound,
    PodReference,
    PreemptionAttempted,
    PreemptionFinished,
)
from stowage.operator.metrics.scheduler_metrics import Metrics
from tests.support.fake_api import FakeTime
from tests.support.round_robin_engine import RoundRobinEngine

POD = PodReference("default", "p", "u1")

# Name, type, labels, first and last finite bucket and their number: the table of STABLE metrics in
# the Kubernetes metrics reference, v1.36.
STABLE = [
    ("schedule_attempts_total", "counter", {"result", "profile"}, None),
    (
        "scheduling_attempt_duration_seconds",
        "histogram",
        {"result", "profile"},
        ("0.001", "16.384", 15),
    ),
    (
        "framework_extension_point_duration_seconds",
        "histogram",
        {"extension_point", "status", "profile"},
        ("0.0001", "0.2048", 12),
    ),
    ("pod_scheduling_attempts", "histogram", set(), ("1", "16", 5)),
    ("preemption_attempts_total", "counter", set(), None),
    ("preemption_victims", "histogram", set(), ("1", "64", 7)),
    ("pending_pods", "gauge", {"queue"}, None),
    ("queue_incoming_pods_total", "counter", {"queue", "event"}, None),
]
HELP = {
    "schedule_attempts_total": "[STABLE] Number of attempts to schedule pods, by the result. "
    "'unschedulable' means a pod could not be scheduled, while 'error' means an internal "
    "scheduler problem.",
    "scheduling_attempt_duration_seconds": "[STABLE] Scheduling attempt latency in seconds "
    "(scheduling algorithm + binding)",
    "framework_extension_point_duration_seconds": "[STABLE] Latency for running all plugins of a "
    "specific extension point.",
    "pod_scheduling_attempts": "[STABLE] Number of attempts to successfully schedule a pod.",
    "preemption_attempts_total": "[STABLE] Total preemption attempts in the cluster till now",
    "preemption_victims": "[STABLE] Number of selected preemption victims",
    "queue_incoming_pods_total": "[STABLE] Number of pods added to scheduling queues by event and "
    "queue type.",
}


def _exposition() -> str:
    metrics, engine = Metrics(FakeTime().monotonic), RoundRobinEngine()
    metrics.attach_engine(engine, lambda: 0)
    metrics.observe_attempt(AttemptResult(POD, "scheduled", "stowage", 1, duration_s=0.002))
    metrics.observe_extension_point("Filter", "Success", "stowage", 0.0001)
    metrics.observe_bind("u1", "Success", 0.01)
    metrics.observe_bound(PodBound(POD, "n", "stowage", 1, 0.5))
    return metrics.exposition().decode()


def _families(text: str) -> dict[str, Metric]:
    return {family.name: family for family in text_string_to_metric_families(text)}


def test_every_stable_metric_has_its_type_labels_and_buckets_of_kube_scheduler() -> None:
    text = _exposition()
    families = _families(text)
    for name, kind, labels, buckets in STABLE:
        full = f"scheduler_{name}"
        assert f"\n# TYPE {full} {kind}\n" in text
        family = families[full.removesuffix("_total")]
        found = {frozenset(sample.labels) - {"le"} for sample in family.samples}
        assert found == {frozenset(labels)}, name
        if buckets is not None:
            prefix = f"{full}_bucket"
            bounds = dict.fromkeys(
                line.split('le="')[1].split('"')[0]
                for line in text.splitlines()
                if line.startswith(prefix)
            )
            first, *_, last, infinity = bounds
            assert (first, last, len(bounds) - 1) == buckets, name
            assert infinity == "+Inf"


def test_help_texts_name_the_stability_level() -> None:
    text = _exposition()
    for name, help_text in HELP.items():
        assert f"# HELP scheduler_{name} {help_text}\n" in text
    assert "# HELP scheduler_pending_pods [STABLE] Number of pending pods, by the queue type." in (
        text
    )


def test_counters_start_at_zero_rather_than_missing() -> None:
    text = Metrics(FakeTime().monotonic).exposition().decode()
    assert "\nscheduler_preemption_attempts_total 0.0\n" in text
    assert "\nscheduler_preemption_victims_count 0.0\n" in text
    assert "\nscheduler_pod_scheduling_attempts_count 0.0\n" in text


def test_a_binding_request_counts_as_the_bind_point_of_its_profile() -> None:
    family = _families(_exposition())["scheduler_framework_extension_point_duration_seconds"]
    labels = {"extension_point": "Bind", "status": "Success", "profile": "stowage"}
    (count,) = [
        sample.value
        for sample in family.samples
        if sample.name.endswith("_count") and sample.labels == labels
    ]
    assert count == 1


def test_waits_for_devices_count_for_each_driver() -> None:
    metrics = Metrics(FakeTime().monotonic)
    drivers = ("fpga.example.com", "gpu.example.com")
    metrics.observe_binding_conditions(
        BindingConditionsAwaited(POD, "stowage", drivers, "timeout", 600.0)
    )
    text = metrics.exposition().decode()
    for driver in drivers:
        labels = f'{{driver="{driver}",profile="stowage",status="timeout"}}'
        assert f"\nscheduler_dra_bindingconditions_allocations_total{labels} 1.0\n" in text
        name = "scheduler_dra_bindingconditions_wait_duration_seconds_sum"
        assert f"\n{name}{labels} 600.0\n" in text


def test_preemptions_count_victims_and_evictions_count_outcomes() -> None:
    metrics = Metrics(FakeTime().monotonic)
    metrics.observe_preemption(PreemptionAttempted(POD))
    metrics.observe_preemption(PreemptionAttempted(POD, "n", 3))
    metrics.observe_preemption_finished(PreemptionFinished(POD, "n", False, 0.5))
    metrics.observe_preemption_finished(PreemptionFinished(POD, "n", True, 0.25))
    text = metrics.exposition().decode()
    assert "\nscheduler_preemption_attempts_total 2.0\n" in text
    assert "\nscheduler_preemption_victims_count 1.0\n" in text
    assert "\nscheduler_preemption_victims_sum 3.0\n" in text
    for result, seconds in (("success", 0.5), ("error", 0.25)):
        labels = f'{{result="{result}"}}'
        assert f"\nscheduler_preemption_goroutines_execution_total{labels} 1.0\n" in text
        assert f"\nscheduler_preemption_goroutines_duration_seconds_sum{labels} {seconds}\n" in text
