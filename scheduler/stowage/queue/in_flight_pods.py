"""Pods that are being scheduled, and the events since they were popped."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator

import msgspec

from stowage.api.cluster_events import ClusterEvent
from stowage.queue.event_registrations import ObjectEvent
from stowage.queue.queued_pod import QueuedPod
from stowage.state.pods.pod_info import PodInfo

# Events that no pod needs are deleted in batches of at least this many.
_MIN_TRIM = 64


class InFlightPod(msgspec.Struct, eq=False):
    """A popped pod until its scheduling attempt ends.

    Attributes:
        queued: The pod as it was popped.
        first_event: Number of the first event after the pop.
        skipped_before: Number of skipped events before the pop.
        latest: The newest version of the pod since the pop, if any; it returns to the queue.
        is_deleted: Whether the pod was deleted since the pop, so that it must not return.
    """

    queued: QueuedPod
    first_event: int
    skipped_before: int = 0
    latest: PodInfo | None = None
    is_deleted: bool = False

    @property
    def newest(self) -> PodInfo:
        """The newest version of the pod."""
        return self.latest or self.queued.info


class InFlightPods:
    """Popped pods, and the events since the first of them was popped.

    An event may help a pod whose rejection is not known yet. So an event is kept as long as a pod
    is in flight that was popped before the event. Each pod knows the number of its first event:
    replaying costs time in proportion to the events since its pop. Without pods in flight no event
    is kept. An event that no plugin registered is skipped: only its number counts.

    Attributes:
        has_started: Whether a pod was ever popped.
    """

    def __init__(self) -> None:
        # In the order of the pops: the first pod needs the oldest events.
        self._pods: OrderedDict[str, InFlightPod] = OrderedDict()
        self._events: list[ObjectEvent] = []
        self._first_kept = 0
        self._recorded: set[ClusterEvent] = set()
        self._num_skipped = 0
        self.has_started = False

    def __len__(self) -> int:
        return len(self._pods)

    def __contains__(self, uid: str) -> bool:
        return uid in self._pods

    def __iter__(self) -> Iterator[InFlightPod]:
        return iter(self._pods.values())

    @property
    def num_events(self) -> int:
        """Number of events that some pod in flight may need."""
        return self._next_event - self._first_needed

    def events(self) -> Iterator[ClusterEvent]:
        """The events that some pod in flight may need, oldest first."""
        unneeded = len(self._events) - self.num_events
        return (each.event for each in self._events[unneeded:])

    def recorded(self) -> frozenset[ClusterEvent]:
        """Every event that was kept for a pod in flight, now or before."""
        return frozenset(self._recorded)

    @property
    def _next_event(self) -> int:
        return self._first_kept + len(self._events)

    @property
    def _first_needed(self) -> int:
        oldest = next(iter(self._pods.values()), None)
        return self._next_event if oldest is None else oldest.first_event

    def get(self, uid: str) -> InFlightPod | None:
        """The pod, if it is in flight."""
        return self._pods.get(uid)

    def start(self, queued: QueuedPod) -> None:
        """Add a pod that was popped."""
        self._pods[queued.uid] = InFlightPod(queued, self._next_event, self._num_skipped)
        self.has_started = True

    def end(self, uid: str) -> InFlightPod | None:
        """Remove a pod whose attempt ended; None if it was not in flight."""
        ended = self._pods.pop(uid, None)
        if ended is not None:
            self._trim()
        return ended

    def record(self, object_event: ObjectEvent) -> None:
        """Keep an event for the pods in flight, if there are any."""
        if self._pods:
            self._events.append(object_event)
            self._recorded.add(object_event.event)

    def skip(self) -> None:
        """Count an event that no plugin registered."""
        self._num_skipped += 1

    def has_skipped_since_pop(self, flight: InFlightPod) -> bool:
        """Whether an event was skipped since the pod was popped."""
        return self._num_skipped > flight.skipped_before

    def events_since_pop(self, flight: InFlightPod) -> Iterator[ObjectEvent]:
        """The events since the pod was popped, oldest first."""
        for number in range(flight.first_event, self._next_event):
            yield self._events[number - self._first_kept]

    def inconsistencies(self) -> Iterator[str]:
        """Violated invariants, as text."""
        last = self._first_kept
        for uid, flight in self._pods.items():
            if not last <= flight.first_event <= self._next_event:
                yield f"in-flight pod {uid} begins at event {flight.first_event}, out of order"
            last = flight.first_event
        if len(self._events) > 2 * self.num_events + 2 * _MIN_TRIM:
            yield f"{len(self._events)} events kept of which {self.num_events} are needed"

    def _trim(self) -> None:
        if not self._pods:
            self._first_kept = self._next_event
            self._events.clear()
            return
        unneeded = self._first_needed - self._first_kept
        if unneeded >= max(_MIN_TRIM, len(self._events) // 2):
            del self._events[:unneeded]
            self._first_kept += unneeded
