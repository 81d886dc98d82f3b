"""Decisions as the watches of a cluster show them, whichever scheduler makes them.

A pod that was pending and gets its node was scheduled. A pod whose PodScheduled condition says that
it was refused, with another message or time than before, was refused.
"""

from __future__ import annotations

from collections import deque

from stowage.analysis.cluster_objects import ClusterObjects
from stowage.api.events import AssignedPodSeen, Event, PendingPodGone, PendingPodSeen
from stowage.api.objects.meta import Condition
from stowage.api.objects.pod import Pod
from stowage.console.answers.answer import rfc3339, unix_seconds
from stowage.console.decisions.row import DecisionRow

LEFT_S = 60.0
"""For so long a pod that left the pending ones may be shown on its node: two watches show it."""

_POD_SCHEDULED = "PodScheduled"
_ERROR = "SchedulerError"
_GATED = "SchedulingGated"


class ObservedDecisions:
    """Makes rows of what watches show; remembers the pods that are pending.

    Args:
        prefix: Begins the ids.
    """

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._number = 0
        self._pending: dict[str, float | None] = {}
        self._left: deque[tuple[float, str]] = deque()

    def __len__(self) -> int:
        """The number of pods that are remembered."""
        return len(self._pending)

    def see(
        self, event: Event, objects: ClusterObjects, unix_s: float, *, is_listed: bool = False
    ) -> DecisionRow | None:
        """The decision that an event shows; None if it shows none.

        Args:
            event: The event.
            objects: The objects before the event.
            unix_s: When it was seen.
            is_listed: Whether it is of the first list, so that its decision was made before.
        """
        self._forget_left(unix_s)
        match event:
            case PendingPodSeen(pod):
                self._pending.setdefault(pod.metadata.uid, None if is_listed else unix_s)
                return None if is_listed else self._refused(pod, objects, unix_s)
            case PendingPodGone():
                self._left.append((unix_s, event.uid))
            case AssignedPodSeen(pod) if pod.metadata.uid in self._pending:
                since = self._pending.pop(pod.metadata.uid)
                if since is None:
                    since = unix_seconds(pod.metadata.creation_timestamp)
                latency_s = None if since is None else round(max(0.0, unix_s - since), 6)
                return self._row(pod, "scheduled", unix_s, latency_s)
        return None

    def _refused(self, pod: Pod, objects: ClusterObjects, unix_s: float) -> DecisionRow | None:
        known = objects.pod(pod.metadata.namespaced_name)
        is_same = known is not None and known.metadata.uid == pod.metadata.uid
        told = _condition(pod)
        before = _condition(known) if known is not None and is_same else None
        if told is None or told.status != "False" or told.reason == _GATED or told == before:
            return None
        result = "error" if told.reason == _ERROR else "unschedulable"
        return self._row(pod, result, unix_s, None, told.message)

    def _forget_left(self, unix_s: float) -> None:
        while self._left and self._left[0][0] < unix_s - LEFT_S:
            self._pending.pop(self._left.popleft()[1], None)

    def _row(
        self, pod: Pod, result: str, unix_s: float, latency_s: float | None, message: str = ""
    ) -> DecisionRow:
        self._number += 1
        return DecisionRow(
            f"{self._prefix}-{self._number}",
            rfc3339(unix_s),
            pod.metadata.namespaced_name,
            pod.metadata.uid,
            pod.spec.scheduler_name,
            0,
            result,
            pod.spec.node_name,
            pod.status.nominated_node_name,
            message,
            latency_s=latency_s,
        )


def _condition(pod: Pod) -> Condition | None:
    found = [each for each in pod.status.conditions if each.type == _POD_SCHEDULED]
    return found[-1] if found else None
