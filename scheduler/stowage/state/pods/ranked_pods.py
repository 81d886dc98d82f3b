"""The pods of each row in order of importance, as arrays, for preemption.

The order of a row is computed when it is requested after its pods changed: adding or removing a pod
only marks the row. Values that depend on the variant of a pod are computed once per variant.
"""

from __future__ import annotations

import msgspec
import numpy as np

from stowage.state.arrays import BoolArray, Int64Array
from stowage.state.nodes.resource_index import ResourceIndex
from stowage.state.pods.placed_pods import PlacedPods
from stowage.state.pods.pod_info import PodInfo
from stowage.state.pods.pod_variants import PodVariants

NOT_STARTED = np.iinfo(np.int64).max
"""The start time of a pod that has not started: later than all others."""
_NO_POD = -1
_SLOTS_AT_ONCE = 16


class RankedRows(msgspec.Struct, frozen=True):
    """The pods on some rows, the most important of each row first.

    Attributes:
        pods: The pods of all rows of the cluster; see `pods_at`.
        rows: The row numbers.
        variants: ``int64[rows, slots]``, codes of `PodVariants`; -1 without a pod.
        priority: ``int64[rows, slots]``.
        start: ``int64[rows, slots]``, ``YYYYmmddHHMMSS`` as a number, or `NOT_STARTED`.
        present: ``bool[rows, slots]``, where there is a pod.
    """

    pods: list[tuple[PodInfo, ...]]
    rows: Int64Array
    variants: Int64Array
    priority: Int64Array
    start: Int64Array
    present: BoolArray

    def pods_at(self, position: int) -> tuple[PodInfo, ...]:
        """The pods on the row at `position`."""
        return self.pods[int(self.rows[position])]


class RankedPods:
    """Maintains the order of the pods on each row.

    Args:
        placed: The pods on each row.
        resources: The columns of resources.

    Attributes:
        variants: The variants of the pods.
    """

    __slots__ = ("_columns", "_pods", "variants")

    def __init__(self, placed: PlacedPods, resources: ResourceIndex) -> None:
        self.variants = PodVariants(resources)
        self._pods = placed
        self._columns = _Columns(0, _SLOTS_AT_ONCE)

    def of(self, rows: Int64Array, num_rows: int) -> RankedRows:
        """The pods on `rows`; the cluster has `num_rows`."""
        columns = self._columns
        if len(columns.pods) < num_rows:
            columns = self._columns = columns.resized(num_rows, columns.num_slots)
        stale = self._pods.reordered
        for row in rows.tolist() if stale else ():
            if row in stale:
                self._rank(row)
        columns = self._columns
        slots = int(columns.length[rows].max(initial=0))
        return RankedRows(
            columns.pods,
            rows,
            columns.variants[rows, :slots].astype(np.int64),
            columns.priority[rows, :slots],
            columns.start[rows, :slots],
            columns.variants[rows, :slots] != _NO_POD,
        )

    def is_outdated(self, row: int) -> bool:
        """Whether a row is wrongly ordered and not marked as changed."""
        if row >= len(self._columns.pods) or row in self._pods.reordered:
            return False
        return list(self._columns.pods[row]) != sorted(self._pods.on_row(row), key=_rank_of)

    def _rank(self, row: int) -> None:
        columns = self._columns
        ranks = sorted(
            (-pod.pod_class.priority, started_at(pod), place, pod)
            for place, pod in enumerate(self._pods.on_row(row))
        )
        ordered = [rank[3] for rank in ranks]
        if len(ordered) > columns.num_slots:
            slots = -(-len(ordered) // _SLOTS_AT_ONCE) * _SLOTS_AT_ONCE
            columns = self._columns = columns.resized(len(columns.pods), slots)
        codes = [self.variants.acquire(pod) for pod in ordered]
        for code in columns.variants[row, : columns.length[row]].tolist():
            self.variants.release(code)
        num_pods = len(ordered)
        columns.pods[row] = tuple(ordered)
        columns.length[row] = num_pods
        columns.variants[row] = _NO_POD
        columns.variants[row, :num_pods] = codes
        columns.priority[row, :num_pods] = [-rank[0] for rank in ranks]
        columns.start[row, :num_pods] = [rank[1] for rank in ranks]
        self._pods.reordered.discard(row)


class _Columns:
    """The arrays over rows and slots."""

    __slots__ = ("length", "num_slots", "pods", "priority", "start", "variants")

    def __init__(self, num_rows: int, num_slots: int) -> None:
        self.num_slots = num_slots
        self.pods: list[tuple[PodInfo, ...]] = [()] * num_rows
        self.length = np.zeros(num_rows, dtype=np.int64)
        self.variants = np.full((num_rows, num_slots), _NO_POD, dtype=np.int32)
        self.priority = np.zeros((num_rows, num_slots), dtype=np.int64)
        self.start = np.zeros((num_rows, num_slots), dtype=np.int64)

    def resized(self, num_rows: int, num_slots: int) -> _Columns:
        """A copy with more rows or slots."""
        larger = _Columns(num_rows, num_slots)
        rows, slots = self.variants.shape
        larger.pods[:rows] = self.pods
        larger.length[:rows] = self.length
        larger.variants[:rows, :slots] = self.variants
        larger.priority[:rows, :slots] = self.priority
        larger.start[:rows, :slots] = self.start
        return larger


def started_at(pod: PodInfo) -> int:
    """The start time of a pod as a number that grows with time."""
    text = pod.start_time
    if text is None:
        return int(NOT_STARTED)
    return int(text[:4] + text[5:7] + text[8:10] + text[11:13] + text[14:16] + text[17:19])


def _rank_of(pod: PodInfo) -> tuple[int, int]:
    """``MoreImportantPod`` of v1.36: higher priority first, then the earlier start."""
    return (-pod.priority, started_at(pod))
