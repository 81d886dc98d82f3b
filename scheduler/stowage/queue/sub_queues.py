"""The three places where pods wait, and the ways between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from stowage.api.events import ClusterEvent
from stowage.queue.active_queue import ActiveQueue
from stowage.queue.backoff_queue import BackoffQueue
from stowage.queue.event_registrations import EventRegistrations, Requeue
from stowage.queue.heap import SortKey
from stowage.queue.pre_enqueue import Gate, GatesAtEvent
from stowage.queue.queue_events import POP_FROM_BACKOFF_QUEUE
from stowage.queue.queued_pod import Place, QueuedPod
from stowage.queue.rejections import RejectionCounts
from stowage.queue.rules import QueueRules
from stowage.queue.unschedulable_pods import UnschedulablePods, WaitingGroup
from stowage.state.pods.pod_info import PodInfo


class SubQueues:
    """Active, backoff and unschedulable pods; a waiting pod is in exactly one of them.

    A pod passes the gate when it enters the active or the backoff queue, so a move from backoff
    to active does not ask again. A pod that the gate refuses is unschedulable.

    Attributes:
        rejections: How many of the pods each plugin rejected in their last attempts, or gates.
        incoming_counts: How often pods entered a queue, by (queue, event label), as in
            ``scheduler_queue_incoming_pods_total``.
    """

    def __init__(
        self,
        sort_key: Callable[[PodInfo, float], SortKey],
        gate: Gate,
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
        self._gate = gate

    @classmethod
    def following(
        cls, rules: QueueRules, registrations: EventRegistrations, problems: list[str]
    ) -> SubQueues:
        """Empty ones that go by these rules, and add to these problems."""
        rejections = RejectionCounts()
        return cls(
            rules.sort_key,
            Gate(rules, registrations, problems, rejections),
            BackoffQueue(rules.initial_backoff_s, rules.max_backoff_s),
            UnschedulablePods(rules.max_in_unschedulable_s),
            rejections,
        )

    def __len__(self) -> int:
        return len(self.active) + len(self.backoff) + len(self.unschedulable)

    def get(self, uid: str) -> QueuedPod | None:
        """The pod, wherever it waits."""
        return self.active.get(uid) or self.backoff.get(uid) or self.unschedulable.get(uid)

    def place_of(self, uid: str) -> Place | None:
        """Where the pod waits; None if it does not."""
        if uid in self.active:
            return Place.ACTIVE
        if uid in self.backoff:
            return Place.BACKOFF
        return Place.UNSCHEDULABLE if uid in self.unschedulable else None

    def remove(self, uid: str) -> QueuedPod | None:
        """Take out a pod, wherever it waits."""
        removed = (
            self.active.remove(uid) or self.backoff.remove(uid) or self.unschedulable.remove(uid)
        )
        if removed is not None:
            self.rejections.forget(removed)
        return removed

    def can_pop(self) -> bool:
        """Whether `pop` would return a pod."""
        return len(self.active) > 0 or self.backoff.can_pop_early()

    def pop(self) -> QueuedPod | None:
        """The next pod: an active one, or else a rejected one whose backoff is not over."""
        queued = self.active.pop()
        if queued is None:
            queued = self.backoff.pop_early()
            if queued is not None:
                self.incoming_counts["active", POP_FROM_BACKOFF_QUEUE] += 1
        if queued is not None:
            self.rejections.forget(queued)
        return queued

    def resort(self, queued: QueuedPod) -> None:
        """Follow an update of an active or backing off pod that may change its place in line."""
        if queued.uid in self.active:
            self._line_up(queued, self.active)
        elif queued.uid in self.backoff:
            self._line_up(queued, self.backoff)

    def requeue(self, queued: QueuedPod, strategy: Requeue, label: str, now: float) -> Place:
        """Put a pod that is unschedulable or nowhere where the strategy says; returns where.

        ``requeuePodWithQueueingStrategy`` of v1.36: a pod whose backoff is over needs none.
        """
        if strategy is Requeue.SKIP:
            return self._park(queued, label)
        if strategy is Requeue.AFTER_BACKOFF and self.backoff.is_backing_off(queued, now):
            return self._enter_backoff(queued, label)
        return self.enter_active(queued, label, now)

    def gates_at(self, event: ClusterEvent) -> GatesAtEvent:
        """What the gates are to pods that an event may help."""
        return self._gate.at_event(event)

    def requeue_group(self, group: WaitingGroup, strategy: Requeue, label: str, now: float) -> int:
        """`requeue` all pods of a group, by a strategy that does not skip; how many moved."""
        pods = self._gate.not_held(group)
        if not pods:
            return 0
        if len(pods) == 1 or not self._gate.admits(pods[0]):
            places = [self.requeue(each, strategy, label, now) for each in pods]
            return sum(place is not Place.UNSCHEDULABLE for place in places)
        admitted = pods
        if group.is_gated or not self._gate.admits_all_alike(pods[0]):
            admitted = [each for each in pods if self._gate.admits_too(each)]
            for queued in pods if len(admitted) < len(pods) else ():
                if queued.is_gated:
                    self._park(queued, label)
        self.unschedulable.remove_all(admitted)
        ready = admitted
        if strategy is Requeue.AFTER_BACKOFF:
            over = self.backoff.all_over_since(now)
            late = [each for each in admitted if each.queued_at > over]
            waiting = [each for each in late if self.backoff.is_backing_off(each, now)]
            for queued in waiting:
                self._enter_backoff_admitted(queued, label)
            if waiting:
                ready = [each for each in admitted if each.uid not in self.backoff]
        self._enter_active_all(ready, label, now)
        return len(admitted)

    def _enter_active_all(self, pods: Sequence[QueuedPod], label: str, now: float) -> None:
        sort_key = self._sort_key
        sort_keys = [sort_key(each.info, each.queued_at) for each in pods]
        for queued in pods:
            if queued.initial_attempt_at is None:
                queued.initial_attempt_at = now
        self.active.put_all([each.info.uid for each in pods], sort_keys, pods)
        if pods:
            self.incoming_counts["active", label] += len(pods)

    def enter_active(self, queued: QueuedPod, label: str, now: float) -> Place:
        """Make a pod active that is unschedulable or nowhere, if the gate lets it."""
        if not self._gate.admits(queued):
            return self._park(queued, label)
        self.unschedulable.remove(queued.uid)
        return self.enter_active_admitted(queued, label, now)

    def enter_active_admitted(self, queued: QueuedPod, label: str, now: float) -> Place:
        """Make a pod active that has passed the gate and is nowhere any more."""
        if queued.initial_attempt_at is None:
            queued.initial_attempt_at = now
        self._line_up(queued, self.active)
        self.incoming_counts["active", label] += 1
        return Place.ACTIVE

    def take_over(
        self, others: SubQueues, keeps: Callable[[PodInfo], bool], label: str, now: float
    ) -> list[QueuedPod]:
        """Let in the pods of sub-queues that went by other rules; returns those not kept.

        An active or backing off pod enters no queue it was not in, unless a gate is closed to it.
        """
        kept: list[QueuedPod] = []
        dropped: list[QueuedPod] = []
        for queued in others.in_order():
            (kept if keeps(queued.info) else dropped).append(queued)
        self.incoming_counts = others.incoming_counts
        for queued in kept:
            self.rejections.note(queued)
            # The length of the backoff may have changed: it is worked out anew.
            queued.backoff_expires_at = None
            if queued.uid in others.unschedulable:
                self.unschedulable.put(queued)
                self.requeue(queued, Requeue.AFTER_BACKOFF, label, now)
            elif not self._gate.admits(queued):
                self._park(queued, label)
            else:
                self._line_up(queued, self.active if queued.uid in others.active else self.backoff)
        return dropped

    def in_order(self) -> Iterator[QueuedPod]:
        """All pods: the active ones in order, then the others."""
        yield from self.active.in_order()
        yield from self.backoff
        yield from self.unschedulable

    def _enter_backoff(self, queued: QueuedPod, label: str) -> Place:
        if not self._gate.admits(queued):
            return self._park(queued, label)
        self.unschedulable.remove(queued.uid)
        return self._enter_backoff_admitted(queued, label)

    def _enter_backoff_admitted(self, queued: QueuedPod, label: str) -> Place:
        self._line_up(queued, self.backoff)
        self.incoming_counts["backoff", label] += 1
        return Place.BACKOFF

    def _line_up(self, queued: QueuedPod, line: ActiveQueue | BackoffQueue) -> None:
        line.put(queued, self._sort_key(queued.info, queued.queued_at))

    def _park(self, queued: QueuedPod, label: str) -> Place:
        if queued.uid not in self.unschedulable:
            self.incoming_counts["unschedulable", label] += 1
        self.unschedulable.put(queued)
        return Place.UNSCHEDULABLE

    def problems(self) -> Iterator[str]:
        """What is inconsistent; nothing when all is well."""
        for queue in (self.active, self.backoff, self.unschedulable):
            yield from queue.problems()
        yield from self.rejections.problems(self.in_order())
        seen = Counter(queued.uid for queued in self.in_order())
        yield from (
            f"pod {uid} waits in {times} places" for uid, times in seen.items() if times > 1
        )
        for queued in self.in_order():
            if queued.is_gated and queued.uid not in self.unschedulable:
                yield f"pod {queued.info.key} is gated but not unschedulable"
