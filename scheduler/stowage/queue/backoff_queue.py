"""The backoff queue: pods that wait for the end of their backoff after a failed attempt."""

from __future__ import annotations

import math
from collections.abc import Iterator

from stowage.api.values.deadlines import earlier
from stowage.queue.heap import KeyedHeap, SortKey
from stowage.queue.queued_pod import QueuedPod

#: Where pods are popped early, backoffs end at whole seconds and are ordered by priority within
#: one; KEP-5142.
WINDOW_S = 1.0

# 2.0 ** 1024 overflows; long before that any backoff is at its maximum.
_MAX_DOUBLINGS = 64


class BackoffQueue:
    """Two heaps ordered by the end of the backoff; podBackoffQ and podErrorBackoffQ of v1.36.

    A rejected pod may be popped before its backoff ends if no pod is active. A pod that failed
    with an error may not: its backoff protects the API server. A member of a pod group may not
    either: an attempt of its group costs as much as attempts of all members, and kube-scheduler
    v1.36 repeats it without pause while it is idle.

    Args:
        initial_backoff_s: Backoff after the first failure, in seconds.
        max_backoff_s: Longest backoff, in seconds.
        pops_early: Whether rejected pods may be popped early; without it each backoff ends at its
            own time, and no priority counts.

    Attributes:
        pops_early: The argument.
    """

    def __init__(
        self, initial_backoff_s: float, max_backoff_s: float, *, pops_early: bool = True
    ) -> None:
        self.pops_early = pops_early
        self._window_s = WINDOW_S if pops_early else 0.0
        self._initial_backoff_s = initial_backoff_s
        self._max_backoff_s = max_backoff_s
        self._rejected: KeyedHeap[QueuedPod] = KeyedHeap()
        self._failed: KeyedHeap[QueuedPod] = KeyedHeap()

    def __len__(self) -> int:
        return len(self._rejected) + len(self._failed)

    def __contains__(self, uid: str) -> bool:
        return uid in self._rejected or uid in self._failed

    def __iter__(self) -> Iterator[QueuedPod]:
        yield from self._rejected
        yield from self._failed

    def get(self, uid: str) -> QueuedPod | None:
        """The pod, if it backs off."""
        return self._rejected.get(uid) or self._failed.get(uid)

    def backoff_s(self, queued: QueuedPod) -> float:
        """``min(max, initial * 2 ** (n - 1))``; n counts consecutive errors, or else rejections.

        0 for a pod that never failed, and for all pods if the maximum is 0
        (``calculateBackoffDuration`` of v1.36).
        """
        failures = queued.consecutive_errors or queued.unschedulable_count
        if not failures:
            return 0.0
        doublings = min(failures - 1, _MAX_DOUBLINGS)
        return min(self._max_backoff_s, self._initial_backoff_s * 2.0**doublings)

    def is_backing_off(self, queued: QueuedPod, now: float) -> bool:
        """Whether the pod has to wait: until the end of the window in which its backoff ends."""
        if queued.queued_at <= self.latest_expired(now):
            return False
        expires_at = self._expires_at(queued)
        return expires_at is not None and now < expires_at + self._window_s

    def latest_expired(self, now: float) -> float:
        """The backoff of every pod that entered the queue at this time or before is over."""
        return now - self._max_backoff_s - self._window_s

    def put(self, queued: QueuedPod, sort_key: SortKey) -> None:
        """Add a pod, or update the sort key of one that backs off.

        Pods that failed with an error are ordered by the end of their backoff alone.
        """
        expires_at = self._expires_at(queued) or 0.0
        # A pod stays in its heap: an update does not change why it failed.
        may_pop_early = self.pops_early and queued.was_rejected and not queued.info.group
        if queued.uid in self._failed or not (may_pop_early or queued.uid in self._rejected):
            self._failed.push(queued.uid, (expires_at,), queued, queued.turn)
        else:
            self._rejected.push(queued.uid, (expires_at, sort_key), queued, queued.turn)

    def can_pop_early(self) -> bool:
        """Whether `pop_early` would return a pod."""
        return self._rejected.peek() is not None

    def pop_early(self) -> QueuedPod | None:
        """Remove and return the rejected pod whose backoff ends first."""
        return self._rejected.pop()

    def pop_completed(self, now: float, limit: int) -> list[QueuedPod]:
        """Remove and return the first pods whose backoff is over, in order, up to a limit."""
        completed: list[QueuedPod] = []
        for heap in (self._rejected, self._failed):
            first = heap.peek()
            while (
                first is not None and first[0][0] + self._window_s <= now and len(completed) < limit
            ):
                completed.append(first[1])
                heap.pop()
                first = heap.peek()
        return completed

    def remove(self, uid: str) -> QueuedPod | None:
        """Remove a pod at any position; None if it does not back off."""
        return self._rejected.remove(uid) or self._failed.remove(uid)

    def next_deadline(self) -> float | None:
        """When the next backoff is over, in seconds; None without pods."""
        rejected, failed = self._rejected.peek(), self._failed.peek()
        first = earlier(rejected and rejected[0][0], failed and failed[0][0])
        return None if first is None else first + self._window_s

    def inconsistencies(self) -> Iterator[str]:
        """Violated invariants, as text."""
        yield from self._rejected.inconsistencies()
        yield from self._failed.inconsistencies()
        for queued in self._rejected:
            if not queued.was_rejected:
                yield f"pod {queued.info.key} failed with an error but may be popped early"
            if queued.uid in self._failed:
                yield f"pod {queued.info.key} is in both backoff heaps"

    def _expires_at(self, queued: QueuedPod) -> float | None:
        if queued.backoff_expires_at is None:
            backoff_s = self.backoff_s(queued)
            if backoff_s <= 0.0:
                return None
            expires_at = queued.queued_at + backoff_s
            queued.backoff_expires_at = _window_of(expires_at) if self._window_s else expires_at
        return queued.backoff_expires_at


def _window_of(at: float) -> float:
    return math.floor(at / WINDOW_S) * WINDOW_S
