"""Disturbed answers: cut off in the middle, out of date, or with repeated or reordered events."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable

from aiohttp import web

from simcluster.faults.faults import FaultRule, Faults
from simcluster.store.watch import ByteSink

_SINK: web.RequestKey[Callable[[ByteSink], ByteSink]] = web.RequestKey("sink", Callable)  # type: ignore[arg-type]  # mypy wants a class
_REMEMBERED_EVENTS = 64
_MAX_EVENTS_BEFORE_CUT = 40
_HELD_FOR_S = 0.5
"""The longest time that an event is held back to be reordered."""
_BOOKMARK = b'{"type":"BOOKMARK"'


class DisturbedSink:
    """The body of a watch that is cut within an event, or repeats or reorders events.

    Once its rule is dropped, the rest of the stream is sent unchanged.

    Args:
        request: whose connection is closed.
        faults: has the rule while it is in force.
        rule: the faults.
        sink: takes the frames.
    """

    def __init__(
        self, request: web.BaseRequest, faults: Faults, rule: FaultRule, sink: ByteSink
    ) -> None:
        self._request = request
        self._faults = faults
        self._rule = rule
        self._sink = sink
        self._recent: deque[bytes] = deque(maxlen=_REMEMBERED_EVENTS)
        self._events_left = int(faults.chance() * _MAX_EVENTS_BEFORE_CUT)
        self._held = b""
        self._release: asyncio.Task[None] | None = None

    async def write(self, data: bytes) -> None:
        """Send frames, or a part of them.

        Raises:
            ConnectionResetError: the stream was cut.
        """
        if not self._faults.is_in_force(self._rule):
            await self._sink.write(self._released() + data)
            return
        sent: list[bytes] = []
        for event in data.splitlines(keepends=True):
            if self._rule.is_cut and self._events_left <= 0:
                await self._sink.write(b"".join((*sent, event[: len(event) // 2])))
                _close(self._request)
                raise ConnectionResetError("cut by a fault")
            self._events_left -= 1
            sent += self._in_order(event)
            sent += self._repeated(event)
        if sent:
            await self._sink.write(b"".join(sent))

    def _in_order(self, event: bytes) -> list[bytes]:
        """The event and the one held back before it; nothing if the event is held back itself."""
        is_bookmark = event.startswith(_BOOKMARK)
        if self._held:
            pair = [event, self._released()]
            # All events before a bookmark must be sent before it.
            return pair[::-1] if is_bookmark else pair
        if is_bookmark or self._faults.chance() >= self._rule.reorder_rate:
            return [event]
        self._held = event
        self._release = asyncio.create_task(self._release_alone())
        return []

    def _released(self) -> bytes:
        held, self._held = self._held, b""
        if self._release is not None:
            self._release.cancel()
            self._release = None
        return held

    async def _release_alone(self) -> None:
        await asyncio.sleep(_HELD_FOR_S)
        held, self._held = self._held, b""
        self._release = None
        with contextlib.suppress(ConnectionError):
            await self._sink.write(held)

    def _repeated(self, event: bytes) -> list[bytes]:
        if event.startswith(_BOOKMARK):
            return []
        self._recent.append(event)
        if self._held or self._faults.chance() >= self._rule.repeat_rate:
            return []
        return [self._recent[int(self._faults.chance() * len(self._recent))]]


def disturb_stream(request: web.BaseRequest, faults: Faults, rule: FaultRule) -> None:
    """Apply a rule to the answer of a request, if that is a stream."""
    request[_SINK] = lambda sink: DisturbedSink(request, faults, rule, sink)


def sink_of(request: web.BaseRequest, sink: ByteSink) -> ByteSink:
    """The sink for the frames of a watch: `sink`, or a disturbed one around it."""
    disturbed = request.get(_SINK)
    return sink if disturbed is None else disturbed(sink)


def as_of_before(request: web.BaseRequest, revision: int, revisions_behind: int) -> web.BaseRequest:
    """A list request changed to ask for an earlier state; any other request unchanged.

    A list request with a resourceVersion is not changed: an older answer would violate it.
    """
    query = request.query
    if not revisions_behind or "watch" in query or "continue" in query:
        return request
    if query.get("resourceVersion", "0") not in {"", "0"}:
        return request
    earlier = str(max(1, revision - revisions_behind))
    at = {"resourceVersion": earlier, "resourceVersionMatch": "Exact"}
    return request.clone(rel_url=request.rel_url.update_query(at))


async def cut_short(request: web.BaseRequest, answer: web.StreamResponse) -> web.StreamResponse:
    """Send half of an answer and close the connection; streams are cut by their sinks."""
    if not isinstance(answer, web.Response) or answer.prepared:
        return answer
    body = answer.body if isinstance(answer.body, bytes) else b""
    part = web.StreamResponse(status=answer.status, headers=answer.headers)
    part.content_length = len(body)
    with contextlib.suppress(ConnectionError):
        await part.prepare(request)
        await part.write(body[: len(body) // 2])
    _close(request)
    return part


def _close(request: web.BaseRequest) -> None:
    if request.transport is not None:
        request.transport.close()
