"""The scheduling queue: adds, pops, requeues and moves pods. The package draws the states."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import chain
from typing import Any

from stowage.api.cluster_events import ClusterEvent
from stowage.api.interruptible import Interruptible, finish
from stowage.api.values.deadlines import earlier
from stowage.queue.event_moves import EventMoves
from stowage.queue.event_registrations import EventRegistrations, ObjectEvent, Requeue
from stowage.queue.hint_durations import HintDurations
from stowage.queue.in_flight_pods import InFlightPod, InFlightPods
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
from stowage.queue.queued_pod import QueuedPod, QueueState
from stowage.queue.rules import QueueRules
from stowage.queue.sub_queues import PODS_PER_STEP, SubQueues
from stowage.state.pods.pod_info import PodInfo


class QueueInconsistentError(AssertionError):
    """The queue violates its invariants; the message lists how."""


class SchedulingQueue:
    """``PriorityQueue`` of kube-scheduler v1.36: one queue for the pods of all profiles.

    Time is always an argument, in seconds. Backoffs end at whole seconds and long waits at half
    minutes of that clock.

    Attributes:
        problems: Failures of hints and of PreEnqueue plugins; see `drain_problems`.
        nominator: The nominated pods.
        hint_durations: Receives the durations of hints.
    """

    def __init__(self, rules: QueueRules) -> None:
        self.problems: list[str] = []
        self.nominator = Nominator()
        self.hint_durations = HintDurations()
        self._in_flight = InFlightPods()
        self._next_turn = 0
        self._apply(rules)

    def _apply(self, rules: QueueRules) -> None:
        """Replace the sub-queues by empty ones with these rules."""
        registrations = EventRegistrations(rules.registrations, self.problems, self.hint_durations)
        self._registrations = registrations
        self._waiting = SubQueues.for_rules(rules, registrations, self.problems)
        self._moves = EventMoves(registrations, self._waiting, self._in_flight)

    # Contents

    def __len__(self) -> int:
        """Number of waiting pods, without those in flight."""
        return len(self._waiting)

    def get(self, uid: str) -> QueuedPod | None:
        """The pod, waiting or in flight."""
        flight = self._in_flight.get(uid)
        return self._waiting.get(uid) if flight is None else flight.queued

    def latest(self, uid: str) -> PodInfo | None:
        """The newest version of the pod, waiting or in flight."""
        flight = self._in_flight.get(uid)
        if flight is not None:
            return flight.newest
        queued = self._waiting.get(uid)
        return None if queued is None else queued.info

    def has_ready_pods(self) -> bool:
        """Whether `pop` would return a pod."""
        return self._waiting.can_pop()

    def state_of(self, uid: str) -> QueueState | None:
        """The state of the pod; None if it is not in the queue."""
        return QueueState.IN_FLIGHT if uid in self._in_flight else self._waiting.state_of(uid)

    def in_flight(self) -> list[str]:
        """The UIDs of the pods in flight, in the order of their pops."""
        return [flight.queued.uid for flight in self._in_flight]

    def in_flight_event_counts(self) -> Counter[str]:
        """Events kept for pods in flight by label, and pods in flight as ``PodPopped``.

        The values of ``scheduler_inflight_events``; 0 for what was in flight before.
        """
        counts = Counter({event_label(event): 0 for event in self._in_flight.recorded()})
        counts.update(event_label(event) for event in self._in_flight.events())
        if self._in_flight.has_started:
            counts["PodPopped"] = len(self._in_flight)
        return counts

    @property
    def incoming_counts(self) -> Counter[tuple[str, str]]:
        """Pods that entered a sub-queue by (sub-queue, event).

        The values of ``scheduler_queue_incoming_pods_total``.
        """
        return self._waiting.incoming_counts

    def pending_counts(self) -> dict[str, int]:
        """Waiting pods by sub-queue; the values of ``scheduler_pending_pods``."""
        gated = self._waiting.unschedulable.num_gated
        return {
            "active": len(self._waiting.active),
            "backoff": len(self._waiting.backoff),
            "unschedulable": len(self._waiting.unschedulable) - gated,
            "gated": gated,
        }

    def unschedulable_counts(self) -> dict[tuple[str, str], int]:
        """Waiting pods by the (scheduler name, plugin) that rejected them last, or gates them."""
        return self._waiting.rejections.totals()

    def oldest_attempt_at(self) -> float | None:
        """When the longest waiting pod first became active; None if no such pod waits.

        A pod that has been gated since its creation does not count.
        """
        waiting = self._waiting
        return min(
            (
                queued.initial_attempt_at
                for queued in chain(waiting.active, waiting.backoff, waiting.unschedulable)
                if queued.initial_attempt_at is not None
            ),
            default=None,
        )

    def contents(self) -> dict[QueueState, list[QueuedPod]]:
        """All pods by state, the active ones in order; for debugging."""
        return {
            QueueState.ACTIVE: self._waiting.active.in_order(),
            QueueState.BACKOFF: list(self._waiting.backoff),
            QueueState.UNSCHEDULABLE: list(self._waiting.unschedulable),
            QueueState.IN_FLIGHT: [flight.queued for flight in self._in_flight],
        }

    def drain_problems(self) -> list[str]:
        """The problems since the last call."""
        drained = list(self.problems)
        self.problems.clear()
        return drained

    @property
    def has_gated(self) -> bool:
        """Whether `drain_gated` would return anything."""
        return bool(self._waiting.gated)

    def drain_gated(self) -> list[tuple[PodInfo, str]]:
        """The pods whose gating is reported, with the plugin's message, since the last call."""
        gated = self._waiting.gated
        waiting = ((self._waiting.get(uid), message) for uid, message in gated.items())
        drained = [(queued.info, message) for queued, message in waiting if queued is not None]
        gated.clear()
        return drained

    def validate(self) -> None:
        """Check the invariants.

        Raises:
            QueueInconsistentError: One is violated.
        """
        for _ in self.validation_steps():
            pass

    def validation_steps(self) -> Iterator[None]:
        """`validate` in shorter steps; the queue may change between two of them.

        Raises:
            QueueInconsistentError: An invariant is violated.
        """
        for check in self._checks():
            found = list(check)
            if found:
                raise QueueInconsistentError("; ".join(found))
            yield

    # Adding, updating and deleting pods

    def add(self, info: PodInfo, now: float) -> QueueState | None:
        """Add a new pending pod, or update a known one."""
        if self.state_of(info.uid) is not None:
            return self.update(info, now)
        return self._add(info, event_label(UNSCHEDULED_POD_ADD), now)

    def update(self, info: PodInfo, now: float) -> QueueState | None:
        """Update a pending pod, or add an unknown one.

        An unschedulable pod moves if a plugin that rejected it says that the update may help. A
        pod in flight stays; its update counts when the pod returns.
        """
        flight = self._in_flight.get(info.uid)
        if flight is not None:
            self._update_in_flight(flight, info)
            return QueueState.IN_FLIGHT
        queued = self._waiting.get(info.uid)
        if queued is None:
            return self._add(info, event_label(UNSCHEDULED_POD_UPDATE), now)
        old = queued.info
        if not _is_same_version(old, info):
            queued.info = info
            self.nominator.update(old, info)
            if info.uid in self._waiting.unschedulable:
                # The class of the pod may have changed: list it in the right group.
                self._waiting.unschedulable.put(queued)
                self._moves.move_updated(queued, old, now)
            else:
                self._waiting.resort(queued)
        return self._waiting.state_of(info.uid)

    def delete(self, uid: str) -> PodInfo | None:
        """Remove a pod that is no longer pending; a pod in flight will not return.

        Returns the newest version of the pod; None if it is not known.
        """
        self.nominator.remove(uid)
        flight = self._in_flight.get(uid)
        if flight is not None:
            flight.is_deleted = True
            return flight.newest
        queued = self._waiting.remove(uid)
        return None if queued is None else queued.info

    # Scheduling attempts

    def pop(self, now: float) -> QueuedPod | None:
        """Remove the next pod for a scheduling attempt; None if there is none.

        If no pod is active, a rejected pod is popped before its backoff is over, unless the rules
        say otherwise.
        """
        queued = self._waiting.pop()
        return None if queued is None else self._started(queued, now)

    def pop_companion(self, uid: str, now: float) -> QueuedPod | None:
        """Remove a waiting pod out of turn, for the attempt of its pod group.

        ``PopSpecificPod`` of v1.36. Returns None if the pod does not wait, or if PreEnqueue rejects
        it: then it is gated.
        """
        queued = self._waiting.take(uid)
        return None if queued is None else self._started(queued, now)

    def _started(self, queued: QueuedPod, now: float) -> QueuedPod:
        if queued.initial_attempt_at is None:
            queued.initial_attempt_at = now
        queued.start_attempt()
        self._in_flight.start(queued)
        return queued

    def done(self, uid: str) -> None:
        """End the attempt of a pod that will not return: it is bound or deleted."""
        self._in_flight.end(uid)

    def add_unschedulable(
        self,
        queued: QueuedPod,
        now: float,
        rejected_by: Collection[str] = (),
        is_error: bool = False,
        pending: Collection[str] = (),
    ) -> QueueState | None:
        """Return a pod whose attempt failed; ``AddUnschedulableIfNotPresent`` of v1.36.

        The pod backs off after an error, or if a plugin that rejected it says that an event since
        its pop may help; otherwise it is unschedulable. Returns its new state: None if it was
        deleted since its pop. A pod whose attempt ended before (`done`) may return, and backs off.
        """
        flight = self._in_flight.get(queued.uid)
        state = self._waiting.state_of(queued.uid)
        if state is not None:
            self.problems.append(f"pod {queued.info.key}: returned but waits already; ignored")
            return state
        if flight is not None and flight.latest is not None:
            queued.info = flight.latest
        if is_error:
            rejected_by = pending = ()
        queued.fail_attempt(now, rejected_by, pending)
        queued.turn = self._turn()
        self._registrations.register_unknown(queued.scheduler_name, (*rejected_by, *pending))
        strategy = self._moves.strategy_after_attempt(queued, flight)
        self._in_flight.end(queued.uid)
        if flight is not None and flight.is_deleted:
            return None
        self._waiting.rejections.add(queued)
        return self._waiting.requeue(queued, strategy, SCHEDULE_ATTEMPT_FAILURE, now)

    # Events and time

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
        after; None for an object that was added or deleted. A pod for which `pre_check` is False
        stays, and no hint runs for it.
        """
        return finish(self.move_steps(event, old, new, now, pre_check))

    def move_steps(
        self,
        event: ClusterEvent,
        old: Any,
        new: Any,
        now: float,
        pre_check: Callable[[PodInfo], bool] | None = None,
    ) -> Interruptible[int]:
        """`move_on_event` in steps, between which the caller does not use the queue."""
        object_event = ObjectEvent(event, old, new)
        if self._registrations.is_of_interest(event):
            self._in_flight.record(object_event)
        else:
            self._in_flight.skip()
        return self._moves.move(object_event, now, pre_check)

    def registered(self, event: ClusterEvent) -> tuple[ClusterEvent, ...]:
        """The event, if a plugin registered it: kube-scheduler v1.36 watches for no others."""
        return (event,) if self._registrations.registered_for(event) else ()

    def try_again(self, uids: Iterable[str], event: ClusterEvent, now: float) -> None:
        """Move these unschedulable pods to backoff or active without running hints.

        PreEnqueue still runs. A pod in flight does not become unschedulable when it returns.
        """
        finish(self.try_again_steps(uids, event, now))

    def try_again_steps(
        self, uids: Iterable[str], event: ClusterEvent, now: float
    ) -> Interruptible[None]:
        """`try_again` in steps, between which the caller does not use the queue."""
        label = event_label(event)
        for number, uid in enumerate(uids, start=1):
            if number % PODS_PER_STEP == 0:
                yield
            self._record_force_activate(uid)
            queued = self._waiting.unschedulable.get(uid)
            if queued is not None:
                self._waiting.requeue(queued, Requeue.AFTER_BACKOFF, label, now)

    def activate(self, uids: Iterable[str], now: float) -> None:
        """Make these waiting pods active without backoff and without running hints.

        PreEnqueue still runs. A pod in flight does not become unschedulable when it returns.
        """
        for uid in uids:
            if self._record_force_activate(uid):
                continue
            queued = self._waiting.unschedulable.get(uid)
            if queued is not None:
                self._waiting.enter_active(queued, FORCE_ACTIVATE.label, now)
                continue
            queued = self._waiting.backoff.remove(uid)
            if queued is not None:
                self._waiting.end_backoff(queued, FORCE_ACTIVATE.label, now)

    def examine_again(self, uids: Iterable[str], event: ClusterEvent, now: float) -> None:
        """Make these waiting pods active, or gate them if PreEnqueue answers differently now.

        A pod in flight does not become unschedulable when it returns.
        """
        for uid in uids:
            self._record_force_activate(uid)
            self._waiting.examine_again(uid, event_label(event), now)

    def flush(self, now: float) -> int:
        """Move pods whose backoff is over, or that timed out; returns how many."""
        return finish(self.flush_steps(now))

    def flush_steps(self, now: float) -> Interruptible[int]:
        """`flush` in steps, between which the caller does not use the queue."""
        num_completed = 0
        while completed := self._waiting.backoff.pop_completed(now, PODS_PER_STEP):
            for queued in completed:
                state = self._waiting.end_backoff(queued, BACKOFF_COMPLETE, now)
                num_completed += state is QueueState.ACTIVE
            if len(completed) < PODS_PER_STEP:
                break
            yield
        overdue = yield from self._waiting.unschedulable.overdue(now)
        if not overdue:
            return num_completed
        timeout = ObjectEvent(UNSCHEDULABLE_TIMEOUT)
        moved = yield from self._moves.move_pods(overdue, timeout, now)
        for queued in overdue:
            # A pod that is gated again waits for an event, and that event moves it.
            queued.was_flushed = not queued.is_gated
        return num_completed + moved

    def next_deadline(self) -> float | None:
        """When `flush` has work next, in seconds; None if never."""
        waiting = self._waiting
        return earlier(waiting.backoff.next_deadline(), waiting.unschedulable.next_deadline())

    # Configuration

    def reconfigure(self, rules: QueueRules, now: float) -> list[QueuedPod]:
        """Apply other rules; returns the waiting pods that these do not keep.

        All waiting pods are ordered anew and pass PreEnqueue again. Backoffs are as long as the
        new rules say, from their own beginnings. Unschedulable pods are scheduled again after
        their backoff, because the new rules may admit them. For pods in flight the change is an
        event.
        """
        return finish(self.reconfigure_steps(rules, now))

    def reconfigure_steps(self, rules: QueueRules, now: float) -> Interruptible[list[QueuedPod]]:
        """`reconfigure` in steps, between which the caller does not use the queue."""
        previous = self._waiting
        self._apply(rules)
        label = CONFIGURATION_CHANGED.label
        dropped = yield from self._waiting.take_over(previous, rules.keeps, label, now)
        for queued in dropped:
            self.nominator.remove(queued.uid)
        self._in_flight.record(ObjectEvent(CONFIGURATION_CHANGED))
        return dropped

    def _add(self, info: PodInfo, label: str, now: float) -> QueueState:
        queued = QueuedPod(info, queued_at=now, turn=self._turn())
        state = self._waiting.enter_active(queued, label, now)
        if state is not QueueState.UNSCHEDULABLE:
            self.nominator.nominate(info)
        return state

    def _turn(self) -> int:
        self._next_turn += 1
        return self._next_turn

    def _update_in_flight(self, flight: InFlightPod, info: PodInfo) -> None:
        old = flight.newest
        flight.is_deleted = False
        if _is_same_version(old, info):
            return
        flight.latest = info
        self.nominator.refresh(info)
        for event in pod_update_events(old, info):
            self._in_flight.record(ObjectEvent(event, old, info))

    def _record_force_activate(self, uid: str) -> bool:
        """Record a forced activation if the pod is in flight; whether it is."""
        flight = self._in_flight.get(uid)
        if flight is not None:
            self._in_flight.record(ObjectEvent(FORCE_ACTIVATE, None, flight.queued.info))
        return flight is not None

    def _checks(self) -> Iterator[Iterator[str]]:
        yield from self._waiting.checks()
        yield self._in_flight.inconsistencies()
        yield self.nominator.inconsistencies()
        yield self._waiting_in_flight()

    def _waiting_in_flight(self) -> Iterator[str]:
        for flight in self._in_flight:
            state = self._waiting.state_of(flight.queued.uid)
            if state is not None:
                yield f"in-flight pod {flight.queued.info.key} also waits as {state.value}"


def _is_same_version(old: PodInfo, new: PodInfo) -> bool:
    return bool(new.resource_version) and new.resource_version == old.resource_version
