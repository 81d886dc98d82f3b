"""What happens to the pods of an experiment, counted as it happens."""

from __future__ import annotations

from array import array
from collections import Counter, deque

from stowage.api.objects.pod import Pod

NOT_ATTEMPTED = "no scheduling attempt"
_RECENT = 64
"""Number of pods that stand for those that may arrive next."""


class PodRecord:
    """One pod; a pod that its controller makes again continues its record.

    Attributes:
        key: ``namespace/name``.
        arrived_s: When it was created.
        duration_s: How long it runs once it is bound; None if it does not end by itself.
        was_placed: Whether it has ever had a node.
        bound_s: When it got its node; None while it has none.
        reason: Why its last attempt failed.
    """

    __slots__ = ("arrived_s", "bound_s", "duration_s", "key", "reason", "was_placed")

    def __init__(self, key: str, arrived_s: float, duration_s: float | None) -> None:
        self.key = key
        self.arrived_s = arrived_s
        self.duration_s = duration_s
        self.was_placed = False
        self.bound_s: float | None = None
        self.reason = NOT_ATTEMPTED


class PodLedger:
    """Counts pods.

    Attributes:
        counts: ``pods``, ``bound``, ``completed``, ``preempted``, ``evicted`` and so on.
        failed: Reason -> number of pods that left without ever having a node.
        waits_s: The time to its first node of each pod that got one, in order of `placed_s`.
        placed_s: When the pods got their first node.
        num_pending: Number of pods without a node.
        num_running: Number of pods with one.
        recent: The pods that arrived last.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        self.waits_s = array("d")
        self.placed_s = array("d")
        self.num_pending = 0
        self.num_running = 0
        self.recent: deque[Pod] = deque(maxlen=_RECENT)
        self._alive: dict[str, PodRecord] = {}

    def arrive(self, pod: Pod, now: float, duration_s: float | None) -> None:
        """A pending pod is created."""
        key = pod.metadata.namespaced_name
        self._alive[key] = PodRecord(key, now, duration_s)
        self.recent.append(pod)
        self.counts["pods"] += 1
        self.num_pending += 1

    def bind(self, key: str, now: float) -> PodRecord | None:
        """A pod gets a node; its record, or None if the pod is not of the workload."""
        record = self._alive.get(key)
        if record is None:
            return None
        if not record.was_placed:
            record.was_placed = True
            self.waits_s.append(now - record.arrived_s)
            self.placed_s.append(now)
        record.bound_s = now
        self.num_pending -= 1
        self.num_running += 1
        return record

    def attempt_failed(self, key: str, reason: str) -> None:
        """An attempt to place a pod failed."""
        record = self._alive.get(key)
        if record is not None:
            record.reason = reason

    def displace(self, key: str, *, is_made_again: bool) -> None:
        """A pod loses its node; its controller makes it again, or it is gone."""
        record = self._alive.get(key)
        if record is None or record.bound_s is None:
            return
        self.num_running -= 1
        if is_made_again:
            record.bound_s = None
            self.num_pending += 1
        else:
            self.counts["lost"] += 1
            del self._alive[key]

    def is_running(self, record: PodRecord, bound_s: float) -> bool:
        """Whether the pod has run since that time."""
        return record.bound_s == bound_s and self._alive.get(record.key) is record

    def leave(self, key: str) -> None:
        """A pod ends or is deleted."""
        record = self._alive.pop(key, None)
        if record is None:
            return
        if record.bound_s is not None:
            self.num_running -= 1
            self.counts["completed"] += 1
            return
        self.num_pending -= 1
        if not record.was_placed:
            self.failed[record.reason] += 1

    def finish(self) -> Counter[str]:
        """The reasons of all pods that never had a node, those that are still pending included."""
        pending = (each.reason for each in self._alive.values() if not each.was_placed)
        return self.failed + Counter(pending)
