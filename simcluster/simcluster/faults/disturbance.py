"""Answers spoilt on purpose: cut off in the middle, out of date, or with events sent again."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable

from aiohttp import web

from simcluster.faults.faults import FaultRule, Faults
from simcluster.store.watch import ByteSink

_SINK: web.RequestKey[Callable[[ByteSink], ByteSink]] = web.RequestKey("sink", Callable)  # type: ignore[arg-type]
_REMEMBERED_EVENTS = 64
_MAX_EVENTS_BEFORE_CUT = 40
_HELD_FOR_S = 0.5
"""The longest an event waits for one to overtake it."""
_BOOKMARK = b'{"type":"BOOKMARK"'


class DisturbedSink:
    """The body of a watch that breaks off within an event, or says things again.

    A rule that is dropped meanwhile leaves the rest of the stream alone.

    Args:
        request: whose connection is closed.
        faults: says whether the rule is still in force.
        rule: what goes wrong.
        sink: where the frames go.
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
        """Send frames, or part of them.

        Raises:
            ConnectionResetError: this is where the stream was cut.
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
        """The event and one that waits for it; nothing if it is to wait for the next."""
        is_bookmark = event.startswith(_BOOKMARK)
        if self._held:
            pair = [event, self._released()]
            # A bookmark says that everything before it has been sent.
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
    """Let a rule have its way with the answer of a request, should that be a stream."""
    request[_SINK] = lambda sink: DisturbedSink(request, faults, rule, sink)


def sink_of(request: web.BaseRequest, sink: ByteSink) -> ByteSink:
    """Where the frames of a watch go: `sink`, unless its request is to be disturbed."""
    disturbed = request.get(_SINK)
    return sink if disturbed is None else disturbed(sink)


def as_of_before(request: web.BaseRequest, revision: int, revisions_behind: int) -> web.BaseRequest:
    """A list request that asks for an earlier state; any other request as it is.

    One that names a resourceVersion keeps it: it would not be answered with less.
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
    """Send half of an answer and close the connection; a stream has been cut by its sink."""
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
