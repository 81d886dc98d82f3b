"""A watch as a client reads it: events late, repeated, out of order, or cut in the middle."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from contextvars import Context, copy_context
from typing import TYPE_CHECKING

import msgspec

from tests.simulation.loop import OUTSIDE
from tests.simulation.server import Change, Json, field_matcher, watch_events

if TYPE_CHECKING:
    from tests.simulation.network import Network

REORDERED_WITHIN_S = 0.5
"""Longest time that a reordered event waits for an event to overtake it."""
REMEMBERED = 5


class WatchStream:
    """Events that the server has sent and the client has not read.

    Args:
        network: Decides about delays and faults.
        path: Path of the list.
        query: Query of the request.
        silence_s: Read timeout of the client.
    """

    def __init__(
        self, network: Network, path: str, query: Mapping[str, str], silence_s: float
    ) -> None:
        self._network = network
        self._path = path
        self._matches = field_matcher(query.get("fieldSelector", ""))
        self._silence_s = silence_s
        self._chunks: deque[bytes | None] = deque()
        self._reader: asyncio.Future[None] | None = None
        self._context: Context | None = None
        self._silent_at = 0.0
        self._is_guarded = False
        self._was_silent = False
        self._arrives_at = 0.0
        self._has_ended = False
        self._held = b""
        self._sent: deque[bytes] = deque(maxlen=REMEMBERED)
        self._unsubscribe = network.server.subscribe(self._send_change, path)
        network.streams[self] = None

    def replay(self, since: int) -> None:
        """Send the changes after a revision."""
        # Each change makes one revision.
        for change in self._network.server.history[since:]:
            if change.path == self._path:
                self._send_change(change)

    def put(self, event: Json) -> None:
        """Send one event after all earlier ones, unless a fault reorders it."""
        if self._has_ended:
            return
        network, line = self._network, msgspec.json.encode(event) + b"\n"
        rates = network.fault_rates
        late_s = network.stall() if rates.stalled and network.injects("stalled") else 0.0
        if rates.reordered and not self._held and network.injects("reordered"):
            self._held = line
            network.loop.call_outside(REORDERED_WITHIN_S, self._release)
            return
        # The overtaken events follow at once: they are late, not lost.
        self._send(line + self._held, late_s)
        self._held = b""
        self._sent.append(line)
        if rates.repeated and network.injects("repeated"):
            self._send(line, 0.0)
        if rates.replayed and network.injects("replayed"):
            self._send(network.choose(self._sent), 0.0)
        if rates.cut and network.injects("cut"):
            self._send(line[: len(line) // 2], 0.0)
            self.end()

    def end(self, at_once: bool = False) -> None:
        """End the stream; events in flight still arrive, unless the server stopped."""
        if not self._has_ended:
            self._has_ended = True
            if at_once:
                self._arrive(None)
            else:
                self._send(None, 0.0)
            self.close()

    def close(self) -> None:
        """Close the stream: the client has stopped reading."""
        self._has_ended = True
        self._network.streams.pop(self, None)
        with suppress(ValueError):
            self._unsubscribe()

    async def readany(self) -> bytes:
        """The next chunk, when it has arrived; empty at the end."""
        if not self._chunks:
            loop = self._network.loop
            reader = self._reader = loop.create_future()
            if self._context is None:
                self._context = copy_context()
            self._silent_at = loop.time() + self._silence_s
            if not self._is_guarded:
                self._guard()
            await reader
            if self._was_silent:
                raise TimeoutError
        return self._chunks.popleft() or b""

    def _guard(self) -> None:
        """Look whether the reader still waits when its timeout has passed.

        One timer for many chunks: a timer for each chunk costs more than most chunks.
        """
        self._is_guarded = True
        self._network.loop.call_at(self._silent_at, self._end_silence, context=OUTSIDE)

    def _end_silence(self) -> None:
        self._is_guarded = False
        reader, loop = self._reader, self._network.loop
        if reader is None or reader.done():
            return
        if loop.time() < self._silent_at:
            self._guard()
        else:
            # The process does not see it while it is stopped.
            loop.call_soon(self._time_out, reader, context=self._context)

    def _time_out(self, reader: asyncio.Future[None]) -> None:
        # A process that was stopped sees its timeout first, and then the chunk.
        self._was_silent = True
        if not reader.done():
            reader.set_exception(TimeoutError())

    def _arrive(self, chunk: bytes | None) -> None:
        """Let a chunk arrive at the client."""
        self._chunks.append(chunk)
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    def _release(self) -> None:
        """Send the held-back events."""
        line, self._held = self._held, b""
        if line and not self._has_ended:
            self._send(line, 0.0)

    def _send_change(self, change: Change) -> None:
        for event in watch_events(change, self._matches):
            self.put(event)

    def _send(self, chunk: bytes | None, late_s: float) -> None:
        loop = self._network.loop
        # Each event gets its own time, because timers of one instant have no fixed order.
        at_earliest = self._arrives_at + 1e-6
        self._arrives_at = max(at_earliest, loop.time() + self._network.delay() + late_s)
        delay_s = self._arrives_at - loop.time()
        loop.call_outside(delay_s, self._arrive, chunk)
