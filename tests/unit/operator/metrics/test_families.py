"""Histograms by labels: values that wait to be counted are in every answer."""

from __future__ import annotations

from stowage.operator.metrics import definitions
from stowage.operator.metrics.families import MAX_UNCOUNTED, HistogramVec


def test_values_that_are_not_counted_yet_are_in_every_answer() -> None:
    durations = HistogramVec(definitions.SCHEDULING_ATTEMPT_DURATION)
    for number in range(MAX_UNCOUNTED + 3):
        durations.observe(("scheduled" if number % 2 else "error", "stowage"), 1.0)
        assert sum(count for _, count in durations.counts()) == number + 1
    durations.observe(("scheduled", "stowage"), 2.0)
    assert sum(each.value for each in durations.family().samples if each.name.endswith("_sum")) == (
        MAX_UNCOUNTED + 3 + 2.0
    )


def test_as_many_values_as_may_wait_are_counted_at_once() -> None:
    durations = HistogramVec(definitions.SCHEDULING_ATTEMPT_DURATION)
    for _ in range(10 * MAX_UNCOUNTED):
        durations.observe(("scheduled", "stowage"), 1.0)
    assert dict(durations.counts()) == {("scheduled", "stowage"): 10 * MAX_UNCOUNTED}
