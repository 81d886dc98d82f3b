"""The three sub-queues of waiting pods, and the moves between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain

from stowage.api.cluster_events import ClusterEvent
from stowage.api.interruptible import Interruptible
from stowage.queue.active_queue import ActiveQueue
from stowage.queue.backoff_queue import BackoffQueue
from stowage.queue.event_registrations import EventRegistrations, Requeue
from stowage.queue.heap import SortKey
from stowage.queue.pre_enqueue import GatedGroups, PreEnqueueRunner
from stowage.queue.queue_events import POP_COMPANION, POP_FROM_BACKOFF_QUEUE
from stowage.queue.queued_pod import QueuedPod, QueueState
from stowage.queue.rejections import RejectionCounts
from stowage.queue.rules import QueueRules
from stowage.queue.unschedulable_pods import UnschedulableGroup, UnschedulablePods
from stowage.state.pods.pod_info import PodInfo

PODS_PER_STEP = 1_000
"""Pods that move in one step; a move takes up to ten microseconds."""


class SubQueues:
    """Active, backing off and unschedulable pods; a waiting pod is in exactly one sub-queue.

    PreEnqueue runs when a pod enters the active or the backoff queue; a move from backoff to active
    does not run it again. Where no pod is popped before its backoff ends, it runs at that move, and
    not before the backoff. A pod that PreEnqueue rejects is gated, and unschedulable.

    Attributes:
        active: Pods that are ready to be scheduled.
        backoff: Pods that back off.
        unschedulable: Rejected and gated pods.
        rejections: Counts of waiting pods by the plugin that rejected or gates them.
        incoming_counts: How often pods entered a sub-queue, by (sub-queue, event label), for
            ``scheduler_queue_incoming_pods_total``.
    """

    def __init__(
        self,
        sort_key: Callable[[PodInfo, float], SortKey],
        pre_enqueue: PreEnqueueRunner,
        backoff: BackoffQueue,
        unschedulable: UnschedulablePods,
        rejections: RejectionCounts,
    ) -> None:
        self.rejections = rejections
        self.active = ActiveQueue()
        self.backoff = backoff
        self.unschedulable = unschedulable
        self.incoming_counts: Counter[tuple[str, str]] = Counter()
        self._sort_key = sort_key
        self._pre_enqueue = pre_enqueue

    @classmethod
    def for_rules(
        cls, rules: QueueRules, registrations: EventRegistrations, problems: list[str]
    ) -> SubQueues:
        """Empty sub-queues with these rules; failures of PreEnqueue are added to `problems`."""
        rejections = RejectionCounts()
        return cls(
            rules.sort_key,
            PreEnqueueRunner(rules, registrations, problems, rejections),
            BackoffQueue(
                rules.initial_backoff_s,
                rules.max_backoff_s,
                pops_early=rules.pops_from_backoff,
            ),
            UnschedulablePods(rules.max_in_unschedulable_s),
            rejections,
        )

    def __len__(self) -> int:
        return len(self.active) + len(self.backoff) + len(self.unschedulable)

    def get(self, uid: str) -> QueuedPod | None:
        """The pod, if it waits."""
        return self.active.get(uid) or self.backoff.get(uid) or self.unschedulable.get(uid)

    def state_of(self, uid: str) -> QueueState | None:
        """The state of a waiting pod; None if it does not wait."""
        if uid in self.active:
            return QueueState.ACTIVE
        if uid in self.backoff:
            return QueueState.BACKOFF
        return QueueState.UNSCHEDULABLE if uid in self.unschedulable else None

    def remove(self, uid: str) -> QueuedPod | None:
        """Remove a waiting pod; None if it does not wait."""
        removed = (
            self.active.remove(uid) or self.backoff.remove(uid) or self.unschedulable.remove(uid)
        )
        if removed is not None:
            self.rejections.remove(removed)
            self.gated.pop(uid, None)
        return removed

    @property
    def gated(self) -> dict[str, str]:
        """UID -> message of the gated pods to report; see `PreEnqueueRunner`."""
        return self._pre_enqueue.gated

    def can_pop(self) -> bool:
        """Whether `pop` would return a pod."""
        return len(self.active) > 0 or self.backoff.can_pop_early()

    def pop(self) -> QueuedPod | None:
        """Remove and return the first active pod, or else a rejected pod that backs off."""
        queued = self.active.pop()
        if queued is None:
            queued = self.backoff.pop_early()
            if queued is not None:
                self.incoming_counts["active", POP_FROM_BACKOFF_QUEUE] += 1
        if queued is not None:
            self.rejections.remove(queued)
        return queued

    def take(self, uid: str) -> QueuedPod | None:
        """Remove and return a waiting pod that PreEnqueue admits; None if there is no such pod.

        A pod that PreEnqueue rejects is gated, wherever it waited.
        """
        queued = self.get(uid)
        if queued is None:
            return None
        if self._pre_enqueue.admits(queued):
            return self.remove(uid)
        if uid not in self.unschedulable:
            self.active.remove(uid)
            self.backoff.remove(uid)
        self._enter_unschedulable(queued, POP_COMPANION)
        return None

    def resort(self, queued: QueuedPod) -> None:
        """Order an active or backing off pod by its new sort key."""
        if queued.uid in self.active:
            self._put(queued, self.active)
        elif queued.uid in self.backoff:
            self._put(queued, self.backoff)

    def requeue(self, queued: QueuedPod, strategy: Requeue, label: str, now: float) -> QueueState:
        """Move a pod that is unschedulable, or new here, by a strategy; returns its new state.

        ``requeuePodWithQueueingStrategy`` of v1.36: a pod whose backoff is over becomes active.
        """
        if strategy is Requeue.SKIP:
            return self._enter_unschedulable(queued, label)
        if strategy is Requeue.AFTER_BACKOFF and self.backoff.is_backing_off(queued, now):
            return self._enter_backoff(queued, label)
        return self.enter_active(queued, label, now)

    def gated_groups(self, event: ClusterEvent) -> GatedGroups:
        """Answers which groups of gated pods an event may move."""
        return self._pre_enqueue.gated_groups(event)

    def requeue_group(
        self, group: UnschedulableGroup, strategy: Requeue, label: str, now: float
    ) -> Interruptible[int]:
        """`requeue` all pods of a group, by a strategy other than SKIP; how many moved."""
        pods, moved = self._pre_enqueue.not_held(group), 0
        for first in range(0, len(pods), PODS_PER_STEP):
            part = pods[first : first + PODS_PER_STEP]
            moved += self._requeue_alike(group, part, strategy, label, now)
            if len(part) == PODS_PER_STEP:
                yield
        return moved

    def _requeue_alike(
        self,
        group: UnschedulableGroup,
        pods: list[QueuedPod],
        strategy: Requeue,
        label: str,
        now: float,
    ) -> int:
        """`requeue` some pods of a group, by a strategy other than SKIP; how many moved."""
        is_one_by_one = len(pods) == 1 or not self.backoff.pops_early
        if is_one_by_one or not self._pre_enqueue.admits(pods[0]):
            states = [self.requeue(each, strategy, label, now) for each in pods]
            return sum(state is not QueueState.UNSCHEDULABLE for state in states)
        admitted = self._admitted_of(group, pods, label)
        self.unschedulable.remove_all(admitted)
        ready = admitted
        if strategy is Requeue.AFTER_BACKOFF:
            expired = self.backoff.latest_expired(now)
            late = [each for each in admitted if each.queued_at > expired]
            waiting = [each for each in late if self.backoff.is_backing_off(each, now)]
            for queued in waiting:
                self._enter_backoff_admitted(queued, label)
            if waiting:
                ready = [each for each in admitted if each.uid not in self.backoff]
        self._enter_active_all(ready, label, now)
        return len(admitted)

    def _admitted_of(
        self, group: UnschedulableGroup, pods: list[QueuedPod], label: str
    ) -> list[QueuedPod]:
        """The pods of a group that PreEnqueue admits, as it admits the first; gates the others."""
        if not group.is_gated and self._pre_enqueue.admits_whole_class(pods[0]):
            return pods
        admitted = [each for each in pods if self._pre_enqueue.admits_also(each)]
        for queued in pods if len(admitted) < len(pods) else ():
            if queued.is_gated:
                self._enter_unschedulable(queued, label)
        return admitted

    def _enter_active_all(self, pods: Sequence[QueuedPod], label: str, now: float) -> None:
        sort_key = self._sort_key
        sort_keys = [sort_key(each.info, each.queued_at) for each in pods]
        for queued in pods:
            if queued.initial_attempt_at is None:
                queued.initial_attempt_at = now
        self.active.put_all([each.info.uid for each in pods], sort_keys, pods)
        if pods:
            self.incoming_counts["active", label] += len(pods)

    def enter_active(self, queued: QueuedPod, label: str, now: float) -> QueueState:
        """Make a pod active that is unschedulable, or new here, if PreEnqueue admits it."""
        if not self._pre_enqueue.admits(queued):
            return self._enter_unschedulable(queued, label)
        self.unschedulable.remove(queued.uid)
        return self.enter_active_admitted(queued, label, now)

    def enter_active_admitted(self, queued: QueuedPod, label: str, now: float) -> QueueState:
        """Make a pod active that PreEnqueue admitted and that is in no sub-queue."""
        if queued.initial_attempt_at is None:
            queued.initial_attempt_at = now
        self._put(queued, self.active)
        self.incoming_counts["active", label] += 1
        return QueueState.ACTIVE

    def end_backoff(self, queued: QueuedPod, label: str, now: float) -> QueueState:
        """Make a pod active that backed off until now, unless PreEnqueue runs only now."""
        if self.backoff.pops_early:
            return self.enter_active_admitted(queued, label, now)
        return self.enter_active(queued, label, now)

    def examine_again(self, uid: str, label: str, now: float) -> None:
        """Make a waiting pod active if PreEnqueue admits it now; otherwise it is gated."""
        queued = self.unschedulable.get(uid) or self.active.remove(uid) or self.backoff.remove(uid)
        if queued is not None:
            self.enter_active(queued, label, now)

    def take_over(
        self, others: SubQueues, keeps: Callable[[PodInfo], bool], label: str, now: float
    ) -> Interruptible[list[QueuedPod]]:
        """Take the pods of sub-queues with other rules; returns the pods that are not kept.

        An active or backing off pod stays in its sub-queue, unless PreEnqueue rejects it.
        """
        dropped: list[QueuedPod] = []
        self.incoming_counts = others.incoming_counts
        waiting = chain(others.active, others.backoff, others.unschedulable)
        for number, queued in enumerate(waiting, start=1):
            if number % PODS_PER_STEP == 0:
                yield
            if not keeps(queued.info):
                dropped.append(queued)
                continue
            self.rejections.add(queued)
            # The new rules may change the length of the backoff.
            queued.backoff_expires_at = None
            if queued.uid in others.unschedulable:
                self.unschedulable.put(queued)
                self.requeue(queued, Requeue.AFTER_BACKOFF, label, now)
                continue
            sub_queue = self.active if queued.uid in others.active else self.backoff
            if self._admits_to(sub_queue, queued):
                self._put(queued, sub_queue)
            else:
                self._enter_unschedulable(queued, label)
        return dropped

    def in_order(self) -> Iterator[QueuedPod]:
        """All pods: the active ones in order, then the others."""
        yield from self.active.in_order()
        yield from self.backoff
        yield from self.unschedulable

    def _enter_backoff(self, queued: QueuedPod, label: str) -> QueueState:
        if not self._admits_to(self.backoff, queued):
            return self._enter_unschedulable(queued, label)
        self.unschedulable.remove(queued.uid)
        return self._enter_backoff_admitted(queued, label)

    def _admits_to(self, sub_queue: ActiveQueue | BackoffQueue, queued: QueuedPod) -> bool:
        """Whether PreEnqueue admits a pod; it is not asked now if `end_backoff` will ask it."""
        if sub_queue is self.backoff and not self.backoff.pops_early:
            self._pre_enqueue.postpone(queued)
            return True
        return self._pre_enqueue.admits(queued)

    def _enter_backoff_admitted(self, queued: QueuedPod, label: str) -> QueueState:
        self._put(queued, self.backoff)
        self.incoming_counts["backoff", label] += 1
        return QueueState.BACKOFF

    def _put(self, queued: QueuedPod, sub_queue: ActiveQueue | BackoffQueue) -> None:
        sub_queue.put(queued, self._sort_key(queued.info, queued.queued_at))

    def _enter_unschedulable(self, queued: QueuedPod, label: str) -> QueueState:
        if queued.uid not in self.unschedulable:
            self.incoming_counts["unschedulable", label] += 1
        self.unschedulable.put(queued)
        return QueueState.UNSCHEDULABLE

    def checks(self) -> Iterator[Iterator[str]]:
        """The checks one by one; each finds violated invariants, as text."""
        for queue in (self.active, self.backoff, self.unschedulable):
            yield queue.inconsistencies()
        yield self.rejections.inconsistencies(self.in_order())
        yield self._misplaced()

    def _misplaced(self) -> Iterator[str]:
        seen = Counter(queued.uid for queued in self.in_order())
        yield from (
            f"pod {uid} waits in {times} sub-queues" for uid, times in seen.items() if times > 1
        )
        for queued in self.in_order():
            if queued.is_gated and queued.uid not in self.unschedulable:
                yield f"pod {queued.info.key} is gated but not unschedulable"
