"""The pods that are on nodes, by UID and by row."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from stowage.state.pods.pod_info import PodInfo

_NOBODY: dict[str, PodInfo] = {}


class PlacedPods:
    """Which pod is on which row; written by the cache only.

    Attributes:
        by_uid: UID -> pod.
        by_row: Row -> UID -> pod, in the order the pods came.
        reordered: Rows whose pods changed since somebody who ranks them took note.
    """

    __slots__ = ("by_row", "by_uid", "reordered")

    def __init__(self) -> None:
        self.by_uid: dict[str, PodInfo] = {}
        self.by_row: dict[int, dict[str, PodInfo]] = {}
        self.reordered: set[int] = set()

    def __len__(self) -> int:
        return len(self.by_uid)

    def __iter__(self) -> Iterator[PodInfo]:
        return iter(self.by_uid.values())

    def get(self, uid: str) -> PodInfo | None:
        """The pod with this UID, if it is on a node."""
        return self.by_uid.get(uid)

    def on_row(self, row: int) -> Collection[PodInfo]:
        """The pods on a row, in the order they came."""
        return self.by_row.get(row, _NOBODY).values()

    def put(self, pod: PodInfo, row: int) -> None:
        """Place a pod, or replace it where it is."""
        self.reordered.add(row)
        self.by_uid[pod.uid] = pod
        on_row = self.by_row.get(row)
        if on_row is None:
            on_row = self.by_row[row] = {}
        on_row[pod.uid] = pod

    def remove(self, uid: str, row: int) -> None:
        """Take a pod off its row."""
        self.reordered.add(row)
        del self.by_uid[uid]
        on_row = self.by_row[row]
        del on_row[uid]
        if not on_row:
            del self.by_row[row]
