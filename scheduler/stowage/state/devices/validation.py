"""Validation of devices: recounts everything from claims and slices and compares."""

from __future__ import annotations

from collections.abc import Iterator

from stowage.state.devices.allocations import AllocatedDevices
from stowage.state.devices.device_columns import DeviceColumns
from stowage.state.devices.device_info import DeviceId, SliceInfo
from stowage.state.devices.devices import Devices
from stowage.state.nodes.node_columns import NodeColumns
from stowage.state.violation import InvariantViolation, expect

_CODES_AT_ONCE = 100


def device_validation_steps(devices: Devices, nodes: NodeColumns) -> Iterator[None]:
    """Recount everything and compare, a slice, pool or few signatures a step.

    Raises:
        InvariantViolation: A column or count differs from the recount, or a device in flight is
            given to another claim as well.
    """
    _check_allocations(devices)
    _check_given_once(devices)
    yield
    for name in [info.name for info in devices.slices]:
        info = devices.slices.get(name)
        if info is not None:
            _check_slice(info, devices, nodes)
        yield
    for key in devices.slices.noted_pools():
        noted, recounted = devices.slices.odd_rows(key)
        expect(f"rows of nodes that are not simple by pool {key}", recounted, noted)
        yield
    yield from _published_steps(devices.slices.columns)


def _published_steps(columns: DeviceColumns) -> Iterator[None]:
    code = 0
    while code < len(columns.signatures):
        for each in range(code, min(code + _CODES_AT_ONCE, len(columns.signatures))):
            expected, found = columns.published.expected(each), columns.published.stored(each)
            expect(f"columns of signature {each}", expected, found)
        code += _CODES_AT_ONCE
        yield


def _check_allocations(devices: Devices) -> None:
    recounted = AllocatedDevices(
        lambda _device, _in_use, _has_shares: None, may_share=devices.allocated.may_share
    )
    shown = {}
    for claim in devices.claims:
        if claim.status.allocation is not None:
            recounted.add(claim.status.allocation.devices.results)
            shown[claim.metadata.uid] = claim.status.allocation.devices.results
    for uid, reserved in devices.in_flight.items():
        if shown.get(uid) != reserved.allocation.devices.results:
            recounted.add(reserved.allocation.devices.results)
    expect("allocated devices", recounted.whole, devices.allocated.whole)
    expect("shared devices", recounted.shares, devices.allocated.shares)
    expect("consumed capacity", recounted.consumed, devices.allocated.consumed)


def _check_slice(info: SliceInfo, devices: Devices, nodes: NodeColumns) -> None:
    columns = devices.slices.columns
    row = nodes.row_of(info.node_name) if info.node_name else -1
    expect(f"row of the node of slice {info.name}", row, info.holds_row)
    for device in info.devices:
        where = f"device {device.id} in row {device.row}"
        expect(f"{where} is listed", True, device in devices.slices.devices_of(device.id))
        expect(f"node of {where}", row, int(columns.node_row[device.row]))
        in_use = device.id in devices.allocated.whole
        expect(f"in_use of {where}", in_use, bool(columns.in_use[device.row]))
        has_shares = device.id in devices.allocated.shares
        expect(f"has_shares of {where}", has_shares, bool(columns.has_shares[device.row]))
        code = int(columns.signature[device.row])
        expect(f"signature of {where}", device.signature, columns.signatures.values[code])
        taints = columns.taint_sets.values[int(columns.taints[device.row])]
        expect(f"taints of {where}", device.taints, taints)
        expect(f"is_plain of {where}", device.is_plain, bool(columns.is_plain[device.row]))


def _check_given_once(devices: Devices) -> None:
    """A device in flight belongs to no other claim, except as a share or with admin access."""
    owner: dict[DeviceId, str] = {}
    for claim_uid, result in devices.allocations():
        if result.admin_access or result.share_id is not None:
            continue
        device = DeviceId(result.driver, result.pool, result.device)
        other = owner.setdefault(device, claim_uid)
        if other != claim_uid and {other, claim_uid} & devices.in_flight.keys():
            raise InvariantViolation(f"device {device}", "given to one claim", [other, claim_uid])
