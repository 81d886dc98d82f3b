"""Which parts of dynamic resource allocation the feature gates switch on."""

from __future__ import annotations

import msgspec

from stowage.api.config.feature_gates import FeatureGates


class DeviceFeatures(msgspec.Struct, frozen=True):
    """The parts that can be switched off (``AllocatorFeatures`` and ``feature.Features`` of v1.36).

    Attributes:
        prioritized_list: Requests may have alternatives, and nodes are scored by them.
        filter_timeout: The search for devices on one node has a time limit.
        binding_conditions: Devices may need preparation before a pod is bound.
        taints: Taints keep devices from requests that do not tolerate them.
        partitionable: Devices may consume shared counters and say their nodes themselves.
        consumable_capacity: Claims may share devices and request capacity.
        extended_resources: Device classes serve extended resources.
    """

    prioritized_list: bool = True
    filter_timeout: bool = True
    binding_conditions: bool = True
    taints: bool = True
    partitionable: bool = True
    consumable_capacity: bool = True
    extended_resources: bool = True


ALL_FEATURES = DeviceFeatures()


def device_features(gates: FeatureGates) -> DeviceFeatures:
    """The parts that feature gates switch on."""
    return DeviceFeatures(
        prioritized_list=gates.enabled("DRAPrioritizedList"),
        filter_timeout=gates.enabled("DRASchedulerFilterTimeout"),
        binding_conditions=gates.enabled("DRADeviceBindingConditions")
        and gates.enabled("DRAResourceClaimDeviceStatus"),
        taints=gates.enabled("DRADeviceTaints"),
        partitionable=gates.enabled("DRAPartitionableDevices"),
        consumable_capacity=gates.enabled("DRAConsumableCapacity"),
        extended_resources=gates.enabled("DRAExtendedResource"),
    )
