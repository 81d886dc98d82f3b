"""The queue as a whole: it knows where each pod is, and moves it.

::

    from            when                                                to
    --------------  --------------------------------------------------  -------------
    (new)           PreEnqueue lets the pod in                          active
    (new)           PreEnqueue refuses: the pod is gated                unschedulable
    active          its turn                                            in flight
    in flight       done                                                (out)
    in flight       rejected, and nothing happened that may help        unschedulable
    in flight       rejected, and something did; or an error            backoff
    unschedulable   an event may help, or 5 minutes are over            active
    unschedulable   the same while the pod backs off                    backoff
    backoff         the backoff is over                                 active
    backoff         rejected, not an error, and no pod is active        in flight
    either of them  activated                                           active
    anywhere        deleted; in flight, once the attempt has ended      (out)

Each way into active and backoff leads through PreEnqueue, except from backoff. A Pending plugin's
event lets a pod skip its backoff.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

from stowage.api.events import ClusterEvent
from stowage.api.status import Status
from stowage.queue.active_queue import InFlightPod, InFlightPods
from stowage.queue.event_registrations import (
    NO_QUESTIONS,
    EventRegistrations,
    Happened,
    Registrations,
    Requeue,
)
from stowage.queue.heap import SortKey
from stowage.queue.hint_durations import HintDurations
from stowage.queue.nominator import Nominator
from stowage.queue.queue_events import (
    BACKOFF_COMPLETE,
    CONFIGURATION_CHANGED,
    FORCE_ACTIVATE,
    SCHEDULE_ATTEMPT_FAILURE,
    UNSCHEDULABLE_TIMEOUT,
    UNSCHEDULED_POD_ADD,
    UNSCHEDULED_POD_UPDATE,
    event_label,
    pod_update_events,
)
from stowage.queue.queued_pod import Place, QueuedPod
from stowage.queue.rules import QueueRules
from stowage.queue.sub_queues import SubQueues
from stowage.queue.unschedulable_pods import WaitingGroup
from stowage.state.pods.pod_info import PodInfo


class QueueInconsistentError(AssertionError):
    """The queue's books contradict each other; its message lists how."""


