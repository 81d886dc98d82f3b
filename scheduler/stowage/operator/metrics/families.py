"""What is counted between two scrapes: dicts and lists, made into families when one comes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from stowage.operator.metrics.definitions import Definition, Kind
from stowage.operator.metrics.histogram import Histogram

Labels = tuple[str, ...]


class HistogramVec:
    """A histogram for each combination of label values; that of no labels is there at once."""

    __slots__ = ("_by_labels", "_definition", "_more_labels")

    def __init__(self, definition: Definition, more_labels: Labels = ()) -> None:
        self._definition = definition
        self._more_labels = more_labels
        self._by_labels: dict[Labels, Histogram] = {}
        if not definition.labels:
            self._by_labels[()] = Histogram(definition.buckets)

    def observe(self, labels: Labels, value: float) -> None:
        """Count one value; `labels` are all but those that never change."""
        try:
            observe = self._by_labels[labels].observe
        except KeyError:
            histogram = self._by_labels[labels] = Histogram(self._definition.buckets)
            observe = histogram.observe
        observe(value)

    def counts(self) -> Iterator[tuple[Labels, float]]:
        """How many values there are, by labels: a counter that need not be counted again."""
        for labels, histogram in self._by_labels.items():
            yield (*labels, *self._more_labels), histogram.count

    def family(self) -> Metric:
        """As Prometheus has it."""
        definition = self._definition
        family = HistogramMetricFamily(
            definition.name, definition.help_text, labels=definition.labels
        )
        for labels, histogram in self._by_labels.items():
            family.add_metric((*labels, *self._more_labels), histogram.cumulative(), histogram.sum)
        return family


class CounterVec:
    """A counter for each combination of label values; that of no labels is there at once."""

    __slots__ = ("_counts", "_definition", "_more_labels")

    def __init__(self, definition: Definition, more_labels: Labels = ()) -> None:
        self._definition = definition
        self._more_labels = more_labels
        self._counts: dict[Labels, int] = {}
        if not definition.labels:
            self._counts[()] = 0

    def add(self, labels: Labels = ()) -> None:
        """Count one more; `labels` are all but those that never change."""
        try:
            self._counts[labels] += 1
        except KeyError:
            self._counts[labels] = 1

    def family(self) -> Metric:
        """As Prometheus has it."""
        counts = self._counts.items()
        return family_of(
            self._definition, (((*labels, *self._more_labels), count) for labels, count in counts)
        )


def family_of(definition: Definition, values: Iterable[tuple[Labels, float]]) -> Metric:
    """A counter or gauge with values that are kept elsewhere."""
    make = CounterMetricFamily if definition.kind is Kind.COUNTER else GaugeMetricFamily
    family = make(definition.name, definition.help_text, labels=definition.labels)
    for labels, value in values:
        family.add_metric(labels, value)
    return family
