"""Lists of pods: a search of all pods, and the pending pods with their reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from heapq import nsmallest
from itertools import chain

import msgspec

from stowage.analysis.explained_decision import SCHEDULED, Circumstances, explain_decision
from stowage.analysis.explanation import SchedulingExplanation, Wakeup
from stowage.api.objects.pod import Pod
from stowage.console.answers.answer import Answer, InvalidQuestion, unix_seconds
from stowage.console.clusters.moment import Moment
from stowage.queue.queued_pod import QueuedPod

ACTIVE = "active"
UNSCHEDULABLE = "unschedulable"
GATED = "gated"
SORTS = ("since", "pod", "priority", "reason")
EVALUATION_S = 1.0
"""Seconds in which the pods of one answer are judged; the others have no reason yet."""

_POD_SCHEDULED = "PodScheduled"


class FoundPod(Answer, frozen=True):
    """A pod that a search found."""

    pod: str
    node: str
    scheduler_name: str
    priority: int


class FoundPods(Answer, frozen=True):
    """The first pods by name whose name has the text; `matching` counts all of them."""

    version: int
    total: int
    matching: int
    pods: list[FoundPod]


class PendingPod(Answer, frozen=True):
    """A pod without a node.

    Attributes:
        since: When it was created.
        pending_s: Seconds since then.
        queue: ``active``, ``unschedulable`` or ``gated``, as seen from outside.
        reason: Why it is pending.
        reason_from: ``condition`` if its scheduler wrote or recorded it, ``evaluated`` if it is
            judged here, ``gate``, or ``none`` if it is not judged.
        waits_for: The events that would wake it, if it was judged.
    """

    pod: str
    scheduler_name: str
    priority: int
    since: str | None
    pending_s: float | None
    queue: str
    group: str
    nominated_node: str
    reason: str
    reason_from: str
    waits_for: tuple[Wakeup, ...]
    requests: dict[str, int]


class PendingPods(Answer, frozen=True):
    """Some of the pending pods; `queues` counts all of them, `matching` those with the text."""

    version: int
    total: int
    matching: int
    queues: dict[str, int]
    pods: list[PendingPod]


class PendingQuery(msgspec.Struct, frozen=True):
    """Which pending pods are wanted, in which order."""

    text: str = ""
    limit: int = 200
    offset: int = 0
    sort: str = "since"

    def __post_init__(self) -> None:
        """Refuse an unknown order."""
        if self.sort not in SORTS:
            raise InvalidQuestion("sort", f"expected {', '.join(SORTS)}, got {self.sort!r}")


def find_pods(moment: Moment, text: str, limit: int) -> FoundPods:
    """The pods whose ``namespace/name`` has a text in it."""
    pods = [pod for pod in moment.loaded.objects.pods() if text in pod.metadata.namespaced_name]
    first = nsmallest(limit, pods, key=lambda pod: pod.metadata.namespaced_name)
    found = [
        FoundPod(
            pod.metadata.namespaced_name,
            pod.spec.node_name,
            pod.spec.scheduler_name,
            pod.spec.priority or 0,
        )
        for pod in first
    ]
    return FoundPods(moment.version, len(moment.loaded.objects.pods()), len(pods), found)


def pending_pods(moment: Moment, query: PendingQuery, timer: Callable[[], float]) -> PendingPods:
    """The pending pods that a query wants.

    Args:
        moment: The cluster.
        query: Which ones.
        timer: Returns seconds, for the limit of the evaluation.
    """
    waiting = list(_waiting(moment))
    wanted = [each for each in waiting if query.text in each[0].info.key]
    wanted.sort(key=lambda each: _sort_key(moment, query.sort, *each))
    shown = wanted[query.offset : query.offset + query.limit]
    judge = _Judge(moment, timer, timer() + EVALUATION_S)
    return PendingPods(
        moment.version,
        len(waiting),
        len(wanted),
        queue_counts(moment),
        [_row(moment, queued, pod, judge) for queued, pod in shown],
    )


def queue_counts(moment: Moment) -> dict[str, int]:
    """Queue -> number of pending pods."""
    counts = Counter(_queue(moment, queued, pod) for queued, pod in _waiting(moment))
    return {name: counts[name] for name in (ACTIVE, UNSCHEDULABLE, GATED)}


def _waiting(moment: Moment) -> Iterator[tuple[QueuedPod, Pod]]:
    objects = moment.loaded.objects
    queue = moment.loaded.engine.state.queue
    for queued in chain.from_iterable(queue.contents().values()):
        pod = objects.pod(queued.info.key)
        if pod is not None:
            yield queued, pod


def _queue(moment: Moment, queued: QueuedPod, pod: Pod) -> str:
    if queued.is_gated:
        return GATED
    return UNSCHEDULABLE if _refusal_of(moment, pod) else ACTIVE


def _refusal_of(moment: Moment, pod: Pod) -> str:
    """What the scheduler wrote or recorded about a pod that was refused; empty for others."""
    for condition in pod.status.conditions:
        if condition.type == _POD_SCHEDULED and condition.status == "False":
            return condition.message or condition.reason
    return moment.refused.get(pod.metadata.uid, "")


def _sort_key(moment: Moment, sort: str, queued: QueuedPod, pod: Pod) -> tuple[object, ...]:
    key = queued.info.key
    if sort == "priority":
        return -queued.info.priority, key
    if sort == "reason":
        return _refusal_of(moment, pod), key
    return (key,) if sort == "pod" else (pod.metadata.creation_timestamp or "", key)


def _row(moment: Moment, queued: QueuedPod, pod: Pod, judge: _Judge) -> PendingPod:
    info, since = queued.info, pod.metadata.creation_timestamp
    created = unix_seconds(since)
    decision = judge.decision(queued)
    reason, reason_from = _reason(moment, queued, pod, decision)
    return PendingPod(
        info.key,
        info.scheduler_name,
        info.priority,
        since,
        None if created is None else round(max(0.0, moment.unix_s - created), 1),
        _queue(moment, queued, pod),
        info.group_key,
        pod.status.nominated_node_name,
        reason,
        reason_from,
        () if decision is None else decision.waits_for,
        dict(info.requests),
    )


def _reason(
    moment: Moment, queued: QueuedPod, pod: Pod, decision: SchedulingExplanation | None
) -> tuple[str, str]:
    told = _refusal_of(moment, pod)
    if queued.is_gated:
        message = "" if decision is None else decision.message
        return message or told or f"gated by {queued.gating_plugin}", "gate"
    if told:
        return told, "condition"
    if decision is None:
        return "", "none"
    if decision.outcome == SCHEDULED:
        number = sum(each.rejected_by is None for each in decision.nodes)
        nodes = f"{number} nodes" if number > 1 else f"node {decision.chosen}"
        return f"it fits on {nodes}; no attempt is known", "evaluated"
    return decision.message, "evaluated"


class _Judge:
    """Decides about pods, for some time; pods of one class without claims are decided alike."""

    def __init__(self, moment: Moment, timer: Callable[[], float], until: float) -> None:
        self._state = moment.loaded.engine.state
        self._timer = timer
        self._until = until
        self._known: dict[int, SchedulingExplanation] = {}

    def decision(self, queued: QueuedPod) -> SchedulingExplanation | None:
        """The decision about a pod; None if the time is over."""
        info = queued.info
        key = 0 if info.volumes or info.group or info.nominated_node_name else id(info.pod_class)
        known = self._known.get(key) if key else None
        if known is not None or self._timer() > self._until:
            return known
        framework = self._state.frameworks[info.scheduler_name]
        circumstances = Circumstances.of(self._state, framework)
        decision = explain_decision(framework, self._state.cache.snapshot(), info, circumstances)
        if key:
            self._known[key] = decision
        return decision
