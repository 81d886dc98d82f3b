"""What the queue is told from outside: order, gates, hints and times."""

from __future__ import annotations

from collections.abc import Callable, Collection

import msgspec

from stowage.api.status import Status
from stowage.queue.event_registrations import PluginKey, Registrations
from stowage.queue.heap import SortKey
from stowage.state.pods.pod_info import PodInfo


class QueueRules(msgspec.Struct, frozen=True):
    """All that a `SchedulingQueue` goes by; its arguments have the same names and meanings.

    Attributes:
        pre_enqueue_again: `pre_enqueue` for a pod of whose class another one was let in just now;
            the same if not given.
        released: For a gating plugin that keeps account of them, the UIDs of the pods it gated
            and would let in now, perhaps with others; None if each pod has to be asked about.
        gates_per_pod: Whether `pre_enqueue_again` may refuse a pod of such a class at all.
        keeps: Whether a waiting pod still belongs here, once these rules take the place of others.
    """

    sort_key: Callable[[PodInfo, float], SortKey]
    pre_enqueue: Callable[[PodInfo], Status]
    registrations: Registrations
    initial_backoff_s: float = 1.0
    max_backoff_s: float = 10.0
    max_in_unschedulable_s: float = 300.0
    pre_enqueue_again: Callable[[PodInfo], Status] | None = None
    released: Callable[[PluginKey], Collection[str] | None] = lambda _plugin: None
    gates_per_pod: Callable[[PodInfo], bool] = lambda _pod: True
    keeps: Callable[[PodInfo], bool] = lambda _pod: True
