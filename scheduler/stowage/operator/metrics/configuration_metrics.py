"""Metrics of the configuration in force and of refused versions."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from stowage.operator.configuration.live_configuration import LiveConfiguration


class ConfigurationMetrics(Collector):
    """Reads `LiveConfiguration` at each scrape."""

    def __init__(self, configuration: LiveConfiguration) -> None:
        self._configuration = configuration

    def collect(self) -> Iterator[Metric]:
        """Make the metric families; the registry calls it."""
        configuration = self._configuration
        info = GaugeMetricFamily(
            "stowage_configuration_info",
            "Always 1; the label is the hash of the configuration in force.",
            labels=["hash"],
        )
        info.add_metric([configuration.active.hash], 1)
        yield info
        refusal = configuration.refusal
        yield GaugeMetricFamily(
            "stowage_configuration_errors",
            "Number of errors in the latest version of the ConfigMap; 0 if it was accepted.",
            value=0 if refusal is None else len(refusal.errors),
        )
        yield GaugeMetricFamily(
            "stowage_configuration_last_reload_successful",
            "1 if the latest version of the ConfigMap was accepted, 0 if it was refused.",
            value=1 if refusal is None else 0,
        )
        reloads = CounterMetricFamily(
            "stowage_configuration_reloads",
            "Number of versions of the ConfigMap that came into force or were refused.",
            labels=["result"],
        )
        reloads.add_metric(["applied"], configuration.num_applied)
        reloads.add_metric(["refused"], configuration.num_refused)
        yield reloads
