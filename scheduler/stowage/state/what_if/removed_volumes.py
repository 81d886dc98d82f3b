"""Volumes that are detached when pods are removed from nodes, for many nodes at once.

A node counts a volume once, however many of its pods use it. The volume is detached when the last
of these pods is removed, unless a VolumeAttachment attaches it.
"""

from __future__ import annotations

from collections.abc import Set

import numpy as np

from stowage.api.values.csi_migration import AttachedVolume
from stowage.state.arrays import BoolArray, Int64Array
from stowage.state.pods.ranked_rows import RankedRows
from stowage.state.storage.volume_use import VolumeUse


class RemovedVolumes:
    """The volumes of a driver that pods on some rows use.

    Args:
        use: The use of volumes on each node.
        ranked: The pods on the rows.
        driver: The CSI driver.
        positions: The rows to look at; other rows count as unchanged.
    """

    def __init__(
        self,
        use: VolumeUse,
        ranked: RankedRows,
        driver: str,
        positions: Int64Array,
    ) -> None:
        self._num_rows = len(ranked.rows)
        kept: list[bool] = []
        self._volumes: list[AttachedVolume] = []
        owners: list[int] = []
        uses: list[tuple[int, int]] = []
        for position in positions.tolist():
            codes: dict[AttachedVolume, int] = {}
            row = int(ranked.rows[position])
            for slot, pod in enumerate(ranked.pods_at(position), int(ranked.ends[position])):
                for volume in use.volumes_of(pod) if pod.volumes else ():
                    if volume.driver != driver:
                        continue
                    if volume not in codes:
                        codes[volume] = len(owners)
                        owners.append(position)
                        self._volumes.append(volume)
                        kept.append(use.is_attached(volume, row))
                    uses.append((codes[volume], slot))
        self._owners = np.array(owners, dtype=np.int64)
        self._kept = np.array(kept, dtype=np.bool_)
        self._uses: Int64Array = np.array(uses, dtype=np.int64).reshape(-1, 2)

    def count(
        self, removed: BoolArray, wanted: Set[AttachedVolume]
    ) -> tuple[Int64Array, Int64Array]:
        """Count the volumes that no remaining pod uses.

        Args:
            removed: ``bool[slots]``, the removed pods.
            wanted: Volumes that are counted apart.

        Returns:
            Two arrays ``int64[rows]``: the number of detached volumes, and the number of `wanted`
            volumes that no remaining pod uses.
        """
        codes, slots = self._uses.T
        left = codes[~removed[slots]]
        unused = np.bincount(left, minlength=len(self._owners)) == 0
        detached = unused & ~self._kept
        missing = unused & np.array([each in wanted for each in self._volumes], dtype=np.bool_)
        return self._per_row(detached), self._per_row(missing)

    def _per_row(self, volumes: BoolArray) -> Int64Array:
        return np.bincount(self._owners[volumes], minlength=self._num_rows)
