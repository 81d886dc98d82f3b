"""Metrics that ``--disabled-metrics`` leaves out of the exposition."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from stowage.operator.metrics import definitions
from stowage.operator.metrics.families import family_of


class DisabledMetrics(Collector):
    """The metrics that are not exposed, and their number as a metric.

    Args:
        names: Complete names, as in ``# TYPE`` lines; unknown ones count too, as in component-base.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names = frozenset(names)

    def collect(self) -> Iterator[Metric]:
        """Make the metric family; the registry calls it."""
        yield family_of(definitions.DISABLED_METRICS, [((), len(self._names))])

    def exposition(self, collector: Collector) -> bytes:
        """The collector's metrics that are not disabled, in Prometheus' text format."""
        # Imported late: it imports HTTP servers.
        from prometheus_client import generate_latest  # noqa: PLC0415

        return generate_latest(_Enabled(collector, self._names))


class _Enabled(Collector):
    """The metrics of another collector, but for those with these names."""

    def __init__(self, collector: Collector, disabled: frozenset[str]) -> None:
        self._collector = collector
        self._disabled = disabled

    def collect(self) -> Iterator[Metric]:
        for family in self._collector.collect():
            # The library's names of counters are without the suffix.
            suffix = "_total" if family.type == "counter" else ""
            if f"{family.name}{suffix}" not in self._disabled:
                yield family
