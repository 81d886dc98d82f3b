"""CSINode objects as columns: installed drivers, volume limits, and migrated in-tree plugins."""

from __future__ import annotations

import numpy as np

from stowage.api.objects.volume import CSINode
from stowage.api.values.csi_migration import migrated_plugins
from stowage.state.arrays import BoolArray, Int64Array, extended

NO_LIMIT = int(np.iinfo(np.int64).max)


class CSINodeColumns:
    """Columns of CSINode objects; written by the cache only."""

    def __init__(self, num_rows: int) -> None:
        self._num_rows = num_rows
        self._limits: dict[str, Int64Array] = {}
        self._installed: dict[str, BoolArray] = {}
        self._migrated: dict[str, BoolArray] = {}
        self._on_row: dict[int, CSINode] = {}

    def limits(self, driver: str) -> Int64Array | None:
        """``int64[rows]``: the volume limit of a driver; None if no node has a limit.

        `NO_LIMIT` for nodes without one.
        """
        return self._limits.get(driver)

    def installed(self, driver: str) -> BoolArray | None:
        """``bool[rows]``: where a driver is installed; None if nowhere."""
        return self._installed.get(driver)

    def migrated(self, plugin: str) -> BoolArray | None:
        """``bool[rows]``: where an in-tree plugin is migrated to CSI; None if nowhere."""
        return self._migrated.get(plugin)

    def on_row(self, row: int) -> CSINode | None:
        """The CSINode of a row."""
        return self._on_row.get(row)

    def put(self, row: int, csi_node: CSINode | None) -> None:
        """Set or remove the CSINode of a row."""
        old = self._on_row.pop(row, None)
        if old is not None:
            for driver in old.spec.drivers:
                self._installed[driver.name][row] = False
                if driver.name in self._limits:
                    self._limits[driver.name][row] = NO_LIMIT
            for plugin in migrated_plugins(old):
                self._migrated[plugin][row] = False
        if csi_node is None:
            return
        self._on_row[row] = csi_node
        for driver in csi_node.spec.drivers:
            self._flags(self._installed, driver.name)[row] = True
            if driver.allocatable is not None and driver.allocatable.count is not None:
                self._limits_of(driver.name)[row] = driver.allocatable.count
        for plugin in migrated_plugins(csi_node):
            self._flags(self._migrated, plugin)[row] = True

    def grow(self, num_rows: int) -> None:
        """Extend the arrays to `num_rows`."""
        self._num_rows = num_rows
        for driver, limits in self._limits.items():
            self._limits[driver] = extended(limits, num_rows, NO_LIMIT)
        for flags in (self._installed, self._migrated):
            for name, values in flags.items():
                flags[name] = extended(values, num_rows)

    def _flags(self, flags: dict[str, BoolArray], name: str) -> BoolArray:
        if name not in flags:
            flags[name] = np.zeros(self._num_rows, dtype=np.bool_)
        return flags[name]

    def _limits_of(self, driver: str) -> Int64Array:
        if driver not in self._limits:
            self._limits[driver] = np.full(self._num_rows, NO_LIMIT, dtype=np.int64)
        return self._limits[driver]
