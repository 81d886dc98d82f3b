"""The core benchmark, on a small cluster."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from typer.testing import CliRunner

from stowage.cli.main import app
from stowage_benchmarks.core.claims import measure_claims, measure_network_devices
from stowage_benchmarks.core.many_terms import measure_many_terms
from stowage_benchmarks.core.preemption import measure_preemption
from stowage_benchmarks.core.requeue_storm import measure_storms
from stowage_benchmarks.core.run import CoreResult, measure_core, measure_memory
from stowage_benchmarks.workloads import WORKLOADS


@pytest.mark.parametrize("workload", WORKLOADS)
def test_every_pod_of_every_workload_is_bound(workload: str) -> None:
    result = measure_core(workload, num_nodes=100, num_pods=20)
    assert (result.workload, result.nodes, result.pods) == (workload, 100, 20)
    assert result.unscheduled == 0
    assert 0 < result.cycle_median_us <= result.pod_median_us <= result.pod_p99_us


def test_every_pod_of_the_preemption_workload_is_bound() -> None:
    result = measure_preemption(num_nodes=100, num_pods=20)
    assert (result.workload, result.nodes, result.pods) == ("preemption", 100, 20)
    assert result.unscheduled == 0
    assert 0 < result.cycle_median_us <= result.pod_median_us <= result.pod_p99_us


@pytest.mark.parametrize("measure", [measure_claims, measure_network_devices])
def test_every_pod_with_a_claim_is_bound(measure: Callable[[int, int], CoreResult]) -> None:
    result = measure(100, 20)
    assert (result.nodes, result.pods, result.unscheduled) == (100, 20, 0)
    assert 0 < result.cycle_median_us <= result.pod_median_us <= result.pod_p99_us


def test_every_pod_with_many_terms_is_bound() -> None:
    results = measure_many_terms(num_nodes=100, num_terms=200, pods_of_a_kind=1)
    assert [each.workload for each in results] == [
        "node affinity, 200 terms",
        "affinity, 200 terms",
        "anti-affinity, 200 terms",
        "preferred affinity, 200 terms",
    ]
    assert all(each.unscheduled == 0 and each.pod_median_us > 0 for each in results)


def test_the_memory_of_nodes_and_pods_is_measured() -> None:
    result = measure_memory(100)
    assert result.bytes_per_node > 0
    assert result.bytes_per_running_pod > 0


def test_an_event_storm_requeues_exactly_the_pods_that_it_may_make_schedulable() -> None:
    storms = measure_storms(num_nodes=5, waiting=60)
    assert [(each.case, each.woken) for each in storms] == [
        ("none woken", 0),
        ("all woken", 60),
        ("no two pods alike", 0),
        ("no two requests alike", 0),
    ]
    assert all(each.valid and each.worst_event_ms > 0 for each in storms)


def test_the_report_can_be_printed_as_json() -> None:
    arguments = [
        "bench",
        "core",
        "--nodes",
        "100",
        "--workload",
        "spread",
        "--pods",
        "10",
        "--json",
    ]
    outcome = CliRunner().invoke(app, arguments)
    assert outcome.exit_code == 0, outcome.output
    report = msgspec.json.decode(outcome.stdout)
    assert [each["workload"] for each in report["core"]] == ["spread"]
    assert report["memory"][0]["nodes"] == 100


def test_the_error_names_an_unknown_workload() -> None:
    outcome = CliRunner().invoke(app, ["bench", "core", "--nodes", "100", "--workload", "bulky"])
    assert outcome.exit_code == 2
    assert "bulky" in outcome.output
    assert "large-gangs" in outcome.output
