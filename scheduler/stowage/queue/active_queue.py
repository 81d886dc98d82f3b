"""The active queue: pods that are ready to be scheduled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stowage.queue.heap import KeyedHeap, SortKey
from stowage.queue.queued_pod import QueuedPod


class ActiveQueue:
    """Pods in the order of their sort keys; ``activeQ`` of kube-scheduler."""

    def __init__(self) -> None:
        self._heap: KeyedHeap[QueuedPod] = KeyedHeap()

    def __len__(self) -> int:
        return len(self._heap)

    def __contains__(self, uid: str) -> bool:
        return uid in self._heap

    def __iter__(self) -> Iterator[QueuedPod]:
        return iter(self._heap)

    def get(self, uid: str) -> QueuedPod | None:
        """The pod, if it is active."""
        return self._heap.get(uid)

    def put(self, queued: QueuedPod, sort_key: SortKey) -> None:
        """Add a pod, or move an active one to its new sort key."""
        self._heap.push(queued.uid, sort_key, queued, queued.turn)

    def put_all(
        self, uids: Sequence[str], sort_keys: Sequence[SortKey], pods: Sequence[QueuedPod]
    ) -> None:
        """Add pods; the three sequences have the same order."""
        self._heap.push_all(uids, sort_keys, pods, [each.turn for each in pods])

    def pop(self) -> QueuedPod | None:
        """Remove and return the first pod; None if the queue is empty."""
        return self._heap.pop()

    def remove(self, uid: str) -> QueuedPod | None:
        """Remove a pod at any position; None if it is not active."""
        return self._heap.remove(uid)

    def in_order(self) -> list[QueuedPod]:
        """All pods in the order in which `pop` would return them; for debugging."""
        return self._heap.in_order()

    def inconsistencies(self) -> Iterator[str]:
        """Violated invariants, as text."""
        return self._heap.inconsistencies()
