"""Decisions as the watches of a cluster show them, whichever scheduler makes them.

A pod that gets its node was scheduled. A pod whose PodScheduled condition says so, with another
message or time than before, was refused.
"""

from __future__ import annotations

from stowage.analysis.cluster_objects import ClusterObjects
from stowage.api.events import AssignedPodSeen, Event, PendingPodSeen
from stowage.api.objects.meta import Condition
from stowage.api.objects.pod import Pod
from stowage.console.answers.answer import rfc3339, unix_seconds
from stowage.console.decisions.row import DecisionRow

_POD_SCHEDULED = "PodScheduled"
_ERROR = "SchedulerError"
_GATED = "SchedulingGated"


class ObservedDecisions:
    """Makes rows of what watches show.

    Args:
        prefix: Begins the ids.
    """

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._number = 0

    def see(self, event: Event, objects: ClusterObjects, unix_s: float) -> DecisionRow | None:
        """The decision that an event shows; None if it shows none.

        Args:
            event: The event.
            objects: The objects before the event.
            unix_s: When it was seen.
        """
        if not isinstance(event, AssignedPodSeen | PendingPodSeen):
            return None
        pod = event.pod
        known = objects.pod(pod.metadata.namespaced_name)
        if known is not None and known.metadata.uid != pod.metadata.uid:
            known = None
        if isinstance(event, AssignedPodSeen):
            is_new = known is not None and not known.spec.node_name
            return self._row(pod, "scheduled", unix_s, known) if is_new else None
        told, before = _condition(pod), None if known is None else _condition(known)
        if told is None or told.status != "False" or told.reason == _GATED or told == before:
            return None
        result = "error" if told.reason == _ERROR else "unschedulable"
        return self._row(pod, result, unix_s, None, told.message)

    def _row(
        self, pod: Pod, result: str, unix_s: float, waited: Pod | None, message: str = ""
    ) -> DecisionRow:
        self._number += 1
        created = unix_seconds(pod.metadata.creation_timestamp) if waited is not None else None
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
            latency_s=None if created is None else max(0.0, unix_s - created),
        )


def _condition(pod: Pod) -> Condition | None:
    found = [each for each in pod.status.conditions if each.type == _POD_SCHEDULED]
    return found[-1] if found else None
