"""Decisions are counted in buckets of time."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stowage.console.decisions.rates import MAX_BUCKETS, DecisionRates

LATENCIES = st.lists(st.floats(1e-6, 1e3), min_size=1, max_size=200)


@given(LATENCIES)
def test_percentiles_are_exact_to_one_percent(latencies: list[float]) -> None:
    rates = DecisionRates()
    for latency_s in latencies:
        rates.add(10.0, "scheduled", latency_s)
    found = rates.latencies()
    exact = np.percentile(latencies, [50, 90, 99], method="inverted_cdf").tolist()
    assert [found.p50, found.p90, found.p99] == pytest.approx(exact, rel=0.016)
    assert found.n == len(latencies)


def test_without_latencies_there_is_no_percentile() -> None:
    rates = DecisionRates()
    rates.add(10.0, "unschedulable", None)
    assert (rates.latencies().p50, rates.latencies().n) == (None, 0)


def test_a_latency_of_zero_is_zero() -> None:
    rates = DecisionRates()
    rates.add(10.0, "scheduled", 0.0)
    assert rates.latencies().p99 == 0.0


def test_buckets_are_columns_up_to_now() -> None:
    rates = DecisionRates()
    for at, result in [(5.1, "scheduled"), (5.9, "scheduled"), (7.0, "error")]:
        rates.add(at, result, 0.5)
    columns = rates.columns(8.5)
    assert columns.start == "1970-01-01T00:00:05.000Z"
    assert columns.scheduled == [2, 0, 0, 0]
    assert columns.error == [0, 0, 1, 0]
    assert [each is None for each in columns.p50] == [False, True, False, True]
    last = rates.last_bucket(8.5)
    assert (last.error, last.time) == (1, "1970-01-01T00:00:07.000Z")


def test_the_rate_is_the_mean_of_the_last_minute() -> None:
    rates = DecisionRates()
    for second in range(100):
        rates.add(float(second), "scheduled", None)
        rates.add(float(second), "scheduled", None)
    assert rates.rate(99.5) == 2.0
    assert rates.rate(129.5) == 1.0
    assert rates.rate(500.0) == 0.0


def test_a_late_decision_is_put_into_its_bucket() -> None:
    rates = DecisionRates()
    for at in (10.0, 12.0, 11.0):
        rates.add(at, "scheduled", None)
    assert rates.columns(12.0).scheduled == [1, 1, 1]


def test_a_decision_older_than_all_buckets_counts_only_for_the_total() -> None:
    rates = DecisionRates()
    rates.add(1_000.0, "scheduled", None)
    rates.add(1_000.0 - MAX_BUCKETS, "scheduled", None)
    assert sum(rates.columns(1_000.0).scheduled) == 1
    assert rates.totals["scheduled"] == 2


def test_a_day_of_decisions_takes_a_bounded_number_of_buckets() -> None:
    rates = DecisionRates()
    for second in range(0, 86_400, 7):
        rates.add(float(second), "scheduled", 0.001 * (second % 13))
    columns = rates.columns(86_400.0)
    assert len(columns.scheduled) <= MAX_BUCKETS
    assert rates.totals["scheduled"] == len(range(0, 86_400, 7))
    assert sys.getsizeof(columns.p50) < 8 * MAX_BUCKETS + 200
