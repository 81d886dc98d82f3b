"""Devices as rows of columns: the devices of a slice are consecutive rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stowage.api.objects.node import Taint
from stowage.state.arrays import BoolArray, Int32Array, Int64Array, extended, grown_capacity
from stowage.state.devices.device_info import DeviceInfo, Signature, SliceInfo
from stowage.state.devices.published_columns import PublishedColumns
from stowage.state.interning import Interner

_NO_NODE = -1
_INITIAL_CAPACITY = 64


class DeviceColumns:
    """The columns of all devices of all slices.

    Attributes:
        node_row: ``int32[rows]``: the row of the node of a device; -1 for a device that is not for
            one node, and for free rows.
        signature: ``int32[rows]``: code in `signatures`.
        taints: ``int32[rows]``: code in `taint_sets`.
        in_use: ``bool[rows]``: whether the device is allocated as a whole.
        has_shares: ``bool[rows]``: whether somebody has a share of the device.
        is_plain: ``bool[rows]``: see `DeviceInfo.is_plain`.
        signatures: Code -> signature.
        published: What signatures publish, as columns over their codes.
        taint_sets: Code -> taints.
    """

    def __init__(self) -> None:
        rows = _INITIAL_CAPACITY
        self.node_row: Int32Array = np.full(rows, _NO_NODE, dtype=np.int32)
        self.signature: Int32Array = np.zeros(rows, dtype=np.int32)
        self.taints: Int32Array = np.zeros(rows, dtype=np.int32)
        self.in_use: BoolArray = np.zeros(rows, dtype=np.bool_)
        self.has_shares: BoolArray = np.zeros(rows, dtype=np.bool_)
        self.is_plain: BoolArray = np.zeros(rows, dtype=np.bool_)
        self.signatures: Interner[Signature] = Interner()
        self.published = PublishedColumns(self.signatures)
        self.taint_sets: Interner[tuple[Taint, ...]] = Interner()
        self._end = 0
        # Blocks of rows that a slice has left, by size.
        self._free: dict[int, list[int]] = {}

    @property
    def num_rows(self) -> int:
        """Number of rows, including free ones at the end."""
        return len(self.node_row)

    def signatures_of(self, codes: Int64Array) -> list[Signature]:
        """The signatures with these codes, which devices have."""
        values = self.signatures.values
        return [each for code in codes.tolist() if (each := values[code]) is not None]

    def add(self, info: SliceInfo) -> None:
        """Give the devices of a slice rows, and share their signatures and taints."""
        start = self._take(len(info.devices))
        for row, device in enumerate(info.devices, start):
            version = self.signatures.version
            code = self.signatures.acquire(device.signature)
            if self.signatures.version != version:
                self.published.add(code)
            shared = self.signatures.values[code]
            assert shared is not None  # noqa: S101 - the code was acquired
            device.signature = shared
            device.row = row
            self.signature[row] = code
            self.taints[row] = self.taint_sets.acquire(device.taints)
            self.is_plain[row] = device.is_plain
            self.node_row[row] = info.holds_row
            self.in_use[row] = self.has_shares[row] = False

    def remove(self, devices: Sequence[DeviceInfo]) -> None:
        """Free the rows of the devices of a slice."""
        if not devices:
            return
        start, size = devices[0].row, len(devices)
        for row in range(start, start + size):
            code, version = int(self.signature[row]), self.signatures.version
            self.signatures.release(code)
            if self.signatures.version != version:
                self.published.remove(code)
            self.taint_sets.release(int(self.taints[row]))
            self.node_row[row] = _NO_NODE
            self.in_use[row] = self.has_shares[row] = self.is_plain[row] = False
            self.signature[row] = self.taints[row] = 0
        self._free.setdefault(size, []).append(start)

    def _take(self, size: int) -> int:
        free = self._free.get(size)
        if free:
            start = free.pop()
            if not free:
                del self._free[size]
            return start
        start, self._end = self._end, self._end + size
        if self._end > self.num_rows:
            self._grow(grown_capacity(self.num_rows, self._end))
        return start

    def _grow(self, rows: int) -> None:
        self.node_row = extended(self.node_row, rows, _NO_NODE)
        self.signature = extended(self.signature, rows)
        self.taints = extended(self.taints, rows)
        self.in_use = extended(self.in_use, rows, False)
        self.has_shares = extended(self.has_shares, rows, False)
        self.is_plain = extended(self.is_plain, rows, False)
