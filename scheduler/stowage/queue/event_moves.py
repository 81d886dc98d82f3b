"""Moves of pods on cluster events: which pods an event may help, and where they go."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stowage.api.interruptible import Interruptible
from stowage.queue.event_registrations import (
    NO_HINT_FUNCTIONS,
    EventRegistrations,
    HintFunctions,
    ObjectEvent,
    Requeue,
)
from stowage.queue.in_flight_pods import InFlightPod, InFlightPods
from stowage.queue.queue_events import event_label, pod_update_events
from stowage.queue.queued_pod import QueuedPod, QueueState
from stowage.queue.sub_queues import PODS_PER_STEP, SubQueues
from stowage.queue.unschedulable_pods import UnschedulableGroup
from stowage.state.pods.pod_info import PodInfo


class EventMoves:
    """Runs the hints of the plugins that rejected a pod, and moves the pod if one answers Queue."""

    def __init__(
        self, registrations: EventRegistrations, waiting: SubQueues, in_flight: InFlightPods
    ) -> None:
        self._registrations = registrations
        self._waiting = waiting
        self._in_flight = in_flight

    def move(
        self,
        object_event: ObjectEvent,
        now: float,
        pre_check: Callable[[PodInfo], bool] | None = None,
    ) -> Interruptible[int]:
        """Move the unschedulable pods that the event may help; returns how many."""
        event, unschedulable = object_event.event, self._waiting.unschedulable
        if not len(unschedulable):
            return 0
        if event.is_wildcard:
            groups = unschedulable.groups()
        else:
            groups = unschedulable.groups_rejected_by(self._registrations.registered_for(event))
            if pre_check is None:
                return (yield from self._move_groups(groups, object_event, now))
        pods = [queued for group in groups for queued in group.pods.values()]
        if pre_check is not None:
            pods = [queued for queued in pods if pre_check(queued.info)]
        return (yield from self.move_pods(pods, object_event, now))

    def move_pods(
        self,
        pods: Sequence[QueuedPod],
        object_event: ObjectEvent,
        now: float,
        hints: HintFunctions | None = None,
    ) -> Interruptible[int]:
        """Move those of these unschedulable pods that the event may help; returns how many.

        Args:
            pods: The pods.
            object_event: The event.
            now: The time.
            hints: Those for all these pods, if known.
        """
        moved = 0
        for number, queued in enumerate(pods, start=1):
            moved += self._move_pod(queued, object_event, now, hints)
            if number % PODS_PER_STEP == 0:
                yield
        return moved

    def move_updated(self, queued: QueuedPod, old: PodInfo, now: float) -> None:
        """Move an unschedulable pod if its own update may help it."""
        for event in pod_update_events(old, queued.info):
            object_event = ObjectEvent(event, old, queued.info)
            strategy = self._registrations.strategy_for(queued, object_event)
            if strategy is not Requeue.SKIP:
                state = self._waiting.requeue(queued, strategy, event_label(event), now)
                if state is not QueueState.UNSCHEDULABLE:
                    return

    def strategy_after_attempt(self, queued: QueuedPod, flight: InFlightPod | None) -> Requeue:
        """The strongest strategy among the events since the pop of a pod that failed."""
        if flight is None or not queued.was_rejected:
            return Requeue.AFTER_BACKOFF
        strongest = self._strategy_for_skipped(queued, flight)
        for object_event in self._in_flight.events_since_pop(flight):
            # Only a plugin that answered Pending can still ask for more.
            if strongest is Requeue.IMMEDIATELY or (
                strongest is Requeue.AFTER_BACKOFF and not queued.pending_plugins
            ):
                break
            strategy = self._registrations.strategy_for(queued, object_event)
            if strategy is Requeue.IMMEDIATELY:
                return strategy
            if strategy is Requeue.AFTER_BACKOFF:
                strongest = strategy
        return strongest

    def _strategy_for_skipped(self, queued: QueuedPod, flight: InFlightPod) -> Requeue:
        """The strategy for the skipped events: only a plugin that was unknown waits for them."""
        if not self._in_flight.has_skipped_since_pop(flight):
            return Requeue.SKIP
        were_unknown, name = self._registrations.were_unknown, queued.scheduler_name
        if were_unknown(name, queued.pending_plugins):
            return Requeue.IMMEDIATELY
        rejected = were_unknown(name, queued.unschedulable_plugins)
        return Requeue.AFTER_BACKOFF if rejected else Requeue.SKIP

    def _move_groups(
        self, groups: Sequence[UnschedulableGroup], object_event: ObjectEvent, now: float
    ) -> Interruptible[int]:
        """Move the pods of groups that an event other than a wildcard may help; how many moved.

        The hints run for one pod of a group, unless one of them reads more than the class, and for
        one of all groups with the same demand, if they read no more of them.
        """
        if not groups:
            return 0
        event, registrations = object_event.event, self._registrations
        label, about = event_label(event), object_event.pod_uid
        rejector_plugins, hints, moved = None, NO_HINT_FUNCTIONS, 0
        gated = self._waiting.gated_groups(event)
        answers: dict[int, Requeue] = {}
        for number, group in enumerate(groups, start=1):
            if number % PODS_PER_STEP == 0:
                yield
            if group.is_gated and not gated.may_move(group):
                continue
            if group.rejector_plugins is not rejector_plugins:
                rejector_plugins = group.rejector_plugins
                hints = registrations.hint_functions(rejector_plugins, event)
                answers = {}
            if not hints.per_class or about in group.pods:
                pods = list(group.pods.values())
                moved += yield from self.move_pods(pods, object_event, now, hints)
                continue
            if group.is_gated and gated.are_all_held(group):
                continue
            info = group.one.info
            asked = info.pod_class.demand.id if hints.per_demand else info.pod_class.id
            strategy = answers.get(asked)
            if strategy is None:
                strategy = registrations.run_hints(hints, info, object_event)
                answers[asked] = strategy
            if strategy is not Requeue.SKIP:
                moved += yield from self._waiting.requeue_group(group, strategy, label, now)
        return moved

    def _move_pod(
        self,
        queued: QueuedPod,
        object_event: ObjectEvent,
        now: float,
        hints: HintFunctions | None = None,
    ) -> bool:
        """Move a pod if the event may help it; `hints` are those for the pod, if known."""
        if not queued.may_be_moved_by(object_event.event):
            return False
        if hints is None or not queued.was_rejected:
            strategy = self._registrations.strategy_for(queued, object_event)
        else:
            strategy = self._registrations.run_hints(hints, queued.info, object_event)
        if strategy is Requeue.SKIP:
            return False
        label = event_label(object_event.event)
        state = self._waiting.requeue(queued, strategy, label, now)
        return state is not QueueState.UNSCHEDULABLE
