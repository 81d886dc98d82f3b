"""What lies between a process and the server: delays, losses, cuts; a session like aiohttp's."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, TypeVar, cast

import aiohttp
import msgspec
from aiohttp.abc import AbstractStreamWriter
from yarl import URL

from stowage.operator.client.connection import Connection
from stowage.operator.client.timeouts import Timeouts
from tests.simulation.loop import VirtualLoop
from tests.simulation.requests import LIST_PATHS, answer_request
from tests.simulation.server import Answer, ModelServer, refusal
from tests.simulation.watch_stream import WatchStream
from tests.simulation.weather import Weather

T = TypeVar("T")

_REASONS = {500: "InternalError", 503: "ServiceUnavailable", 504: "Timeout"}
USUAL_DELAY_S = (0.001, 0.02)


@dataclass(frozen=True, slots=True)
class Ambush:
    """What happens to the world just when a certain request reaches the server.

    Attributes:
        marks: Part of the path of the request, which is a write.
        is_before: Whether it happens before the server acts.
        strike: Makes it happen.
    """

    marks: str
    is_before: bool
    strike: Callable[[], None]


class Network:
    """Carries requests of all processes to one server.

    Args:
        loop: Whose clock counts.
        server: Who answers.
        rng: Draws delays and faults.
        weather: What goes wrong.
        note_write: Told of each process that lets a write out, and of its path.

    Attributes:
        streams: Open watches, oldest first.
        ambushes: What lies in wait.
    """

    def __init__(
        self,
        loop: VirtualLoop,
        server: ModelServer,
        rng: random.Random,
        weather: Weather,
        note_write: Callable[[str, str], None],
    ) -> None:
        self.note_write = note_write
        self.loop = loop
        self.server = server
        self.weather = weather
        self.streams: dict[WatchStream, None] = {}
        self.ambushes: list[Ambush] = []
        self._rng = rng

    def strikes(self, fault: str) -> bool:
        """Whether a kind of fault happens now."""
        probability: float = getattr(self.weather, fault)
        strikes = probability > 0 and self._rng.random() < probability
        self.weather.happened[fault] += strikes
        return strikes

    def any_of(self, things: Sequence[T]) -> T:
        """One of them."""
        return self._rng.choice(things)

    def delay(self) -> float:
        """How long something is on its way."""
        if self.strikes("slow"):
            return self._rng.uniform(1.0, 8.0)
        return self._rng.uniform(*USUAL_DELAY_S)

    def between(self, least: float, most: float) -> float:
        """A number of seconds."""
        return self._rng.uniform(least, most)

    def stall(self) -> float:
        """How long a watch is silent when it stalls."""
        return self._rng.uniform(0.5, 6.0)

    def lose(self, arrived: asyncio.Future[_Response]) -> None:
        """Let no answer come: the connection is reset, or there is silence."""
        if self._rng.random() < 0.5:
            self.loop.call_outside(self.delay(), _reset, arrived)

    def cut_all(self) -> None:
        """End every watch, as a server does that stops."""
        for stream in list(self.streams):
            stream.end(at_once=True)

    def take_ambush(self, method: str, path: str) -> Ambush | None:
        """What was waiting for this request."""
        found = [each for each in self.ambushes if method != "GET" and each.marks in path]
        if not found:
            return None
        self.ambushes.remove(found[0])
        self.weather.happened[f"ambush of {found[0].marks}"] += 1
        return found[0]

    def answer(self, process: str, method: str, url: URL, body: bytes | None) -> Answer:
        """What the server says; errors of its own instead of acting."""
        if self.strikes("error"):
            status = self._rng.choice(tuple(_REASONS))
            return refusal(status, _REASONS[status])
        if self.strikes("too_many"):
            return refusal(429, "TooManyRequests")
        if method in ("POST", "PATCH", "PUT") and self.strikes("conflict"):
            return refusal(409, "Conflict", "Operation cannot be fulfilled")
        if method == "GET" and url.path in LIST_PATHS:
            age = self._rng.randint(1, 12) if self.strikes("stale") else 0
            answer = self.server.list(url.path, url.query, age)
            self.weather.happened["list gone"] += answer.status == 410
            return answer
        answer = answer_request(self.server, process, method, url.path, body)
        self.weather.happened["true conflict"] += answer.status == 409
        return answer


class VirtualConnection:
    """A connection of one process, for whoever wants a `Connection`."""

    server = "http://model"
    host = "model"
    generation = 0

    def __init__(self, process: str, network: Network, timeouts: Timeouts) -> None:
        self.timeouts = timeouts
        self.session = VirtualSession(process, network)

    async def reload(self, _seen_generation: int) -> None:
        """There are no credentials."""

    def drop_idle(self) -> None:
        """Each request has a connection of its own."""

    async def keep_fresh(self) -> None:
        """Nothing runs out."""
        await asyncio.Event().wait()

    async def close(self) -> None:
        """Nothing is open."""


def virtual_connection(process: str, network: Network, timeouts: Timeouts) -> Connection:
    """The connection of a process, as the shell takes it."""
    return cast("Connection", VirtualConnection(process, network, timeouts))


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

    def __init__(
        self, answer: Answer, stream: WatchStream | None = None, is_torn: bool = False
    ) -> None:
        self.status = answer.status
        self.content_type = "application/json"
        is_too_many = answer.status == 429
        self.headers = {"Retry-After": "1"} if is_too_many else {}
        self.content = stream
        self._is_torn = is_torn
        self._body = msgspec.json.encode(answer.body)

    async def read(self) -> bytes:
        """The body.

        Raises:
            aiohttp.ClientPayloadError: the connection was reset before all of it was there.
        """
        if self._is_torn:
            raise aiohttp.ClientPayloadError("Response payload is not completed")
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
        self._stream: WatchStream | None = None

    async def __aenter__(self) -> _Response:
        timeout: aiohttp.ClientTimeout = self._options["timeout"]
        if self._network.weather.is_down or self._network.strikes("refused"):
            await asyncio.sleep(self._network.delay())
            raise aiohttp.ClientConnectionError("connection refused")
        # Connecting takes a while; only then does the body leave, and is the lease asked about.
        await asyncio.sleep(self._network.delay())
        body = await written(self._options.get("data"))
        if self._method != "GET":
            self._network.note_write(self._process, self._url.path)
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
        ambush = network.take_ambush(self._method, self._url.path)
        if ambush is not None and ambush.is_before:
            ambush.strike()
        if network.weather.is_down:
            return
        if "watch" in self._url.query:
            response = self._open_stream()
        else:
            answer = network.answer(self._process, self._method, self._url, body)
            response = _Response(answer, is_torn=network.strikes("torn"))
        if ambush is not None and not ambush.is_before:
            ambush.strike()
        if network.weather.is_down or network.strikes("answer_lost"):
            network.lose(arrived)
        else:
            network.loop.call_outside(network.delay(), _arrive, arrived, response)

    def _open_stream(self) -> _Response:
        silence_s = self._options["timeout"].sock_read
        query = self._url.query
        since = int(query["resourceVersion"])
        lasts_s = float(query.get("timeoutSeconds", "300"))
        self._stream = WatchStream(self._network, self._url.path, query, silence_s)
        if since < self._network.server.compacted:
            self._network.weather.happened["watch gone"] += 1
            gone = {"kind": "Status", "reason": "Expired", "message": "too old", "code": 410}
            self._stream.put({"type": "ERROR", "object": gone})
            self._stream.end()
        else:
            self._stream.replay(since)
            self._network.loop.call_outside(lasts_s, self._stream.end)
        return _Response(Answer(200, {}), self._stream)


async def written(payload: Any) -> bytes | None:
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
