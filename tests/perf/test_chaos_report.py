"""The recorded chaos run was long, large and without violations."""

from pathlib import Path

import msgspec
import pytest

from stowage_benchmarks.chaos.plan import REQUESTS
from stowage_benchmarks.chaos.result import ChaosResult


@pytest.fixture
def report() -> ChaosResult:
    text = (Path(__file__).parent / "chaos-report.json").read_bytes()
    return msgspec.json.decode(text, type=ChaosResult)


def test_the_run_lasted_an_hour_and_bound_two_hundred_thousand_pods(report: ChaosResult) -> None:
    assert report.minutes >= 60
    assert report.counts["pods bound"] >= 200_000
    assert report.pods_created_per_s >= 60


def test_the_run_had_no_violation(report: ChaosResult) -> None:
    assert report.is_complete
    assert report.violations == []
    assert report.recovered_after_last_fault_s is not None


def test_faults_hit_every_kind_of_request(report: ChaosResult) -> None:
    assert {name.partition(":")[0] for name in report.requests_hit} >= set(REQUESTS)
