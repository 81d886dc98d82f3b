"""``--disabled-metrics`` leaves metrics out by their complete names."""

from __future__ import annotations

import re
from collections.abc import Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from stowage.operator.metrics import definitions, own_definitions
from stowage.operator.metrics.disabled_metrics import DisabledMetrics
from stowage.operator.metrics.families import HistogramVec, family_of


class _Some(Collector):
    """A counter, a gauge and a histogram."""

    def collect(self) -> Iterator[Metric]:
        yield family_of(own_definitions.PROBLEMS, [((), 3)])
        yield family_of(own_definitions.OLDEST_PENDING_POD, [((), 1.5)])
        yield HistogramVec(definitions.SCHEDULING_ALGORITHM_DURATION).family()


ALL = {
    "disabled_metrics_total",
    own_definitions.PROBLEMS.name,
    own_definitions.OLDEST_PENDING_POD.name,
    definitions.SCHEDULING_ALGORITHM_DURATION.name,
}


def _exposed(*disabled: str) -> tuple[set[str], str]:
    """The names of the exposed metrics, and the whole text."""
    metrics, registry = DisabledMetrics(disabled), CollectorRegistry()
    registry.register(_Some())
    registry.register(metrics)
    text = metrics.exposition(registry).decode()
    return set(re.findall(r"^# TYPE (\S+) ", text, re.MULTILINE)), text


def test_all_metrics_are_exposed_by_default() -> None:
    names, text = _exposed()
    assert names == ALL
    assert "\ndisabled_metrics_total 0.0\n" in text


def test_a_disabled_metric_leaves_no_sample_and_is_counted() -> None:
    for name in ALL - {"disabled_metrics_total"}:
        names, text = _exposed(name, name)
        assert names == ALL - {name}
        assert name not in text
        assert "\ndisabled_metrics_total 1.0\n" in text


def test_a_part_of_a_name_disables_nothing() -> None:
    bucket = f"{definitions.SCHEDULING_ALGORITHM_DURATION.name}_bucket"
    without_suffix = own_definitions.PROBLEMS.name.removesuffix("_total")
    assert without_suffix != own_definitions.PROBLEMS.name
    names, _ = _exposed(bucket, without_suffix, "unknown")
    assert names == ALL
