"""Plugin PrioritySort: higher priority first, then the pod that entered the queue first."""

from __future__ import annotations

from stowage.framework import NoArgs, PluginTraits
from stowage.state.pods.pod_info import PodInfo


class PrioritySort:
    """Orders the active queue."""

    name = "PrioritySort"
    traits = PluginTraits()

    def __init__(self, args: NoArgs) -> None:
        del args

    def sort_key(self, pod: PodInfo, queued_at: float) -> tuple[int, float]:
        """``(-priority, queued_at)``; ``Less`` of queuesort/priority_sort.go."""
        return (-pod.pod_class.priority, queued_at)
