"""Pods ready to be scheduled, pods being scheduled, and what happened meanwhile."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence

import msgspec

from stowage.api.events import ClusterEvent
from stowage.queue.event_registrations import Happened
from stowage.queue.heap import KeyedHeap, SortKey
from stowage.queue.queued_pod import QueuedPod
from stowage.state.pods.pod_info import PodInfo

# Events nobody needs any more are cut off in pieces of at least this many.
_MIN_TRIM = 64


class ActiveQueue:
    """Pods that wait for nothing but their turn; activeQ of kube-scheduler."""

    def __init__(self) -> None:
        self._heap: KeyedHeap[QueuedPod] = KeyedHeap()

    def __len__(self) -> int:
        return len(self._heap)

    def __contains__(self, uid: str) -> bool:
        return uid in self._heap

    def get(self, uid: str) -> QueuedPod | None:
        """The pod, if it is here."""
        return self._heap.get(uid)

    def put(self, queued: QueuedPod, sort_key: SortKey) -> None:
        """Add a pod, or give it the place that its changed sort key deserves."""
        self._heap.push(queued.uid, sort_key, queued)

    def put_all(
        self, uids: Sequence[str], sort_keys: Sequence[SortKey], pods: Sequence[QueuedPod]
    ) -> None:
        """Add many pods; their uids and sort keys stand in the same order."""
        self._heap.push_all(uids, sort_keys, pods)

    def pop(self) -> QueuedPod | None:
        """Take the pod whose turn it is."""
        return self._heap.pop()

    def remove(self, uid: str) -> QueuedPod | None:
        """Take out a pod wherever it stands."""
        return self._heap.remove(uid)

    def in_order(self) -> list[QueuedPod]:
        """All pods in the order of their turns; for debugging."""
        return self._heap.in_order()

    def problems(self) -> Iterator[str]:
        """What is inconsistent; nothing when all is well."""
        return self._heap.problems()


class InFlightPod(msgspec.Struct, eq=False):
    """A popped pod until it is done.

    Attributes:
        queued: The pod as it was popped.
        first_event: Number of the first event after the pop.
        latest: The newest version seen since the pop, if any; it is what goes back to the queue.
        is_gone: Whether the pod was deleted meanwhile, so that it must not come back.
    """

    queued: QueuedPod
    first_event: int
    latest: PodInfo | None = None
    is_gone: bool = False

    @property
    def newest(self) -> PodInfo:
        """The pod as last seen."""
        return self.latest or self.queued.info


class InFlightPods:
    """Popped pods that are not done, and the events since the first of them was popped.

    An event may help a pod whose rejection is not known yet, so events are kept as long as a pod
    that was popped before them is in flight. Each pod knows where its own events begin: replaying
    them costs those events only. Without pods in flight nothing is kept.
    """

    def __init__(self) -> None:
        # In order of their pops, so the first one needs the oldest events.
        self._pods: OrderedDict[str, InFlightPod] = OrderedDict()
        self._events: list[Happened] = []
        self._first_kept = 0

    def __len__(self) -> int:
        return len(self._pods)

    def __contains__(self, uid: str) -> bool:
        return uid in self._pods

    def __iter__(self) -> Iterator[InFlightPod]:
        return iter(self._pods.values())

    @property
    def num_events(self) -> int:
        """How many events a pod in flight may still ask for."""
        return self._next_event - self._first_needed

    def events(self) -> Iterator[ClusterEvent]:
        """Those events, oldest first."""
        unneeded = len(self._events) - self.num_events
        return (happened.event for happened in self._events[unneeded:])

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
        """A pod was popped."""
        self._pods[queued.uid] = InFlightPod(queued, self._next_event)

    def end(self, uid: str) -> InFlightPod | None:
        """A pod is done; its record, or None if it was not in flight."""
        ended = self._pods.pop(uid, None)
        if ended is not None:
            self._trim()
        return ended

    def record(self, happened: Happened) -> None:
        """Keep an event for the pods in flight, if there are any."""
        if self._pods:
            self._events.append(happened)

    def events_since_pop(self, flight: InFlightPod) -> Iterator[Happened]:
        """What happened since the pod was popped, oldest first."""
        for number in range(flight.first_event, self._next_event):
            yield self._events[number - self._first_kept]

    def problems(self) -> Iterator[str]:
        """What is inconsistent; nothing when all is well."""
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
