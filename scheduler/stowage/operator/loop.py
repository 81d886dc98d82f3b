"""The loop: take what arrived, schedule a little, let I/O have its turn."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from stowage.engine import Engine
from stowage.operator.dispatcher import Dispatcher
from stowage.operator.inbox import Inbox

MAX_EVENTS_AT_ONCE = 1_000
"""A first list may bring 150,000 events; in between, I/O gets its turn."""

GATHER_S = 0.001
"""Kopf delivers pod by pod: what comes within this of the first is taken in at one go."""


class LoopOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How the loop shares its time.

    Attributes:
        slice_s: Scheduling goes on no longer than this before I/O gets its turn.
        pods_per_call: How many pods one call of the engine may try.
        max_unfinished_bindings: Scheduling pauses while more pods are on their way; a server that
            cannot keep up is not outrun.
    """

    slice_s: float = 0.004
    pods_per_call: int = 4
    max_unfinished_bindings: int = 512


class SchedulingLoop:
    """Drives the engine.

    Args:
        engine: The pure core.
        inbox: What arrives.
        dispatcher: Where instructions go.
        may_schedule: Whether caches are filled and the lease is ours.
        monotonic: The clock.
        options: How time is shared.
    """

    def __init__(
        self,
        engine: Engine,
        inbox: Inbox,
        dispatcher: Dispatcher,
        may_schedule: Callable[[], bool],
        monotonic: Callable[[], float],
        options: LoopOptions,
    ) -> None:
        self._engine = engine
        self._inbox = inbox
        self._dispatcher = dispatcher
        self._may_schedule = may_schedule
        self._monotonic = monotonic
        self._options = options
        self._is_stopping = False

    async def run(self) -> None:
        """Go on until `stop`."""
        while not self._is_stopping:
            if self.turn():
                await asyncio.sleep(0)
            else:
                await self._inbox.wait(self._idle_s())
                await asyncio.sleep(GATHER_S)

    def stop(self) -> None:
        """Pop no more pods; `run` returns soon."""
        self._is_stopping = True
        self._inbox.wake()

    def turn(self) -> bool:
        """Take events and schedule for one slice; whether there is more to do at once."""
        self._take_events()
        if self._can_schedule():
            self._schedule()
        return len(self._inbox) > 0 or self._can_schedule()

    def _take_events(self) -> None:
        events = self._inbox.drain(MAX_EVENTS_AT_ONCE)
        now = self._monotonic()
        deadline = self._engine.next_deadline()
        if events or (deadline is not None and deadline <= now):
            self._dispatcher.dispatch(self._engine.handle(events, now))

    def _schedule(self) -> None:
        ends_at = self._monotonic() + self._options.slice_s
        while True:
            now = self._monotonic()
            instructions = self._engine.schedule(now, self._options.pods_per_call)
            self._dispatcher.dispatch(instructions)
            if now >= ends_at or not self._can_schedule():
                return

    def _can_schedule(self) -> bool:
        return (
            self._engine.has_ready_pods()
            and self._dispatcher.num_unfinished_bindings < self._options.max_unfinished_bindings
            and self._may_schedule()
        )

    def _idle_s(self) -> float | None:
        """How long nothing needs to be done unless something arrives."""
        deadline = self._engine.next_deadline()
        return None if deadline is None else max(0.0, deadline - self._monotonic())
