"""The scheduling loop: handle events, schedule for a few milliseconds, yield to I/O."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence

import msgspec

from stowage.api.instructions import Instruction
from stowage.engine import Engine
from stowage.operator.dispatcher import Dispatcher
from stowage.operator.inbox import Inbox

MAX_EVENTS_AT_ONCE = 1_000
"""Limit of events per turn: a first list may bring 150,000, and I/O must not wait for all."""

GATHER_S = 0.001
"""In a rush, events within this time of the first are handled together."""

RUSH_S = 0.004
"""Two wake-ups within this time are a rush; an event that comes alone is handled at once."""

CONFIRMATION_S = 0.05
"""How long events that only confirm the engine's own work wait for others; see `Inbox`.

Each decision is made after all events that have arrived.
"""

INSTRUCTIONS_PER_STEP = 16
"""Instructions that are dispatched in one step; a pod group may bring thousands at once."""


class LoopOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of the scheduling loop.

    Attributes:
        slice_s: Time for scheduling before the loop yields to I/O. If the handling of events takes
            longer, scheduling waits for the next turn. Work in steps that has not ended by then
            goes on in the next turn, before new events: an event that moves many pods, or an
            attempt that has several steps.
        events_slice_s: Time for handling events before the loop yields to I/O.
        pods_per_call: Maximum number of pods per call of the engine.
        max_unfinished_bindings: Scheduling pauses while this many bindings are unfinished, so that
            the queue of bindings stays bounded if the API server is slow.
    """

    slice_s: float = 0.004
    events_slice_s: float = 0.01
    pods_per_call: int = 4
    max_unfinished_bindings: int = 512


class SchedulingLoop:
    """Drives the engine.

    Args:
        engine: The engine.
        inbox: Holds the events for the engine.
        dispatcher: Carries out the engine's instructions.
        may_schedule: Whether the caches have synced and this replica holds the lease.
        monotonic: Returns monotonic seconds.
        options: Limits of the loop.
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
        self._owes_scheduling = False
        self._unfinished: Iterator[None] | None = None

    async def run(self) -> None:
        """Run until `stop`."""
        turned_at = -RUSH_S
        while not self._is_stopping:
            if self.turn():
                await asyncio.sleep(0)
            else:
                await self._wait()
                now = self._monotonic()
                if now - turned_at < RUSH_S:
                    await asyncio.sleep(GATHER_S)
                turned_at = now
        await self._finish()

    async def _wait(self) -> None:
        """Wait for an event or the engine's next deadline.

        Confirmations wait for another event, unless scheduling waits for bindings to finish.
        """
        idle_s = self._idle_s()
        await self._inbox.wait(idle_s)
        is_urgent = self._inbox.is_urgent or self._engine.has_ready_pods()
        if len(self._inbox) > 0 and not is_urgent:
            limit_s = CONFIRMATION_S if idle_s is None else min(CONFIRMATION_S, idle_s)
            await self._inbox.wait_for_urgent(limit_s)

    def stop(self) -> None:
        """Schedule no more pods; `run` returns after the current turn."""
        self._is_stopping = True
        self._inbox.wake()

    async def _finish(self) -> None:
        """Carry out what has been decided, and handle the confirmations that waited.

        So their pods' Events are written before the process ends. Steps of the engine that have not
        ended are dropped: nothing of them has left the engine.
        """
        if self._engine.is_in_steps:
            return
        for _ in self._unfinished or ():
            await asyncio.sleep(0)
        for _ in self._handle_events(lambda: False):
            pass

    def turn(self) -> bool:
        """Handle events and schedule for one slice; returns whether more work is waiting.

        If the events took long, I/O comes first, and the next turn only schedules. What the slice
        before left unfinished comes first: events wait for it.
        """
        is_over = self._ends_after(self._options.slice_s)
        if not self._go_on(is_over):
            return True
        if not self._owes_scheduling:
            events = self._handle_events(self._ends_after(self._options.events_slice_s))
            if not self._start(events, is_over) or is_over():
                self._owes_scheduling = True
                return True
        self._owes_scheduling = False
        is_unfinished = self._can_schedule() and self._schedule()
        return len(self._inbox) > 0 or is_unfinished

    def _start(self, work: Iterator[None], is_over: Callable[[], bool]) -> bool:
        """Begin work in steps; returns whether it has ended before the time was over."""
        self._unfinished = work
        return self._go_on(is_over)

    def _go_on(self, is_over: Callable[[], bool]) -> bool:
        """Take steps of the work that is unfinished; returns whether none is left."""
        if self._unfinished is not None:
            for _ in self._unfinished:
                if is_over():
                    return False
            self._unfinished = None
        return True

    def _handle_events(self, is_over: Callable[[], bool]) -> Iterator[None]:
        """Handle the events that are here, or as many of them as there is time for."""
        now = self._monotonic()
        if len(self._inbox) > 0 or self._is_due(now):
            events = self._inbox.take(MAX_EVENTS_AT_ONCE, is_over)
            instructions = yield from self._engine.handling_steps(events, now)
            yield from self._dispatch(instructions)

    def _attempt_pods(self, is_over: Callable[[], bool]) -> Iterator[None]:
        """Call the engine once to schedule; it sees no event until its last step."""
        now, budget = self._monotonic(), self._options.pods_per_call
        instructions = yield from self._engine.scheduling_steps(now, budget, is_over)
        yield from self._dispatch(instructions)

    def _dispatch(self, instructions: Sequence[Instruction]) -> Iterator[None]:
        for first in range(0, len(instructions), INSTRUCTIONS_PER_STEP):
            if first > 0:
                yield
            self._dispatcher.dispatch(instructions[first : first + INSTRUCTIONS_PER_STEP])

    def _ends_after(self, seconds: float) -> Callable[[], bool]:
        """A function that returns whether so much time has passed since."""
        ends_at = self._monotonic() + seconds
        return lambda: self._monotonic() >= ends_at

    def _is_due(self, now: float) -> bool:
        deadline = self._engine.next_deadline()
        return deadline is not None and deadline <= now

    def _schedule(self) -> bool:
        """Schedule for one slice; returns whether more can be scheduled."""
        is_over = self._ends_after(self._options.slice_s)
        while self._start(self._attempt_pods(is_over), is_over):
            if not self._can_schedule():
                return False
            if is_over():
                return True
        return True

    def _can_schedule(self) -> bool:
        return (
            self._engine.has_ready_pods()
            and self._dispatcher.num_unfinished_bindings < self._options.max_unfinished_bindings
            and self._may_schedule()
        )

    def _idle_s(self) -> float | None:
        """Seconds until the engine's next deadline; None if it has none."""
        deadline = self._engine.next_deadline()
        return None if deadline is None else max(0.0, deadline - self._monotonic())
