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

    def with_changes(
        self, removed: Collection[tuple[PodInfo, int]], added: Collection[tuple[PodInfo, int]]
    ) -> PlacedPods:
        """A copy without some pods and with some others; costs the rows, not the pods on them."""
        return _ChangedPods(self, removed, added)


class _ChangedPods(PlacedPods):
    """Placed pods that differ from others in a few; only the rows concerned are copied."""

    __slots__ = ("_base", "_gone")

    def __init__(
        self,
        base: PlacedPods,
        removed: Collection[tuple[PodInfo, int]],
        added: Collection[tuple[PodInfo, int]],
    ) -> None:
        super().__init__()
        self._base = base
        self._gone = {pod.uid for pod, _ in removed}
        self.by_uid = {pod.uid: pod for pod, _ in added}
        for _, row in (*removed, *added):
            if row not in self.by_row:
                self.by_row[row] = {pod.uid: pod for pod in base.on_row(row)}
        for pod, row in removed:
            del self.by_row[row][pod.uid]
        for pod, row in added:
            self.by_row[row][pod.uid] = pod

    def __len__(self) -> int:
        return len(self._base) - len(self._gone) + len(self.by_uid)

    def __iter__(self) -> Iterator[PodInfo]:
        yield from (pod for pod in self._base if pod.uid not in self._gone)
        yield from self.by_uid.values()

    def on_row(self, row: int) -> Collection[PodInfo]:
        """The pods on a row, in the order they came."""
        changed = self.by_row.get(row)
        return self._base.on_row(row) if changed is None else changed.values()

    def get(self, uid: str) -> PodInfo | None:
        """The pod with this UID, if it is on a node."""
        pod = self.by_uid.get(uid)
        if pod is not None or uid in self._gone:
            return pod
        return self._base.get(uid)
