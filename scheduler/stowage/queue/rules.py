"""The rules of the queue: sort key, PreEnqueue, event registrations and times."""

from __future__ import annotations

from collections.abc import Callable, Collection

import msgspec

from stowage.api.status import Status
from stowage.queue.event_registrations import PluginKey, Registrations
from stowage.queue.heap import SortKey
from stowage.state.pods.pod_info import PodInfo


class QueueRules(msgspec.Struct, frozen=True):
    """What the profiles and the configuration say about queueing.

    Attributes:
        sort_key: (pod, when it entered the queue) -> key. The pod with the smallest key is
            scheduled first; pods with equal keys are scheduled first in, first out.
        pre_enqueue: Runs PreEnqueue; a rejection names the plugin.
        registrations: The events that each plugin of each profile registered, with its hints. A
            plugin that is missing is treated as registered for all events.
        initial_backoff_s: Backoff after the first failure, in seconds.
        max_backoff_s: Longest backoff, in seconds; 0 turns backoff off.
        pops_from_backoff: Whether a rejected pod is popped before the end of its backoff if no pod
            is active; the gate ``SchedulerPopFromBackoffQ``.
        max_in_unschedulable_s: After so many seconds without a helpful event an unschedulable pod
            is scheduled again.
        pre_enqueue_again: Runs PreEnqueue for a pod of a class of which another pod just passed;
            defaults to `pre_enqueue`.
        released: For a PreEnqueue plugin that keeps account of them: the UIDs of gated pods that
            it would admit now, perhaps among others. None if the plugin must be asked about each
            pod.
        gates_per_pod: Whether `pre_enqueue_again` may reject a pod of this pod's class at all.
        reports: Whether the pods that a PreEnqueue plugin gates are kept for `drain_gated`.
        keeps: Whether a waiting pod stays in the queue when these rules replace others.
    """

    sort_key: Callable[[PodInfo, float], SortKey]
    pre_enqueue: Callable[[PodInfo], Status]
    registrations: Registrations
    initial_backoff_s: float = 1.0
    max_backoff_s: float = 10.0
    pops_from_backoff: bool = True
    max_in_unschedulable_s: float = 300.0
    pre_enqueue_again: Callable[[PodInfo], Status] | None = None
    released: Callable[[PluginKey], Collection[str] | None] = lambda _plugin: None
    gates_per_pod: Callable[[PodInfo], bool] = lambda _pod: True
    reports: Callable[[PluginKey], bool] = lambda _plugin: False
    keeps: Callable[[PodInfo], bool] = lambda _pod: True
