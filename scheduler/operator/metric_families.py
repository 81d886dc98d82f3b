"""What is counted between two scrapes: dicts and lists, made into families when one comes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from scheduler.operator.histogram import Histogram
from scheduler.operator.metric_definitions import Definition, Kind

Labels = tuple[str, ...]


class HistogramVec:
    """A histogram for each combination of label values; those of no labels is there at once."""

    __slots__ = ("_by_labels", "_definition")

    def __init__(self, definition: Definition) -> None:
        self._definition = definition
        self._by_labels: dict[Labels, Histogram] = {}
        if not definition.labels:
            self._by_labels[()] = Histogram(definition.buckets)

    def observe(self, labels: Labels, value: float) -> None:
        """Count one value."""
        histogram = self._by_labels.get(labels)
        if histogram is None:
            histogram = self._by_labels[labels] = Histogram(self._definition.buckets)
        histogram.observe(value)

    def family(self) -> Metric:
        """As Prometheus has it."""
        definition = self._definition
        family = HistogramMetricFamily(
            definition.name, definition.help_text, labels=definition.labels
        )
        for labels, histogram in self._by_labels.items():
            family.add_metric(labels, histogram.cumulative(), histogram.sum)
        return family


class CounterVec:
    """A counter for each combination of label values; that of no labels is there at once."""

    __slots__ = ("_counts", "_definition")

    def __init__(self, definition: Definition) -> None:
        self._definition = definition
        self._counts: Counter[Labels] = Counter()
        if not definition.labels:
            self._counts[()] = 0

    def add(self, labels: Labels = ()) -> None:
        """Count one more."""
        self._counts[labels] += 1

    def family(self) -> Metric:
        """As Prometheus has it."""
        return family_of(self._definition, self._counts.items())


def family_of(definition: Definition, values: Iterable[tuple[Labels, float]]) -> Metric:
    """A counter or gauge with values that are kept elsewhere."""
    make = CounterMetricFamily if definition.kind is Kind.COUNTER else GaugeMetricFamily
    family = make(definition.name, definition.help_text, labels=definition.labels)
    for labels, value in values:
        family.add_metric(labels, value)
    return family
