"""The queue of events that the engine has not handled yet."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from stowage.api.events import (
    AssignedPodSeen,
    BindSucceeded,
    Event,
    NodeGone,
    NodeSeen,
    PendingPodGone,
)

_CONFIRMATIONS = (AssignedPodSeen, BindSucceeded, PendingPodGone)
"""Each of our bindings brings all of them; none makes room for a pod that waits."""


class _Flag:
    """An event for one task, which may wait for it with a timeout.

    It costs a third of an `asyncio.Event` in an `asyncio.timeout`, for each pod that comes alone.
    """

    __slots__ = ("_waiter", "is_set")

    def __init__(self) -> None:
        self.is_set = False
        self._waiter: asyncio.Future[None] | None = None

    def set(self) -> None:
        self.is_set = True
        if self._waiter is not None:
            _end(self._waiter)

    def clear(self) -> None:
        self.is_set = False

    async def wait(self, timeout_s: float | None) -> None:
        """Return when it is set, or after `timeout_s`."""
        if self.is_set:
            return
        loop = asyncio.get_running_loop()
        waiter = self._waiter = loop.create_future()
        timer = None if timeout_s is None else loop.call_later(timeout_s, _end, waiter)
        try:
            await waiter
        finally:
            self._waiter = None
            if timer is not None:
                timer.cancel()


def _end(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


class Inbox:
    """Events in order of arrival; each new event wakes the loop.

    Of several waiting `NodeSeen` events of a node only the newest is kept, in the place of the
    first: nodes report their status often, and the engine needs the latest one only.
    """

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._node_places: dict[str, int] = {}
        self._arrived = _Flag()
        self._urgent = _Flag()

    def __len__(self) -> int:
        return len(self._events)

    def put(self, event: Event) -> None:
        """Add one event and wake the loop."""
        if isinstance(event, NodeSeen):
            self._put_node(event)
        else:
            if isinstance(event, NodeGone):
                self._node_places.pop(event.name, None)
            self._events.append(event)
        self._arrived.set()
        if not isinstance(event, _CONFIRMATIONS):
            self._urgent.set()

    def put_all(self, events: Iterable[Event]) -> None:
        """Add events in their order and wake the loop."""
        for event in events:
            self.put(event)

    def wake(self) -> None:
        """Wake the loop without an event, e.g. because scheduling may begin."""
        self._arrived.set()
        self._urgent.set()

    @property
    def is_urgent(self) -> bool:
        """Whether it holds an event that is not a confirmation, or was woken without one."""
        return self._urgent.is_set

    def drain(self, limit: int) -> list[Event]:
        """Take the oldest `limit` events."""
        return list(self.take(limit, lambda: False))

    def take(self, limit: int, is_over: Callable[[], bool]) -> Iterator[Event]:
        """Take up to `limit` of the events that are here, each when it is asked for.

        Those that are not asked for stay, and those that arrive meanwhile wait for the next call.

        Args:
            limit: The greatest number of events.
            is_over: Asked after each event; whether to take no further one.
        """
        waiting, self._events = self._events, []
        # The positions have changed; a later event of these nodes is appended.
        self._node_places.clear()
        taken = 0
        try:
            for event in islice(waiting, limit):
                taken += 1
                yield event
                if is_over():
                    return
        finally:
            # In place: a start may have 100,000 events waiting.
            del waiting[:taken]
            waiting += self._events
            self._events = waiting
            self._node_places.clear()
            self._clear_flags_if_empty()

    def _clear_flags_if_empty(self) -> None:
        if not self._events:
            self._arrived.clear()
            self._urgent.clear()

    async def wait(self, timeout_s: float | None) -> None:
        """Return when an event is waiting, after a `wake`, or after `timeout_s`.

        A `wake` ends one wait: without an event, nothing is left that would end the next one.
        """
        await self._arrived.wait(timeout_s)
        self._clear_flags_if_empty()

    async def wait_for_urgent(self, timeout_s: float) -> None:
        """Return when an event that is not a confirmation is waiting, or after `timeout_s`."""
        await self._urgent.wait(timeout_s)

    def _put_node(self, event: NodeSeen) -> None:
        name = event.node.metadata.name
        place = self._node_places.get(name)
        if place is None:
            self._node_places[name] = len(self._events)
            self._events.append(event)
        else:
            self._events[place] = event
