"""Columns of GPUs: what is free of each GPU of each node."""

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from stowage.framework.authoring import (
    RESERVED_PREFIX,
    BoolArray,
    ChangedRows,
    Int64Array,
    NodeView,
    PodInfo,
    Snapshot,
)

GPU = 1000
"""The thousandths of a whole GPU."""
ANNOTATION = f"{RESERVED_PREFIX}gpus"
"""The GPUs of a pod: their numbers on the node, separated by commas."""
SHARED = 0
"""The kind of a pod that shares a GPU; of another pod its number of GPUs is its kind."""


@dataclass(frozen=True, slots=True)
class GpuRequest:
    """The GPUs that a pod requests.

    Attributes:
        num: Number of GPUs.
        milli: Thousandths of each of them.
    """

    num: int
    milli: int

    @classmethod
    def of(cls, total_milli: int) -> "GpuRequest | None":
        """The request for so many thousandths; None if they are no share and no whole GPUs."""
        if total_milli < GPU:
            return cls(int(total_milli > 0), total_milli)
        return cls(total_milli // GPU, GPU) if total_milli % GPU == 0 else None

    @property
    def total_milli(self) -> int:
        """The thousandths of all its GPUs together."""
        return self.num * self.milli

    @property
    def kind(self) -> int:
        """`SHARED`, or the number of whole GPUs."""
        return self.num if self.milli == GPU else SHARED

    def fits(self, free: Int64Array) -> BoolArray:
        """``bool[...]``: the GPUs that are free enough."""
        return free >= max(self.milli, 1)

    def least_free(self, free: Int64Array) -> list[int]:
        """The GPUs to take of a node's: those with the least left, on ties the lowest numbers.

        Args:
            free: ``int64[gpus]``: thousandths that are free.

        Returns:
            Fewer than `num` if the pod does not fit.
        """
        order = np.argsort(free, kind="stable")
        return sorted(order[self.fits(free[order])][: self.num].tolist())


class GpuColumns:
    """What is free of the GPUs, and which kinds of pods use them, for all rows.

    Args:
        resource: The extended resource of thousandths.

    Attributes:
        resource: The same.
        num: ``int64[rows]``: number of GPUs of each node.
        free: ``int64[rows, most GPUs]``: free thousandths; 0 beyond the GPUs of a node.
        idle: ``int64[rows]``: their sum.
        pods: ``int64[rows, 1 + most GPUs]``: number of pods of each kind.
    """

    def __init__(self, resource: str) -> None:
        self.resource = resource
        self._changed = ChangedRows()
        self._allocate(0, 0)

    def _allocate(self, num_rows: int, most: int) -> None:
        self.num = np.zeros(num_rows, dtype=np.int64)
        self.free = np.zeros((num_rows, most), dtype=np.int64)
        self.idle = np.zeros(num_rows, dtype=np.int64)
        self.pods = np.zeros((num_rows, 1 + most), dtype=np.int64)

    def update(self, snapshot: Snapshot) -> Int64Array:
        """Bring the columns up to date; the rows that were computed again.

        Args:
            snapshot: The cluster as it is, not a what-if.
        """
        rows = self._changed.since_last_call(snapshot)
        column = snapshot.resources.index_of(self.resource)
        if len(rows) == snapshot.num_rows and column is not None:
            self._allocate(len(rows), int(snapshot.allocatable[:, column].max(initial=0)) // GPU)
        elif column is None:
            self._allocate(snapshot.num_rows, 0)
            return rows
        for row in rows.tolist():
            num = int(snapshot.allocatable[row, column]) // GPU
            if num > self.free.shape[1]:  # A larger node came: all rows get wider.
                self._widen(num)
            self._read(snapshot, row, num)
        return rows

    def _widen(self, most: int) -> None:
        missing = most - self.free.shape[1]
        self.free = np.pad(self.free, ((0, 0), (0, missing)))
        self.pods = np.pad(self.pods, ((0, 0), (0, missing)))

    def _read(self, snapshot: Snapshot, row: int, num: int) -> None:
        """Compute a row from the pods of its node."""
        free = [GPU] * num
        kinds: Counter[int] = Counter()
        for pod in snapshot.pods_on(snapshot.node_names[row]):
            request = GpuRequest.of(pod.requests.get(self.resource, 0))
            gpus = gpus_of(pod)
            if request is None or not gpus:
                continue
            kinds[request.kind] += 1
            for gpu in gpus:
                if gpu < num:
                    free[gpu] -= request.milli
        self.num[row] = num
        self.free[row] = 0
        self.free[row, :num] = np.maximum(free, 0)
        self.idle[row] = self.free[row].sum()
        self.pods[row] = 0
        for kind, times in kinds.items():
            if kind < self.pods.shape[1]:
                self.pods[row, kind] = times

    def of(self, nodes: NodeView) -> "GpuColumns":
        """Columns with the rows of the snapshot of `nodes`, which may be a what-if.

        Those of the cluster as it is are up to date if `update` was called in this cycle.
        """
        snapshot = nodes.snapshot
        if not snapshot.is_what_if:
            return self
        twin = GpuColumns(self.resource)
        column = snapshot.resources.index_of(self.resource)
        if column is None:
            twin._allocate(snapshot.num_rows, 0)
            return twin
        amounts = snapshot.allocatable[:, column] // GPU
        twin._allocate(snapshot.num_rows, int(amounts.max(initial=0)))
        for row in nodes.rows.tolist():
            twin._read(snapshot, row, int(amounts[row]))
        return twin


def gpus_of(pod: PodInfo) -> tuple[int, ...]:
    """The GPUs that were reserved for a pod; none if its annotation is missing or no list."""
    for key, value in pod.reserved:
        if key == ANNOTATION:
            return _numbers(value)
    return ()


@lru_cache(maxsize=1024)
def _numbers(text: str) -> tuple[int, ...]:
    parts = text.split(",")
    return tuple(map(int, parts)) if all(part.isdecimal() for part in parts) else ()


def as_annotation(gpus: list[int]) -> dict[str, str]:
    """The annotation of a pod that takes these GPUs."""
    return {ANNOTATION: ",".join(map(str, gpus))}


FloatArray = NDArray[np.float64]


def whole_scores(scores: FloatArray) -> Int64Array:
    """``int64[nodes]``: scores cut to whole numbers, and to 0..100 where a pod does not fit."""
    return np.clip(scores, 0, 100).astype(np.int64)
