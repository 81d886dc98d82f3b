"""The devices of a node: which claim has which, and which are free."""

from __future__ import annotations

from collections import defaultdict

from stowage.analysis.devices.funnel import NodeDevices
from stowage.analysis.devices.shortage import NodeDevice
from stowage.analysis.near_misses import taint_text
from stowage.state.devices.device_info import DeviceId, DeviceInfo
from stowage.state.devices.devices import Devices
from stowage.state.snapshot import Snapshot


def devices_of_node(snapshot: Snapshot, row: int) -> tuple[NodeDevice, ...]:
    """The devices of a node, in the order in which they are tried."""
    devices = snapshot.devices
    node = NodeDevices(*devices.slices.node_of(row), devices.slices.pools_of(row))
    owners = _owners(devices)
    return tuple(
        _described(
            device,
            owners.get(device.id, ()),
            devices,
            is_usable=pool.is_usable and not device.is_unseen,
        )
        for pool in node.pools
        for device in pool.devices
        if device.nodes is None or device.nodes.matches(node.node, node.labels)
    )


def _described(
    device: DeviceInfo, claims: tuple[str, ...], devices: Devices, *, is_usable: bool
) -> NodeDevice:
    signature = device.signature
    return NodeDevice(
        str(device.id),
        {name: value for name, (_, value) in signature.attributes.items()},
        {name: rule.value.text for name, rule in signature.capacity.items()},
        tuple(map(taint_text, device.taints)),
        claims,
        device.id not in devices.allocated.whole,
        is_usable,
    )


def _owners(devices: Devices) -> dict[DeviceId, tuple[str, ...]]:
    """Device -> the claims that have it, those in flight included."""
    allocations = [
        (each.metadata.namespaced_name, each.status.allocation) for each in devices.claims
    ]
    allocations += [(each.claim, each.allocation) for each in devices.in_flight.values()]
    owners: defaultdict[DeviceId, dict[str, None]] = defaultdict(dict)
    for claim, allocation in allocations:
        for result in () if allocation is None else allocation.devices.results:
            owners[DeviceId(result.driver, result.pool, result.device)][claim] = None
    return {device: tuple(sorted(claims)) for device, claims in owners.items()}