class SchedulingQueue:
    """PriorityQueue of kube-scheduler v1.36: one queue for the pods of all profiles.

    Args:
        sort_key: (pod, when it entered the queue) -> key; smaller goes first, equal keys first
            in first out.
        pre_enqueue: Whether a pod may be scheduled at all; the status names the plugin.
        registrations: Which events each plugin of each profile waits for, with its hints. A
            plugin that is missing waits for all events.
        initial_backoff_s: Backoff after the first failure, in seconds.
        max_backoff_s: Longest backoff, in seconds; 0 turns backoff off.
        max_in_unschedulable_s: How long a pod may wait for an event until it is tried anyway.

    Time is always an argument, in seconds; whole seconds and half minutes of that clock are when
    backoffs end and long waits are ended. `problems` collects what went wrong in hints and
    PreEnqueue for somebody to drain.
    """

    def __init__(
        self,
        sort_key: Callable[[PodInfo, float], SortKey],
        pre_enqueue: Callable[[PodInfo], Status],
        registrations: Registrations,
        *,
        initial_backoff_s: float = 1.0,
        max_backoff_s: float = 10.0,
        max_in_unschedulable_s: float = 300.0,
    ) -> None:
        self.problems: list[str] = []
        self.nominator = Nominator()
        self.hint_durations = HintDurations()
        self._in_flight = InFlightPods()
        rules = QueueRules(
            sort_key,
            pre_enqueue,
            registrations,
            initial_backoff_s,
            max_backoff_s,
            max_in_unschedulable_s,
        )
        self._registrations, self._waiting = self._follow(rules)

    @classmethod
    def of(cls, rules: QueueRules) -> SchedulingQueue:
        """An empty queue that goes by these rules."""
        queue = cls(rules.sort_key, rules.pre_enqueue, rules.registrations)
        queue._registrations, queue._waiting = queue._follow(rules)
        return queue

    # What is where

    def __len__(self) -> int:
        """How many pods wait, those in flight not included."""
        return len(self._waiting)

    def get(self, uid: str) -> QueuedPod | None:
        """The pod, waiting or in flight."""
        flight = self._in_flight.get(uid)
        return self._waiting.get(uid) if flight is None else flight.queued

    def latest(self, uid: str) -> PodInfo | None:
        """The pod as last seen, waiting or in flight."""
        flight = self._in_flight.get(uid)
        if flight is not None:
            return flight.newest
        queued = self._waiting.get(uid)
        return None if queued is None else queued.info

    def has_ready_pods(self) -> bool:
        """Whether `pop` would return a pod."""
        return self._waiting.can_pop()

    def place_of(self, uid: str) -> Place | None:
        """Where the pod is; None if the queue does not know it."""
        return Place.IN_FLIGHT if uid in self._in_flight else self._waiting.place_of(uid)

    def in_flight(self) -> list[str]:
        """The uids of popped pods that are not done, in the order of their pops."""
        return [flight.queued.uid for flight in self._in_flight]

    @property
    def num_in_flight_events(self) -> int:
        """How many events are kept for pods in flight."""
        return self._in_flight.num_events

    def in_flight_event_counts(self) -> Counter[str]:
        """Those events by label, and ``PodPop`` for the pods; ``scheduler_inflight_events``."""
        counts = Counter(event_label(event) for event in self._in_flight.events())
        if len(self._in_flight):
            counts["PodPop"] = len(self._in_flight)
        return counts

    @property
    def incoming_counts(self) -> Counter[tuple[str, str]]:
        """Pods that entered a queue by (queue, event), ``scheduler_queue_incoming_pods_total``."""
        return self._waiting.incoming_counts

    def pending_counts(self) -> dict[str, int]:
        """Waiting pods by queue, as in ``scheduler_pending_pods``."""
        gated = self._waiting.unschedulable.num_gated
        return {
            "active": len(self._waiting.active),
            "backoff": len(self._waiting.backoff),
            "unschedulable": len(self._waiting.unschedulable) - gated,
            "gated": gated,
        }

    def unschedulable_counts(self) -> dict[tuple[str, str], int]:
        """How many waiting pods each (scheduler name, plugin) rejected last, or gates."""
        return self._waiting.rejections.totals()

    def contents(self) -> dict[Place, list[QueuedPod]]:
        """All pods by place, the active ones in order; for debugging."""
        return {
            Place.ACTIVE: self._waiting.active.in_order(),
            Place.BACKOFF: list(self._waiting.backoff),
            Place.UNSCHEDULABLE: list(self._waiting.unschedulable),
            Place.IN_FLIGHT: [flight.queued for flight in self._in_flight],
        }

    def drain_problems(self) -> list[str]:
        """What went wrong since this was last asked."""
        drained = list(self.problems)
        self.problems.clear()
        return drained

    def validate(self) -> None:
        """Raise QueueInconsistentError unless each pod is in one place and all books agree."""
        problems = list(self._inconsistencies())
        if problems:
            raise QueueInconsistentError("; ".join(problems))

    # Pods come and go

    def add(self, info: PodInfo, now: float) -> Place | None:
        """A pending pod was seen for the first time; one that is known is updated."""
        if self.place_of(info.uid) is not None:
            return self.update(info, now)
        return self._admit(info, event_label(UNSCHEDULED_POD_ADD), now)

    def update(self, info: PodInfo, now: float) -> Place | None:
        """A pending pod changed; one that is not known is added.

        An unschedulable pod moves if a plugin that rejected it says that the change may help. A
        pod in flight is left alone, and meets the change when it comes back.
        """
        flight = self._in_flight.get(info.uid)
        if flight is not None:
            self._update_in_flight(flight, info)
            return Place.IN_FLIGHT
        queued = self._waiting.get(info.uid)
        if queued is None:
            return self._admit(info, event_label(UNSCHEDULED_POD_UPDATE), now)
        old = queued.info
        if not _is_same_version(old, info):
            queued.info = info
            self.nominator.update(old, info)
            if info.uid in self._waiting.unschedulable:
                # It may be of another class now, and is asked about as one of that.
                self._waiting.unschedulable.put(queued)
                self._judge_update(queued, old, now)
            else:
                self._waiting.resort(queued)
        return self._waiting.place_of(info.uid)

    def delete(self, uid: str) -> PodInfo | None:
        """A pod is no longer pending; if it is in flight, it will not come back.

        Returns the pod as last seen; None if it is not known.
        """
        self.nominator.remove(uid)
        flight = self._in_flight.get(uid)
        if flight is not None:
            flight.is_gone = True
            return flight.newest
        queued = self._waiting.remove(uid)
        return None if queued is None else queued.info

    # One pod's turn

    def pop(self, now: float) -> QueuedPod | None:
        """Take the next pod into flight; None when there is none.

        When no pod is active, a rejected one is taken before its backoff is over.
        """
        queued = self._waiting.pop()
        if queued is None:
            return None
        if queued.initial_attempt_at is None:
            queued.initial_attempt_at = now
        queued.start_attempt()
        self._in_flight.start(queued)
        return queued

    def done(self, uid: str) -> None:
        """A popped pod needs the queue no more: it was bound, or is gone."""
        self._in_flight.end(uid)

    def add_unschedulable(
        self,
        queued: QueuedPod,
        now: float,
        rejected_by: Collection[str] = (),
        is_error: bool = False,
        pending: Collection[str] = (),
    ) -> Place | None:
        """A popped pod could not be scheduled; ``AddUnschedulableIfNotPresent`` of v1.36.

        It backs off after an error, or if an event since its pop may help according to a plugin
        that rejected it; otherwise it waits for one. Returns where it went: None if it was
        deleted meanwhile. A pod that was done already may come back too, and backs off.
        """
        flight = self._in_flight.get(queued.uid)
        place = self._waiting.place_of(queued.uid)
        if place is not None:
            self.problems.append(f"pod {queued.info.key}: came back but waits already; ignored")
            return place
        if flight is not None and flight.latest is not None:
            queued.info = flight.latest
        if is_error:
            rejected_by = pending = ()
        queued.fail_attempt(now, rejected_by, pending)
        self._registrations.note_rejection(queued.scheduler_name, (*rejected_by, *pending))
        strategy = self._judge_flight(queued, flight)
        self._in_flight.end(queued.uid)
        if flight is not None and flight.is_gone:
            return None
        self._waiting.rejections.note(queued)
        return self._waiting.requeue(queued, strategy, SCHEDULE_ATTEMPT_FAILURE, now)

    # Things happen

    def move_on_event(
        self,
        event: ClusterEvent,
        old: Any,
        new: Any,
        now: float,
        pre_check: Callable[[PodInfo], bool] | None = None,
    ) -> int:
        """Move the unschedulable pods that the event may help; returns how many.

        ``MoveAllToActiveOrBackoffQueue`` of v1.36. `old` and `new` are the object before and
        after, None for one that was added or deleted. A pod that `pre_check` says no to stays,
        and its hints are not asked.
        """
        happened = Happened(event, old, new)
        # Kept even if no plugin seems to wait for it: pods in flight are still to be rejected.
        self._in_flight.record(happened)
        waiting = self._waiting.unschedulable
        if event.is_wildcard:
            groups = waiting.groups()
        else:
            groups = waiting.groups_rejected_by(self._registrations.concerned_by(event))
            if pre_check is None:
                return self._consider_groups(groups, happened, now)
        pods = [queued for group in groups for queued in group.pods.values()]
        if pre_check is not None:
            pods = [queued for queued in pods if pre_check(queued.info)]
        return sum(self._consider(queued, happened, now) for queued in pods)

    def try_again(self, uids: Iterable[str], event: ClusterEvent, now: float) -> None:
        """Try these pods again after their backoff, whatever they wait for; gates still hold."""
        for uid in uids:
            flight = self._in_flight.get(uid)
            if flight is not None:
                self._in_flight.record(Happened(FORCE_ACTIVATE, None, flight.queued.info))
            queued = self._waiting.unschedulable.get(uid)
            if queued is not None:
                self._waiting.requeue(queued, Requeue.AFTER_BACKOFF, event_label(event), now)

    def activate(self, uids: Iterable[str], now: float) -> None:
        """Make these pods active at once, whatever they wait for; gates still hold.

        A pod in flight will not wait for an event when it comes back.
        """
        for uid in uids:
            flight = self._in_flight.get(uid)
            if flight is not None:
                self._in_flight.record(Happened(FORCE_ACTIVATE, None, flight.queued.info))
                continue
            queued = self._waiting.unschedulable.get(uid)
            if queued is not None:
                self._waiting.enter_active(queued, FORCE_ACTIVATE.label, now)
                continue
            queued = self._waiting.backoff.remove(uid)
            if queued is not None:
                self._waiting.enter_active_admitted(queued, FORCE_ACTIVATE.label, now)

    def flush(self, now: float) -> int:
        """Move pods whose backoff is over, or that waited too long; returns how many."""
        completed = self._waiting.backoff.pop_completed(now)
        for queued in completed:
            self._waiting.enter_active_admitted(queued, BACKOFF_COMPLETE, now)
        timeout = Happened(UNSCHEDULABLE_TIMEOUT)
        overdue = self._waiting.unschedulable.overdue(now)
        return len(completed) + sum(self._consider(queued, timeout, now) for queued in overdue)

    def next_deadline(self) -> float | None:
        """When `flush` has something to do next, in seconds; None if never."""
        backoff = self._waiting.backoff.next_deadline()
        unschedulable = self._waiting.unschedulable.next_deadline()
        return min((at for at in (backoff, unschedulable) if at is not None), default=None)

    # The rules change

    def reconfigure(self, rules: QueueRules, now: float) -> list[QueuedPod]:
        """Go by other rules from now on; returns the waiting pods that these do not keep.

        All that wait are put in order anew and pass the new gates; backoffs are as long as the
        new rules say, from their own beginnings. An unschedulable pod is given another chance
        after its backoff, for the new rules may let it in. A pod in flight stays so, and meets
        the change when it comes back.
        """
        registrations, waiting = self._follow(rules)
        dropped = waiting.take_over(self._waiting, rules.keeps, CONFIGURATION_CHANGED.label, now)
        self._registrations, self._waiting = registrations, waiting
        for queued in dropped:
            self.nominator.remove(queued.uid)
        self._in_flight.record(Happened(CONFIGURATION_CHANGED))
        return dropped

    def _follow(self, rules: QueueRules) -> tuple[EventRegistrations, SubQueues]:
        """Empty sub-queues that go by these rules."""
        registrations = EventRegistrations(rules.registrations, self.problems, self.hint_durations)
        return registrations, SubQueues.following(rules, registrations, self.problems)

    # How it is decided

    def _admit(self, info: PodInfo, label: str, now: float) -> Place:
        place = self._waiting.enter_active(QueuedPod(info, queued_at=now), label, now)
        if place is not Place.UNSCHEDULABLE:
            self.nominator.nominate(info)
        return place

    def _update_in_flight(self, flight: InFlightPod, info: PodInfo) -> None:
        old = flight.newest
        flight.is_gone = False
        if _is_same_version(old, info):
            return
        flight.latest = info
        self.nominator.refresh(info)
        for event in pod_update_events(old, info):
            self._in_flight.record(Happened(event, old, info))

    def _judge_update(self, queued: QueuedPod, old: PodInfo, now: float) -> None:
        for event in pod_update_events(old, queued.info):
            strategy = self._registrations.judge(queued, Happened(event, old, queued.info))
            if strategy is not Requeue.SKIP:
                place = self._waiting.requeue(queued, strategy, event_label(event), now)
                if place is not Place.UNSCHEDULABLE:
                    return

    def _judge_flight(self, queued: QueuedPod, flight: InFlightPod | None) -> Requeue:
        """The strongest reason to try again among the events since the pop."""
        if flight is None or not queued.was_rejected:
            return Requeue.AFTER_BACKOFF
        strongest = Requeue.SKIP
        for happened in self._in_flight.events_since_pop(flight):
            strategy = self._registrations.judge(queued, happened)
            if strategy is Requeue.IMMEDIATELY:
                return strategy
            if strategy is Requeue.AFTER_BACKOFF:
                strongest = strategy
                # Only a plugin that answered Pending can still ask for more.
                if not queued.pending_plugins:
                    break
        return strongest

    def _consider_groups(
        self, groups: Sequence[WaitingGroup], happened: Happened, now: float
    ) -> int:
        """Move the pods that an event, no wildcard, may help; how many moved.

        One pod is asked about for its group, unless a hint wants to know which it is.
        """
        if not groups:
            return 0
        event, registrations = happened.event, self._registrations
        label, about = event_label(event), happened.pod_uid
        rejectors, questions, moved = None, NO_QUESTIONS, 0
        gates = self._waiting.gates_at(event)
        for group in groups:
            if group.is_gated and not gates.concern(group):
                continue
            if group.rejectors is not rejectors:
                rejectors = group.rejectors
                questions = registrations.questions(rejectors, event)
            if not questions.per_class or about in group.pods:
                pods = list(group.pods.values())
                moved += sum(self._consider(queued, happened, now) for queued in pods)
                continue
            if group.is_gated and gates.hold(group):
                continue
            strategy = registrations.answer(questions, group.one.info, happened)
            if strategy is not Requeue.SKIP:
                moved += self._waiting.requeue_group(group, strategy, label, now)
        return moved

    def _consider(self, queued: QueuedPod, happened: Happened, now: float) -> bool:
        """Move an unschedulable pod if the event may help it; whether it moved."""
        if not queued.may_be_moved_by(happened.event):
            return False
        strategy = self._registrations.judge(queued, happened)
        if strategy is Requeue.SKIP:
            return False
        place = self._waiting.requeue(queued, strategy, event_label(happened.event), now)
        return place is not Place.UNSCHEDULABLE

    def _inconsistencies(self) -> Iterator[str]:
        yield from self._waiting.problems()
        yield from self._in_flight.problems()
        yield from self.nominator.problems()
        for flight in self._in_flight:
            place = self._waiting.place_of(flight.queued.uid)
            if place is not None:
                yield f"in-flight pod {flight.queued.info.key} also waits as {place.value}"


def _is_same_version(old: PodInfo, new: PodInfo) -> bool:
    return bool(new.resource_version) and new.resource_version == old.resource_version
