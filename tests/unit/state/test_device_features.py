"""Feature gates switch off parts of dynamic resource allocation."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from stowage.api.config.feature_gates import parse_feature_gates
from stowage.state.devices.features import ALL_FEATURES, device_features


@pytest.mark.parametrize(
    ("gate", "part"),
    [
        ("DRAPrioritizedList", "prioritized_list"),
        ("DRASchedulerFilterTimeout", "filter_timeout"),
        ("DRADeviceBindingConditions", "binding_conditions"),
        ("DRADeviceTaints", "taints"),
        ("DRAPartitionableDevices", "partitionable"),
        ("DRAConsumableCapacity", "consumable_capacity"),
        ("DRAExtendedResource", "extended_resources"),
    ],
)
def test_each_feature_gate_switches_off_its_own_part(gate: str, part: str) -> None:
    everything = device_features(parse_feature_gates([]))
    assert everything == ALL_FEATURES
    without = parse_feature_gates([f"{gate}=false"])
    assert device_features(without) == replace(ALL_FEATURES, **{part: False})
