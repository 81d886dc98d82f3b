"""Devices as amounts of an extended resource: how many a class selects on each node."""

from __future__ import annotations

import msgspec
import numpy as np

from stowage.api.objects.device import DeviceClass
from stowage.state.arrays import BoolArray, Int64Array
from stowage.state.devices.allocations import AllocatedDevices
from stowage.state.devices.device_info import DeviceInfo
from stowage.state.devices.selection import FAILS, YES, Selectors, select_signatures
from stowage.state.devices.slices import DeviceSlices


class ClassDevices(msgspec.Struct, frozen=True, eq=False):
    """The devices of a class.

    Attributes:
        total: ``int64[rows]``: the devices of each node.
        used: ``int64[rows]``: those of them that are allocated, as a whole or in part.
    """

    total: Int64Array
    used: Int64Array


def count_devices(
    device_class: DeviceClass,
    slices: DeviceSlices,
    allocated: AllocatedDevices,
    selectors: Selectors,
) -> ClassDevices:
    """Count the devices that a class selects, of all slices that a node can use.

    Generations and completeness of pools are not looked at. A node for one of whose devices a
    selector fails has none (``calculateDRAExtendedResourceAllocatableRequest`` of v1.36).
    """
    columns, num_rows = slices.columns, slices.node_rows
    expressions = [
        "" if each.cel is None else each.cel.expression for each in device_class.spec.selectors
    ]
    table = select_signatures(selectors, expressions, columns)
    if not len(table):
        nothing = np.zeros(num_rows, dtype=np.int64)
        return ClassDevices(nothing, nothing)
    verdicts = table[columns.signature]
    is_used = columns.in_use.copy()
    for device in allocated.shares:
        for found in slices.devices_of(device):
            is_used[found.row] = True
    is_local = columns.node_row >= 0
    selected = is_local & (verdicts == YES)
    total = np.bincount(columns.node_row[selected], minlength=num_rows)
    used = np.bincount(columns.node_row[selected & is_used], minlength=num_rows)
    fails = np.bincount(columns.node_row[is_local & (verdicts == FAILS)], minlength=num_rows)
    for info, here in slices.shared():
        rows = here.nonzero()[0]
        # Only devices that say their nodes differ between the nodes of a slice.
        for some in rows[:, np.newaxis] if info.is_per_device else [rows]:
            devices = [
                each.row
                for each in info.devices
                if not info.is_per_device or _is_here(each, int(some[0]), slices)
            ]
            fails[some] += int((verdicts[devices] == FAILS).sum())
            total[some] += int((verdicts[devices] == YES).sum())
            used[some] += int(((verdicts[devices] == YES) & is_used[devices]).sum())
    is_sound: BoolArray = fails == 0
    return ClassDevices(total * is_sound, used * is_sound)


def _is_here(device: DeviceInfo, row: int, slices: DeviceSlices) -> bool:
    return device.nodes is not None and device.nodes.matches(*slices.node_of(row))
