"""Histograms and counters by label values, and the metric families made from them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
    UnknownMetricFamily,
)

from stowage.operator.metrics.definition import Definition, Kind
from stowage.operator.metrics.histogram import Histogram

Labels = tuple[str, ...]

MAX_UNCOUNTED = 256
"""So many values wait to be counted together: one at a time, a value costs three times as much."""


class HistogramVec:
    """A histogram for each combination of label values.

    Args:
        definition: The metric; without labels, its histogram exists from the start.
        more_labels: Values of the last labels, which never change.
    """

    __slots__ = ("_by_labels", "_definition", "_more_labels", "_uncounted")

    def __init__(self, definition: Definition, more_labels: Labels = ()) -> None:
        self._definition = definition
        self._more_labels = more_labels
        self._by_labels: dict[Labels, Histogram] = {}
        self._uncounted: list[tuple[Labels, float]] = []
        if not definition.labels:
            self._by_labels[()] = Histogram(definition.buckets)

    def observe(self, labels: Labels, value: float) -> None:
        """Count one value; `labels` are the values of the other labels."""
        uncounted = self._uncounted
        uncounted.append((labels, value))
        if len(uncounted) >= MAX_UNCOUNTED:
            self._histograms()

    def counts(self) -> Iterator[tuple[Labels, float]]:
        """(labels, number of values) of each histogram."""
        for labels, histogram in self._histograms().items():
            yield (*labels, *self._more_labels), histogram.count

    def family(self) -> Metric:
        """The metric family for Prometheus."""
        definition = self._definition
        family = HistogramMetricFamily(
            definition.name, definition.help_text, labels=definition.labels
        )
        for labels, histogram in self._histograms().items():
            family.add_metric((*labels, *self._more_labels), histogram.cumulative(), histogram.sum)
        return family

    def _histograms(self) -> dict[Labels, Histogram]:
        """The histograms by labels, with every value counted."""
        by_labels = self._by_labels
        for labels, value in self._uncounted:
            histogram = by_labels.get(labels)
            if histogram is None:
                histogram = by_labels[labels] = Histogram(self._definition.buckets)
            histogram.observe(value)
        self._uncounted.clear()
        return by_labels


class CounterVec:
    """A counter for each combination of label values.

    Args:
        definition: The metric; without labels, its counter exists from the start.
        more_labels: Values of the last labels, which never change.
    """

    __slots__ = ("_counts", "_definition", "_more_labels")

    def __init__(self, definition: Definition, more_labels: Labels = ()) -> None:
        self._definition = definition
        self._more_labels = more_labels
        self._counts: dict[Labels, int] = {}
        if not definition.labels:
            self._counts[()] = 0

    def add(self, labels: Labels = ()) -> None:
        """Add 1; `labels` are the values of the other labels."""
        try:
            self._counts[labels] += 1
        except KeyError:
            self._counts[labels] = 1

    def family(self) -> Metric:
        """The metric family for Prometheus."""
        counts = self._counts.items()
        return family_of(
            self._definition, (((*labels, *self._more_labels), count) for labels, count in counts)
        )


def family_of(definition: Definition, values: Iterable[tuple[Labels, float]]) -> Metric:
    """The metric family of a counter or gauge, from its values by labels."""
    make: type[GaugeMetricFamily | CounterMetricFamily | UnknownMetricFamily] = GaugeMetricFamily
    if definition.kind is Kind.COUNTER:
        # The library adds _total to the name of a counter; untyped, an older name stays.
        is_total = definition.name.endswith("_total")
        make = CounterMetricFamily if is_total else UnknownMetricFamily
    family = make(definition.name, definition.help_text, labels=definition.labels)
    for labels, value in values:
        family.add_metric(labels, value)
    return family
