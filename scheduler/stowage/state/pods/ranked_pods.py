"""The pods of each row in order of importance, as arrays, for preemption.

The order of a row is computed when it is requested after its pods changed: adding or removing a pod
only marks the row. Values that depend on the variant of a pod are computed once per variant.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stowage.api.interruptible import Interruptible, finish
from stowage.state.arrays import Int64Array, extended
from stowage.state.nodes.resource_index import ResourceIndex
from stowage.state.pods.placed_pods import PlacedPods
from stowage.state.pods.pod_info import PodInfo
from stowage.state.pods.pod_variants import PodVariants
from stowage.state.pods.ranked_rows import RankedRows

NOT_STARTED = np.iinfo(np.int64).max
"""The start time of a pod that has not started: later than all others."""
_TIME = "YYYY-mm-ddTHH:MM:SS"
_DIGITS = np.array([place for place, letter in enumerate(_TIME) if letter not in "-T:"])
_POWERS: Int64Array = 10 ** np.arange(len(_DIGITS) - 1, -1, -1, dtype=np.int64)
_SPARE_SLOTS = 1024
#: More at once are slower: their pods do not fit the processor's cache.
_ROWS_AT_ONCE = 128
_PODS_AT_ONCE = 4_000


class RankedPods:
    """Maintains the order of the pods on each row.

    Args:
        placed: The pods on each row.
        resources: The columns of resources.

    Attributes:
        variants: The variants of the pods.
    """

    __slots__ = ("_pods", "_slots", "variants")

    def __init__(self, placed: PlacedPods, resources: ResourceIndex) -> None:
        self.variants = PodVariants(resources)
        self._pods = placed
        self._slots = _Slots()

    def of(self, rows: Int64Array, num_rows: int) -> RankedRows:
        """The pods on `rows`; the cluster has `num_rows`."""
        finish(self.ranking_steps(rows, num_rows))
        return self._slots.of(rows)

    def ranking_steps(self, rows: Int64Array, num_rows: int) -> Interruptible[None]:
        """Order the pods that changed on `rows` in steps, so that `of` has nothing left to order.

        No pod may come or go before the last step.
        """
        self._slots.make_room_for_rows(num_rows)
        changed = np.array([*self._pods.reordered], dtype=np.int64)
        if len(changed):
            asked = np.zeros(max(num_rows, int(changed.max()) + 1), dtype=np.bool_)
            asked[rows] = True
            changed = changed[asked[changed]]
        rows_at_once = _PODS_AT_ONCE * num_rows // max(1, len(self._pods))
        rows_at_once = min(max(1, rows_at_once), _ROWS_AT_ONCE)
        for start in range(0, len(changed), rows_at_once):
            if start > 0:
                yield
            self._rank(changed[start : start + rows_at_once])

    def is_outdated(self, row: int) -> bool:
        """Whether a row is wrongly ordered and not marked as changed."""
        if row >= len(self._slots.pods) or row in self._pods.reordered:
            return False
        return list(self._slots.pods[row]) != sorted(self._pods.on_row(row), key=_rank_of)

    def _rank(self, rows: Int64Array) -> None:
        """Order the pods on some rows."""
        on_rows = [self._pods.on_row(row) for row in rows.tolist()]
        pods = [pod for on_row in on_rows for pod in on_row]
        lengths = np.array([len(on_row) for on_row in on_rows], dtype=np.int64)
        codes = self.variants.acquire_all(pods)
        priority = self.variants.priorities(codes)
        start = _started_at([pod.start_time for pod in pods])
        # A stable sort: of equal pods, the one that was added first comes first.
        order = np.lexsort((start, -priority, np.repeat(np.arange(len(rows)), lengths)))
        slots = self._slots
        self.variants.release_all(slots.of(rows).variants)
        ordered = [pods[index] for index in order.tolist()]
        slots.expected = len(self._pods)
        slots.replace(rows, lengths, (codes[order], priority[order], start[order]))
        end = 0
        for row, length in zip(rows.tolist(), lengths.tolist(), strict=True):
            slots.pods[row] = tuple(ordered[end : end + length])
            end += length
        self._pods.reordered.difference_update(rows.tolist())


class _Slots:
    """Arrays over the pods of all rows, each row in one piece.

    A row that changes gets new slots at the end. When none are left there, those in use are moved
    together, into arrays with about as many free ones.

    Attributes:
        pods: The pods of each row.
        expected: The number of pods to have slots for when all rows are ordered.
    """

    __slots__ = ("_begin", "_columns", "_end", "_length", "expected", "pods")

    def __init__(self) -> None:
        self.pods: list[tuple[PodInfo, ...]] = []
        self.expected = 0
        self._begin: Int64Array = np.zeros(0, dtype=np.int64)
        self._length: Int64Array = np.zeros(0, dtype=np.int64)
        self._end = 0
        # Variants, priorities and start times.
        self._columns: Int64Array = np.zeros((3, 0), dtype=np.int64)

    def make_room_for_rows(self, num_rows: int) -> None:
        """Add rows without pods, so that there are `num_rows`."""
        missing = num_rows - len(self.pods)
        if missing > 0:
            self.pods += [()] * missing
            self._begin = extended(self._begin, num_rows)
            self._length = extended(self._length, num_rows)

    def of(self, rows: Int64Array) -> RankedRows:
        """The pods on `rows`."""
        lengths = self._length[rows]
        ends = np.zeros(len(rows) + 1, dtype=np.int64)
        lengths.cumsum(out=ends[1:])
        positions = np.arange(len(rows)).repeat(lengths)
        slots = (self._begin[rows] - ends[:-1]).repeat(lengths) + np.arange(ends[-1])
        variants, priority, start = self._columns.take(slots, axis=1)
        return RankedRows(self.pods, rows, ends, positions, variants, priority, start)

    def replace(self, rows: Int64Array, lengths: Int64Array, columns: Sequence[Int64Array]) -> None:
        """Set the columns of the pods on `rows`, the pods of the first row first."""
        self._length[rows] = 0
        added = len(columns[0])
        if self._end + added > self._columns.shape[1]:
            self._move_together(added)
        end = self._end + added
        self._begin[rows] = self._end + np.cumsum(lengths) - lengths
        self._length[rows] = lengths
        self._columns[:, self._end : end] = columns
        self._end = end

    def _move_together(self, added: int) -> None:
        kept = self.of(np.arange(len(self.pods)))
        self._begin = kept.ends[:-1].copy()
        self._end = kept.num_slots
        needed = max(self._end + added, self.expected)
        columns = np.empty((3, 2 * needed + _SPARE_SLOTS), dtype=np.int64)
        columns[:, : self._end] = kept.variants, kept.priority, kept.start
        self._columns = columns


def started_at(pod: PodInfo) -> int:
    """The start time of a pod as a number that grows with time."""
    text = pod.start_time
    if text is None:
        return int(NOT_STARTED)
    return int(text[:4] + text[5:7] + text[8:10] + text[11:13] + text[14:16] + text[17:19])


def _started_at(texts: Sequence[str | None]) -> Int64Array:
    """``int64[texts]``: `started_at` for many start times."""
    given = np.array([text or "" for text in texts], dtype=f"U{len(_TIME)}")
    letters = given.view(np.uint32).reshape(len(texts), len(_TIME))
    numbers = (letters[:, _DIGITS].astype(np.int64) - ord("0")) @ _POWERS
    return np.where(letters[:, 0] == 0, NOT_STARTED, numbers)


def _rank_of(pod: PodInfo) -> tuple[int, int]:
    """``MoreImportantPod`` of v1.36: higher priority first, then the earlier start."""
    return (-pod.priority, started_at(pod))
