"""The pods on nodes, by UID and by row."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from stowage.state.pods.pod_info import PodInfo

_NO_POD: dict[str, PodInfo] = {}


class PlacedPods:
    """The pods of each row; written by the cache only.

    Attributes:
        by_uid: UID -> pod.
        by_row: Row -> UID -> pod, in the order in which the pods were added.
        num_by_priority: Priority -> number of pods, at least one.
        reordered: Rows whose pods changed since `RankedPods` ordered them.
    """

    __slots__ = ("by_row", "by_uid", "num_by_priority", "reordered")

    def __init__(self) -> None:
        self.by_uid: dict[str, PodInfo] = {}
        self.by_row: dict[int, dict[str, PodInfo]] = {}
        self.num_by_priority: dict[int, int] = {}
        self.reordered: set[int] = set()

    def __len__(self) -> int:
        return len(self.by_uid)

    def __iter__(self) -> Iterator[PodInfo]:
        return iter(self.by_uid.values())

    def get(self, uid: str) -> PodInfo | None:
        """The pod with this UID, if it is on a node."""
        return self.by_uid.get(uid)

    def on_row(self, row: int) -> Collection[PodInfo]:
        """The pods on a row, in the order in which they were added."""
        return self.by_row.get(row, _NO_POD).values()

    def put(self, pod: PodInfo, row: int) -> None:
        """Add a pod to a row, or replace it there."""
        self.reordered.add(row)
        replaced = self.by_uid.get(pod.uid)
        if replaced is not None:
            self._uncount(replaced.priority)
        self.num_by_priority[pod.priority] = self.num_by_priority.get(pod.priority, 0) + 1
        self.by_uid[pod.uid] = pod
        on_row = self.by_row.get(row)
        if on_row is None:
            on_row = self.by_row[row] = {}
        on_row[pod.uid] = pod

    def remove(self, uid: str, row: int) -> None:
        """Remove a pod from its row."""
        self.reordered.add(row)
        self._uncount(self.by_uid.pop(uid).priority)
        on_row = self.by_row[row]
        del on_row[uid]
        if not on_row:
            del self.by_row[row]

    def _uncount(self, priority: int) -> None:
        self.num_by_priority[priority] -= 1
        if not self.num_by_priority[priority]:
            del self.num_by_priority[priority]
