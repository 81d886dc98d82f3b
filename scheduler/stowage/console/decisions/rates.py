"""Counts and latencies of decisions over time, in a bounded number of buckets."""

from __future__ import annotations

import math
from collections import Counter, OrderedDict
from collections.abc import Iterable

from stowage.api.decisions import RESULTS
from stowage.console.answers.answer import Answer, rfc3339

MAX_BUCKETS = 300
RATE_S = 60.0
"""The rate is the mean over this time."""

_GROWTH = math.log(1.02)


class Latencies(Answer, frozen=True):
    """Percentiles of latencies in seconds; None without any. They are exact to one percent."""

    p50: float | None
    p90: float | None
    p99: float | None
    n: int


class BucketColumns(Answer, frozen=True):
    """Decisions over time, oldest bucket first; a bucket has `step_s` seconds."""

    step_s: float
    start: str
    scheduled: list[int]
    unschedulable: list[int]
    error: list[int]
    p50: list[float | None]
    p99: list[float | None]


class LastBucket(Answer, frozen=True):
    """The last complete bucket."""

    time: str
    step_s: float
    scheduled: int
    unschedulable: int
    error: int
    p50: float | None
    p99: float | None


class _Bucket:
    """The decisions of one step: counts by result, and a histogram of latencies."""

    __slots__ = ("latencies", "results")

    def __init__(self) -> None:
        self.results: Counter[str] = Counter()
        self.latencies: Counter[int] = Counter()


class DecisionRates:
    """Counts decisions; memory does not grow with their number.

    Args:
        step_s: The length of a bucket in seconds.

    Attributes:
        totals: Result -> number of all decisions.
    """

    def __init__(self, step_s: float = 1.0) -> None:
        self.totals: Counter[str] = Counter()
        self.step_s = step_s
        self._buckets: OrderedDict[int, _Bucket] = OrderedDict()

    def add(self, unix_s: float, result: str, latency_s: float | None) -> None:
        """Count a decision; one that is older than all buckets counts only for the totals."""
        self.totals[result] += 1
        step = math.floor(unix_s / self.step_s)
        newest = next(reversed(self._buckets), step)
        if step <= newest - MAX_BUCKETS:
            return
        bucket = self._buckets.get(step)
        if bucket is None:
            bucket = self._buckets[step] = _Bucket()
            if step < newest:
                self._buckets = OrderedDict(sorted(self._buckets.items()))
        bucket.results[result] += 1
        if latency_s is not None:
            bucket.latencies[_bin(latency_s)] += 1
        while len(self._buckets) > MAX_BUCKETS:
            self._buckets.popitem(last=False)

    def rate(self, now_s: float) -> float:
        """Decisions a second over the last minute, or over one bucket if that is longer."""
        steps = max(1, round(RATE_S / self.step_s))
        last = math.floor(now_s / self.step_s)
        counted = (self._buckets.get(step) for step in range(last - steps + 1, last + 1))
        total = sum(each.results.total() for each in counted if each is not None)
        return round(total / (steps * self.step_s), 3)

    def latencies(self) -> Latencies:
        """The percentiles over all buckets."""
        merged: Counter[int] = Counter()
        for bucket in self._buckets.values():
            merged.update(bucket.latencies)
        p50, p90, p99 = percentiles(merged, (0.5, 0.9, 0.99))
        return Latencies(p50, p90, p99, merged.total())

    def columns(self, now_s: float) -> BucketColumns:
        """All buckets up to a time, those without decisions included."""
        last = math.floor(now_s / self.step_s)
        first = max(next(iter(self._buckets), last), last - MAX_BUCKETS + 1)
        buckets = [self._buckets.get(step, _EMPTY) for step in range(first, last + 1)]
        shares = [percentiles(each.latencies, (0.5, 0.99)) for each in buckets]
        scheduled, unschedulable, error = (
            [each.results[result] for each in buckets] for result in RESULTS
        )
        p50, p99 = [each[0] for each in shares], [each[1] for each in shares]
        start = rfc3339(first * self.step_s)
        return BucketColumns(self.step_s, start, scheduled, unschedulable, error, p50, p99)

    def last_bucket(self, now_s: float) -> LastBucket:
        """The bucket before the one of `now_s`."""
        step = math.floor(now_s / self.step_s) - 1
        bucket = self._buckets.get(step, _EMPTY)
        p50, p99 = percentiles(bucket.latencies, (0.5, 0.99))
        scheduled, unschedulable, error = (bucket.results[result] for result in RESULTS)
        time = rfc3339(step * self.step_s)
        return LastBucket(time, self.step_s, scheduled, unschedulable, error, p50, p99)


def percentiles(histogram: Counter[int], shares: Iterable[float]) -> list[float | None]:
    """The latencies below which these shares of a histogram are; None for an empty one."""
    total = histogram.total()
    ordered = sorted(histogram.items())
    found: list[float | None] = []
    for share in shares:
        left = share * total
        value: float | None = None
        for index, count in ordered:
            value = _value(index)
            left -= count
            if left <= 0:
                break
        found.append(value)
    return found


_EMPTY = _Bucket()
_ZERO = -(10**6)
"""The bin of latencies that are not positive."""


def _bin(latency_s: float) -> int:
    return round(math.log(latency_s) / _GROWTH) if latency_s > 0 else _ZERO


def _value(index: int) -> float:
    return 0.0 if index == _ZERO else float(f"{math.exp(index * _GROWTH):.3g}")
