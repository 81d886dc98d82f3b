"""Metrics of the worker pools, with the names of client-go's work queues."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from prometheus_client.metrics_core import HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from stowage.operator.metrics import definitions
from stowage.operator.metrics.definition import Definition
from stowage.operator.metrics.families import family_of
from stowage.operator.metrics.histogram import Histogram
from stowage.operator.writers.worker_pool import WorkerPool


class WorkQueueMetrics(Collector):
    """Reads the worker pools at each scrape."""

    def __init__(self, pools: Sequence[WorkerPool[Any]]) -> None:
        self._pools = pools

    def collect(self) -> Iterator[Metric]:
        """Make the metric families; the registry calls it."""
        names = [(pool.name,) for pool in self._pools]
        running = [pool.running_s() for pool in self._pools]
        for definition, values in (
            (definitions.WORKQUEUE_DEPTH, [pool.num_waiting for pool in self._pools]),
            (definitions.WORKQUEUE_ADDS, [pool.num_added for pool in self._pools]),
            (definitions.WORKQUEUE_UNFINISHED_WORK, [sum(seconds) for seconds in running]),
            (
                definitions.WORKQUEUE_LONGEST_RUNNING,
                [max(seconds, default=0.0) for seconds in running],
            ),
        ):
            yield family_of(definition, zip(names, values, strict=True))
        yield self._histograms(
            definitions.WORKQUEUE_QUEUE_DURATION, [pool.waited_s for pool in self._pools]
        )
        yield self._histograms(
            definitions.WORKQUEUE_WORK_DURATION, [pool.worked_s for pool in self._pools]
        )

    def _histograms(self, definition: Definition, values: Sequence[Histogram]) -> Metric:
        family = HistogramMetricFamily(
            definition.name, definition.help_text, labels=definition.labels
        )
        for pool, histogram in zip(self._pools, values, strict=True):
            family.add_metric((pool.name,), histogram.cumulative(), histogram.sum)
        return family
