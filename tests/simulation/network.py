"""What lies between a process and the server: delays, losses, cuts; a session like aiohttp's."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, cast

import aiohttp
import msgspec
from aiohttp.abc import AbstractStreamWriter
from yarl import URL

from scheduler.operator.connection import Connection
from scheduler.operator.patience import Patience
from tests.simulation.loop import VirtualLoop
from tests.simulation.server import (
    Answer,
    Change,
    Json,
    ModelServer,
    field_matcher,
    refusal,
    watch_events,
)

_REASONS = {500: "InternalError", 503: "ServiceUnavailable", 504: "Timeout"}
USUAL_DELAY_S = (0.001, 0.02)


@dataclass(slots=True)
class Weather:
    """What goes wrong at present: a probability for each kind of fault.

    Attributes:
        refused: A connection is refused: nothing was sent.
        lost: The request is lost on its way.
        answer_lost: The server acts, and its answer is lost.
        error: The server answers 500, 503 or 504 without acting.
        too_many: The server answers 429, with Retry-After or without.
        conflict: The server answers 409 without acting.
        slow: Request or answer takes seconds.
        cut: A watch is cut in the middle of a line, at an event.
        repeated: A watch event comes twice.
        stalled: A watch event, and all after it, comes late by seconds.
        stale: A list shows an older state.
        is_down: Nothing gets through at all.
        happened: How often each kind of fault struck.
    """

    refused: float = 0.0
    lost: float = 0.0
    answer_lost: float = 0.0
    error: float = 0.0
    too_many: float = 0.0
    conflict: float = 0.0
    slow: float = 0.0
    cut: float = 0.0
    repeated: float = 0.0
    stalled: float = 0.0
    stale: float = 0.0
    is_down: bool = False
    happened: Counter[str] = field(default_factory=Counter)

    def calm(self) -> None:
        """Nothing goes wrong any more."""
        for name in FAULTS:
            setattr(self, name, 0.0)
        self.is_down = False


FAULTS = (
    "refused",
    "lost",
    "answer_lost",
    "error",
    "too_many",
    "conflict",
    "slow",
    "cut",
    "repeated",
    "stalled",
    "stale",
)


class Network:
    """Carries requests of all processes to one server.

    Args:
        loop: Whose clock counts.
        server: Who answers.
        rng: Draws delays and faults.
        weather: What goes wrong.
        note_binding: Told of each process that lets a Binding out.
    """

    def __init__(
        self,
        loop: VirtualLoop,
        server: ModelServer,
        rng: random.Random,
        weather: Weather,
        note_binding: Callable[[str], None],
    ) -> None:
        self.note_binding = note_binding
        self.loop = loop
        self.server = server
        self.weather = weather
        #: Open watches, oldest first.
        self.streams: dict[_Stream, None] = {}
        self._rng = rng

    def strikes(self, fault: str) -> bool:
        """Whether a kind of fault happens now."""
        probability: float = getattr(self.weather, fault)
        strikes = probability > 0 and self._rng.random() < probability
        self.weather.happened[fault] += strikes
        return strikes

    def delay(self) -> float:
        """How long something is on its way."""
        if self.strikes("slow"):
            return self._rng.uniform(1.0, 8.0)
        return self._rng.uniform(*USUAL_DELAY_S)

    def stall(self) -> float:
        """How long a watch is silent when it stalls."""
        return self._rng.uniform(0.5, 6.0)

    def age(self) -> int:
        """How many changes old a list is."""
        return self._rng.randint(1, 12) if self.strikes("stale") else 0

    def lose(self, arrived: asyncio.Future[_Response]) -> None:
        """Let no answer come: the connection is reset, or there is silence."""
        if self._rng.random() < 0.5:
            self.loop.call_outside(self.delay(), _reset, arrived)

    def cut_all(self) -> None:
        """End every watch, as a server does that stops."""
        for stream in list(self.streams):
            stream.end(at_once=True)

    def answer(self, process: str, method: str, url: URL, body: bytes | None) -> Answer:
        """What the server says; errors of its own instead of acting."""
        if self.strikes("error"):
            status = self._rng.choice(tuple(_REASONS))
            return refusal(status, _REASONS[status])
        if self.strikes("too_many"):
            return refusal(429, "TooManyRequests")
        if method == "POST" and self.strikes("conflict"):
            return refusal(409, "Conflict", "Operation cannot be fulfilled")
        if method == "GET" and "/namespaces/" not in url.path:
            return Answer(
                200, self.server.list(url.path, url.query.get("fieldSelector", ""), self.age())
            )
        return self.server.answer(process, method, url.path, body)


class VirtualConnection:
    """A connection of one process, for whoever wants a `Connection`."""

    server = "http://model"
    host = "model"
    generation = 0

    def __init__(self, process: str, network: Network, patience: Patience) -> None:
        self.patience = patience
        self.session = VirtualSession(process, network)

    async def reload(self, _seen_generation: int) -> None:
        """There are no credentials."""

    async def keep_fresh(self) -> None:
        """Nothing runs out."""
        await asyncio.Event().wait()

    async def close(self) -> None:
        """Nothing is open."""


def virtual_connection(process: str, network: Network, patience: Patience) -> Connection:
    """The connection of a process, as the shell takes it."""
    return cast("Connection", VirtualConnection(process, network, patience))


class VirtualSession:
    """As much of ``aiohttp.ClientSession`` as the shell uses."""

    def __init__(self, process: str, network: Network) -> None:
        self._process = process
        self._network = network

    def request(self, method: str, url: URL, **options: Any) -> _Request:
        """Send one request."""
        return _Request(self._process, self._network, method, url, options)

    def get(self, url: URL, **options: Any) -> _Request:
        """GET; a watch if the query says so."""
        return self.request("GET", url, **options)


class _Response:
    """As much of ``aiohttp.ClientResponse`` as the shell uses."""

    def __init__(self, answer: Answer, stream: _Stream | None = None) -> None:
        self.status = answer.status
        is_too_many = answer.status == 429
        self.headers = {"Retry-After": "1"} if is_too_many else {}
        self.content = stream
        self._body = msgspec.json.encode(answer.body)

    async def read(self) -> bytes:
        """The body."""
        return self._body


class _Collecting:
    """A writer that keeps what is written."""

    def __init__(self) -> None:
        self.written = b""

    async def write(self, chunk: bytes) -> None:
        """Keep it."""
        self.written += chunk


class _Request:
    """A request on its way; the server's side of it goes on whatever becomes of the process."""

    def __init__(
        self, process: str, network: Network, method: str, url: URL, options: dict[str, Any]
    ) -> None:
        self._process = process
        self._network = network
        self._method = method
        self._url = url
        self._options = options
        self._stream: _Stream | None = None

    async def __aenter__(self) -> _Response:
        timeout: aiohttp.ClientTimeout = self._options["timeout"]
        if self._network.weather.is_down or self._network.strikes("refused"):
            await asyncio.sleep(self._network.delay())
            raise aiohttp.ClientConnectionError("connection refused")
        # Connecting takes a while; only then does the body leave, and is the lease asked about.
        await asyncio.sleep(self._network.delay())
        body = await _written(self._options.get("data"))
        if self._url.path.endswith("/binding"):
            self._network.note_binding(self._process)
        arrived: asyncio.Future[_Response] = self._network.loop.create_future()
        if self._network.strikes("lost"):
            self._network.lose(arrived)
        else:
            self._network.loop.call_outside(self._network.delay(), self._reach, body, arrived)
        async with asyncio.timeout(timeout.total or timeout.sock_read):
            return await arrived

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        if self._stream is not None:
            self._stream.close()

    def _reach(self, body: bytes | None, arrived: asyncio.Future[_Response]) -> None:
        """The request is at the server."""
        network = self._network
        if network.weather.is_down:
            return
        if "watch" in self._url.query:
            response = self._open_stream()
        else:
            response = _Response(network.answer(self._process, self._method, self._url, body))
        if network.strikes("answer_lost"):
            network.lose(arrived)
        else:
            network.loop.call_outside(network.delay(), _arrive, arrived, response)

    def _open_stream(self) -> _Response:
        silence_s = self._options["timeout"].sock_read
        query = self._url.query
        since = int(query["resourceVersion"])
        lasts_s = float(query.get("timeoutSeconds", "300"))
        self._stream = _Stream(self._network, self._url.path, query, silence_s)
        if since < self._network.server.compacted:
            gone = {"kind": "Status", "reason": "Expired", "message": "too old", "code": 410}
            self._stream.put({"type": "ERROR", "object": gone})
            self._stream.end()
        else:
            self._stream.replay(since)
            self._network.loop.call_outside(lasts_s, self._stream.end)
        return _Response(Answer(200, {}), self._stream)


