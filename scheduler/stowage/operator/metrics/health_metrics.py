"""Results of the health checks: ``/metrics/slis``."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from stowage.operator.metrics import definitions
from stowage.operator.metrics.families import CounterVec, family_of


class HealthMetrics(Collector):
    """Counts the checks of requested health endpoints, as apiserver's ``healthz`` package does."""

    def __init__(self) -> None:
        self._latest: dict[tuple[str, str], float] = {}
        self._results = CounterVec(definitions.HEALTHCHECKS)

    def observe(self, check: str, endpoint: str, *, is_ok: bool) -> None:
        """Count one result of a check."""
        self._latest[check, endpoint] = float(is_ok)
        self._results.add((check, endpoint, "success" if is_ok else "error"))

    def collect(self) -> Iterator[Metric]:
        """Make the metric families."""
        yield family_of(definitions.HEALTHCHECK, self._latest.items())
        yield self._results.family()
