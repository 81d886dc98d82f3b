"""The feature gates are in the metrics, with kube-scheduler's names and stages."""

from __future__ import annotations

from stowage.api.config.feature_gates import parse_feature_gates
from stowage.operator.metrics.replica_metrics import FeatureGateMetrics


def test_every_gate_has_its_stage_and_value() -> None:
    (family,) = FeatureGateMetrics(parse_feature_gates(["GenericWorkload=true"])).collect()
    values = {
        (sample.labels["name"], sample.labels["stage"]): sample.value for sample in family.samples
    }
    assert family.name == "kubernetes_feature_enabled"
    assert values["GenericWorkload", "ALPHA"] == 1
    assert values["GangScheduling", "ALPHA"] == 0
    assert values["SchedulerQueueingHints", ""] == 1
    assert values["OpportunisticBatching", "BETA"] == 1
