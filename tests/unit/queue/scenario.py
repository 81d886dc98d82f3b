"""A queue with scripted PreEnqueue and hints, and functions that bring pods into each state."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import msgspec

from stowage.api.cluster_events import ActionType, ClusterEvent, EventResource, QueueingHint
from stowage.api.status import SUCCESS, Status, unresolvable
from stowage.queue import QueuedPod, QueueRules, QueueState, SchedulingQueue
from stowage.queue.event_registrations import Hint
from stowage.state.pods.pod_info import PodClasses, PodInfo, make_pod_info
from tests.support.builders import make_pod

CLASSES = PodClasses()
PROFILE = "default-scheduler"

NODE_ADD = ClusterEvent(EventResource.NODE, ActionType.ADD)
NODE_LABEL = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_LABEL)
POD_DELETE = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE)
POD_LABEL = ClusterEvent(EventResource.POD, ActionType.UPDATE_POD_LABEL)
GATES_ELIMINATED = ClusterEvent(
    EventResource.POD, ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED
)
CLAIM_ADD = ClusterEvent(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD)


def pending(name: str, **fields: Any) -> PodInfo:
    """A pending pod; fields as for `make_pod`."""
    return make_pod_info(make_pod(name, **fields), CLASSES)


def by_priority(info: PodInfo, queued_at: float) -> tuple[int, float]:
    return (-info.priority, queued_at)


class Hints:
    """A scripted hint that records the pods it was called for."""

    def __init__(self, answer: QueueingHint = QueueingHint.QUEUE) -> None:
        self.answer = answer
        self.asked: list[str] = []
        self.objects: list[tuple[Any, Any]] = []

    def __call__(self, pod: PodInfo, old: Any, new: Any) -> QueueingHint:
        self.asked.append(pod.name)
        self.objects.append((old, new))
        return self.answer


def skip() -> Hints:
    return Hints(QueueingHint.SKIP)


def broken(pod: PodInfo, old: Any, new: Any) -> QueueingHint:
    raise ZeroDivisionError("division by zero")


class Gate:
    """PreEnqueue that holds the pods named in `closed`, and those with scheduling gates."""

    def __init__(self) -> None:
        self.closed: set[str] = set()
        self.asked: list[str] = []

    def __call__(self, info: PodInfo) -> Status:
        self.asked.append(info.name)
        if info.spec.scheduling_gates:
            return unresolvable("waiting for scheduling gates", plugin="SchedulingGates")
        if info.name in self.closed:
            return unresolvable("not yet", plugin="Gatekeeper")
        return SUCCESS


DEFAULT_EVENTS: Mapping[str, Sequence[tuple[ClusterEvent, Hint | None]]] = {
    "NodeResourcesFit": [(NODE_ADD, None), (POD_DELETE, None)],
    "NodeAffinity": [(NODE_LABEL, None)],
    "DynamicResources": [(CLAIM_ADD, None)],
    "InterPodAffinity": [(POD_LABEL, None)],
    "SchedulingGates": [(GATES_ELIMINATED, None)],
    "Gatekeeper": [(CLAIM_ADD, None)],
}


def make_queue(
    events: Mapping[str, Sequence[tuple[ClusterEvent, Hint | None]]] | None = None,
    pre_enqueue: Callable[[PodInfo], Status] | None = None,
    **timing: float,
) -> SchedulingQueue:
    """A queue ordered by priority; `events` replaces the registrations of some plugins."""
    return SchedulingQueue(make_rules(events, pre_enqueue, **timing))


def make_rules(
    events: Mapping[str, Sequence[tuple[ClusterEvent, Hint | None]]] | None = None,
    pre_enqueue: Callable[[PodInfo], Status] | None = None,
    **timing: float,
) -> QueueRules:
    """The rules of `make_queue`."""
    registered = {**DEFAULT_EVENTS, **(events or {})}
    rules = QueueRules(
        by_priority,
        pre_enqueue or Gate(),
        {(PROFILE, plugin): wanted for plugin, wanted in registered.items()},
    )
    return msgspec.structs.replace(rules, **timing)


def pop(queue: SchedulingQueue, now: float = 0.0) -> QueuedPod:
    """The next pod; fails if there is none."""
    queued = queue.pop(now)
    assert queued is not None
    queue.validate()
    return queued


def pop_names(queue: SchedulingQueue, now: float = 0.0) -> list[str]:
    """Pop until the queue returns None."""
    names = []
    while (queued := queue.pop(now)) is not None:
        names.append(queued.info.name)
    queue.validate()
    return names


def reject(
    queue: SchedulingQueue,
    info: PodInfo,
    now: float = 0.0,
    by: Collection[str] = ("NodeResourcesFit",),
    pending_on: Collection[str] = (),
) -> QueuedPod:
    """Add a pod, pop it and have it rejected."""
    queue.add(info, now)
    queued = pop(queue, now)
    assert queued.info.uid == info.uid
    assert queue.add_unschedulable(queued, now, by, pending=pending_on) is QueueState.UNSCHEDULABLE
    queue.validate()
    return queued


def fail(queue: SchedulingQueue, info: PodInfo, now: float = 0.0) -> QueuedPod:
    """Add a pod, pop it and have it fail with an error."""
    queue.add(info, now)
    queued = pop(queue, now)
    assert queue.add_unschedulable(queued, now, is_error=True) is QueueState.BACKOFF
    queue.validate()
    return queued