class _Stream:
    """A watch: what the server has sent and the client has not read."""

    def __init__(self, network: Network, path: str, query: Any, silence_s: float) -> None:
        self._network = network
        self._path = path
        self._matches = field_matcher(query.get("fieldSelector", ""))
        self._silence_s = silence_s
        self._chunks: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._arrives_at = 0.0
        self._has_ended = False
        self._unsubscribe = network.server.subscribe(self._take)
        network.streams[self] = None

    def replay(self, since: int) -> None:
        """Send what happened after a revision."""
        for change in self._network.server.history:
            if change.revision > since:
                self._take(change)

    def put(self, event: Json) -> None:
        """Send one event, after all that were sent before it."""
        if self._has_ended:
            return
        network, line = self._network, msgspec.json.encode(event) + b"\n"
        late_s = network.stall() if network.strikes("stalled") else 0.0
        self._send(line, late_s)
        if network.strikes("repeated"):
            self._send(line, 0.0)
        if network.strikes("cut"):
            self._send(line[: len(line) // 2], 0.0)
            self.end()

    def end(self, at_once: bool = False) -> None:
        """Send no more; what is on its way still arrives, unless the server is gone at once."""
        if not self._has_ended:
            self._has_ended = True
            if at_once:
                self._chunks.put_nowait(None)
            else:
                self._send(None, 0.0)
            self.close()

    def close(self) -> None:
        """Nobody reads any more."""
        self._has_ended = True
        self._network.streams.pop(self, None)
        with suppress(ValueError):
            self._unsubscribe()

    async def iter_any(self) -> AsyncIterator[bytes]:
        """Chunks as they come."""
        while True:
            async with asyncio.timeout(self._silence_s):
                chunk = await self._chunks.get()
            if chunk is None:
                return
            yield chunk

    def _take(self, change: Change) -> None:
        if change.path == self._path:
            for event in watch_events(change, self._matches):
                self.put(event)

    def _send(self, chunk: bytes | None, late_s: float) -> None:
        loop = self._network.loop
        # Never at the same instant: timers of one instant run in no particular order.
        at_earliest = self._arrives_at + 1e-6
        self._arrives_at = max(at_earliest, loop.time() + self._network.delay() + late_s)
        delay_s = self._arrives_at - loop.time()
        loop.call_outside(delay_s, self._chunks.put_nowait, chunk)


async def _written(payload: Any) -> bytes | None:
    """The body as it leaves, or the refusal to send it, as aiohttp reports it."""
    if payload is None or isinstance(payload, bytes):
        return payload
    writer = _Collecting()
    try:
        await payload.write_with_length(cast("AbstractStreamWriter", writer), None)
    except Exception as error:
        raise aiohttp.ClientConnectionError(repr(error)) from error
    return writer.written


def _reset(arrived: asyncio.Future[_Response]) -> None:
    if not arrived.done():
        arrived.set_exception(aiohttp.ServerDisconnectedError())


def _arrive(arrived: asyncio.Future[_Response], response: _Response) -> None:
    # Who waited may have given up.
    if not arrived.done():
        arrived.set_result(response)
