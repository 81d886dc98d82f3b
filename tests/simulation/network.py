"""The network between processes and the server, with delays, losses and cuts."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Callable, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from functools import lru_cache
from types import TracebackType
from typing import Any, TypeVar, cast
from urllib.parse import unquote_plus

import aiohttp
import msgspec
from aiohttp.abc import AbstractStreamWriter
from yarl import URL

from stowage.operator.client.connection import Connection
from stowage.operator.client.outage_log import OutageLog, SilentOutages
from stowage.operator.client.timeouts import Timeouts
from tests.simulation.fault_rates import FaultRates
from tests.simulation.loop import VirtualLoop
from tests.simulation.requests import LIST_PATHS, answer_request
from tests.simulation.server import Answer, ModelServer, refusal
from tests.simulation.watch_stream import WatchStream

T = TypeVar("T")

_EMPTY = Answer(200, {})
_REASONS = {500: "InternalError", 503: "ServiceUnavailable", 504: "Timeout"}
USUAL_DELAY_S = (0.001, 0.02)
_LEAST_S, _SPREAD_S = USUAL_DELAY_S[0], USUAL_DELAY_S[1] - USUAL_DELAY_S[0]


@dataclass(frozen=True, slots=True)
class WriteHook:
    """A callback that runs when a certain write arrives at the server.

    Attributes:
        path_part: Part of the path of the write.
        is_before: Whether it runs before the server acts, or after.
        run: The callback.
    """

    path_part: str
    is_before: bool
    run: Callable[[], None]


class Network:
    """Carries the requests of all processes to one server.

    Args:
        loop: The event loop.
        server: Answers the requests.
        rng: Draws delays and faults.
        fault_rates: The probability of each fault.
        note_write: Called with the process, the path and the body of each write that leaves a
            process.

    Attributes:
        streams: Open watches, oldest first.
        write_hooks: Callbacks that wait for a write.
    """

    def __init__(
        self,
        loop: VirtualLoop,
        server: ModelServer,
        rng: random.Random,
        fault_rates: FaultRates,
        note_write: Callable[[str, str, bytes], None],
    ) -> None:
        self.note_write = note_write
        self.loop = loop
        self.server = server
        self.fault_rates = fault_rates
        self.streams: dict[WatchStream, None] = {}
        self.write_hooks: list[WriteHook] = []
        self._rng = rng

    def injects(self, fault: str) -> bool:
        """Whether a fault of this kind happens now; counts it.

        A rate of 0 draws nothing. Where thousands of messages pass, callers look at the rate first.
        """
        probability: float = getattr(self.fault_rates, fault)
        happens = probability > 0 and self._rng.random() < probability
        if happens:
            self.fault_rates.happened[fault] += 1
        return happens

    def choose(self, things: Sequence[T]) -> T:
        """A random one of the choices."""
        return self._rng.choice(things)

    def delay(self) -> float:
        """How long a message is in flight."""
        if self.fault_rates.slow and self.injects("slow"):
            return self._rng.uniform(1.0, 8.0)
        return _LEAST_S + _SPREAD_S * self._rng.random()  # as rng.uniform draws it

    def between(self, least: float, most: float) -> float:
        """A random number of seconds."""
        return self._rng.uniform(least, most)

    def stall(self) -> float:
        """How long a watch is silent when it stalls."""
        return self._rng.uniform(0.5, 6.0)

    def lose_answer(self, arrived: asyncio.Future[_Response]) -> None:
        """Lose an answer: reset the connection, or stay silent."""
        if self._rng.random() < 0.5:
            self.loop.call_outside(self.delay(), _reset, arrived)

    def cut_watches(self) -> None:
        """End every watch, as a server does when it stops."""
        for stream in list(self.streams):
            stream.end(at_once=True)

    def take_write_hook(self, method: str, path: str) -> WriteHook | None:
        """Remove and return the hook that waits for this write."""
        if not self.write_hooks:
            return None
        found = [each for each in self.write_hooks if method != "GET" and each.path_part in path]
        if not found:
            return None
        self.write_hooks.remove(found[0])
        self.fault_rates.happened[f"write hook at {found[0].path_part}"] += 1
        return found[0]

    def answer(self, process: str, method: str, url: URL, body: bytes | None) -> Answer:
        """The server's answer, or an injected error."""
        rates = self.fault_rates
        if rates.error and self.injects("error"):
            status = self._rng.choice(tuple(_REASONS))
            return refusal(status, _REASONS[status])
        if rates.too_many and self.injects("too_many"):
            return refusal(429, "TooManyRequests")
        if rates.conflict and method in ("POST", "PATCH", "PUT") and self.injects("conflict"):
            return refusal(409, "Conflict", "Operation cannot be fulfilled")
        if method == "GET" and url.path in LIST_PATHS:
            age = self._rng.randint(1, 12) if rates.stale and self.injects("stale") else 0
            answer = self.server.list(url.path, query_of(url), age)
            self.fault_rates.happened["list gone"] += answer.status == 410
            return answer
        answer = answer_request(self.server, process, method, url.path, body)
        self.fault_rates.happened["true conflict"] += answer.status == 409
        return answer


class VirtualConnection:
    """A connection of one process, with the interface of `Connection`."""

    server = "http://model"
    host = "model"
    generation = 0
    direct_writes = None

    def __init__(self, process: str, network: Network, timeouts: Timeouts) -> None:
        self.timeouts = timeouts
        self.outages: OutageLog = SilentOutages()
        self.session = VirtualSession(process, network)

    def log_outages(self, monotonic: Callable[[], float]) -> None:
        """Log from now on that the server does not answer."""
        self.outages = OutageLog(self.host, monotonic)

    async def reload(self, _seen_generation: int) -> None:
        """Do nothing: there are no credentials."""

    def drop_idle(self) -> None:
        """Do nothing: each request has its own connection."""

    async def keep_fresh(self) -> None:
        """Do nothing: no credentials expire."""
        await asyncio.Event().wait()

    async def close(self) -> None:
        """Do nothing: no connection stays open."""


def virtual_connection(process: str, network: Network, timeouts: Timeouts) -> Connection:
    """The connection of a process, typed as the shell expects it."""
    return cast("Connection", VirtualConnection(process, network, timeouts))


class VirtualSession:
    """The part of ``aiohttp.ClientSession`` that the shell uses."""

    def __init__(self, process: str, network: Network) -> None:
        self._process = process
        self._network = network

    def request(self, method: str, url: URL, **options: Any) -> _Request:
        """Send one request."""
        return _Request(self._process, self._network, method, url, options)

    def get(self, url: URL, **options: Any) -> _Request:
        """Send a GET; the query says whether it is a watch."""
        return self.request("GET", url, **options)


class _Response:
    """The part of ``aiohttp.ClientResponse`` that the shell uses."""

    def __init__(
        self, answer: Answer, stream: WatchStream | None = None, is_torn: bool = False
    ) -> None:
        self.status = answer.status
        self.content_type = "application/json"
        is_too_many = answer.status == 429
        self.headers = {"Retry-After": "1"} if is_too_many else {}
        self.content = stream
        self._is_torn = is_torn
        self._answer = answer

    async def read(self) -> bytes:
        """The body.

        Raises:
            aiohttp.ClientPayloadError: the connection was reset before all of it was there.
        """
        if self._is_torn:
            raise aiohttp.ClientPayloadError("Response payload is not completed")
        return msgspec.json.encode(self._answer.body)


class _Collecting:
    """A writer that collects the bytes."""

    def __init__(self) -> None:
        self.written = b""

    async def write(self, chunk: bytes) -> None:
        """Append the bytes."""
        self.written += chunk


class _Request:
    """A request in flight; the server handles it even if the process ends.

    Only a request whose answer does not come in time sets a timer for its timeout: the network
    knows it beforehand, and a timer for each request costs more than most answers.
    """

    def __init__(
        self, process: str, network: Network, method: str, url: URL, options: dict[str, Any]
    ) -> None:
        self._process = process
        self._network = network
        self._method = method
        self._url = url
        self._options = options
        self._stream: WatchStream | None = None
        self._deadline = 0.0
        self._context = copy_context()
        self._is_late = False

    async def __aenter__(self) -> _Response:
        timeout: aiohttp.ClientTimeout = self._options["timeout"]
        network, loop = self._network, self._network.loop
        if "resourceVersionMatch" in self._url.raw_query_string:
            # This server never goes back: the answer would take only random numbers.
            return _Response(_EMPTY)
        rates = network.fault_rates
        if rates.is_down or (rates.refused and network.injects("refused")):
            await asyncio.sleep(network.delay())
            raise aiohttp.ClientConnectionError("connection refused")
        # Connecting takes time. The lease is checked after it, when the body leaves.
        await asyncio.sleep(network.delay())
        body = await written(self._options.get("data"))
        if self._method != "GET":
            network.note_write(self._process, self._url.path, body or b"")
        arrived: asyncio.Future[_Response] = loop.create_future()
        self._deadline = loop.time() + (timeout.total or timeout.sock_read or math.inf)
        if rates.lost and network.injects("lost"):
            network.lose_answer(arrived)
            self._set_timeout(arrived)
        else:
            self._send(network.delay(), arrived, self._deliver_request, body, arrived)
        response = await arrived
        if self._is_late:
            raise TimeoutError
        return response

    def _send(
        self,
        delay_s: float,
        arrived: asyncio.Future[_Response],
        deliver: Callable[..., None],
        *what: object,
    ) -> None:
        """Let the request or its answer arrive later."""
        loop = self._network.loop
        loop.call_outside(delay_s, deliver, *what)
        if loop.time() + delay_s >= self._deadline:
            self._set_timeout(arrived)

    def _set_timeout(self, arrived: asyncio.Future[_Response]) -> None:
        """Let the process see that no answer came in time, unless the process is stopped."""
        deadline = max(self._deadline, self._network.loop.time())
        self._network.loop.call_at(deadline, self._time_out, arrived, context=self._context)

    def _time_out(self, arrived: asyncio.Future[_Response]) -> None:
        # A process that was stopped sees its timeout first, and then the answer.
        self._is_late = True
        if not arrived.done():
            arrived.set_exception(TimeoutError())

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        if self._stream is not None:
            self._stream.close()

    def _deliver_request(self, body: bytes | None, arrived: asyncio.Future[_Response]) -> None:
        """Let the request arrive at the server."""
        network = self._network
        hook = network.take_write_hook(self._method, self._url.path)
        if hook is not None and hook.is_before:
            hook.run()
        rates = network.fault_rates
        if rates.is_down:
            self._set_timeout(arrived)
            return
        if "watch=" in self._url.raw_query_string:
            response = self._open_stream()
        else:
            answer = network.answer(self._process, self._method, self._url, body)
            response = _Response(answer, is_torn=bool(rates.torn) and network.injects("torn"))
        if hook is not None and not hook.is_before:
            hook.run()
        if rates.is_down or (rates.answer_lost and network.injects("answer_lost")):
            network.lose_answer(arrived)
            self._set_timeout(arrived)
        else:
            self._send(network.delay(), arrived, _deliver_response, arrived, response)

    def _open_stream(self) -> _Response:
        silence_s = self._options["timeout"].sock_read
        query = query_of(self._url)
        since = int(query["resourceVersion"])
        lasts_s = float(query.get("timeoutSeconds", "300"))
        self._stream = WatchStream(self._network, self._url.path, query, silence_s)
        if since < self._network.server.compacted:
            self._network.fault_rates.happened["watch gone"] += 1
            gone = {"kind": "Status", "reason": "Expired", "message": "too old", "code": 410}
            self._stream.put({"type": "ERROR", "object": gone})
            self._stream.end()
        else:
            self._stream.replay(since)
            self._network.loop.call_outside(lasts_s, self._stream.end)
        return _Response(_EMPTY, self._stream)


def query_of(url: URL) -> dict[str, str]:
    """The query of a request, whose parameters have different names.

    Parsing it with yarl costs more than most answers: each watch has a resource version of its own.
    """
    parts = (part.partition("=") for part in url.raw_query_string.split("&"))
    return {
        name: _unquoted(text) if "%" in text or "+" in text else text for name, _, text in parts
    }


_unquoted = lru_cache(maxsize=256)(unquote_plus)


async def written(payload: Any) -> bytes | None:
    """The request body; raises what aiohttp raises if the payload refuses to be sent."""
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


def _deliver_response(arrived: asyncio.Future[_Response], response: _Response) -> None:
    # The waiting task may have been cancelled.
    if not arrived.done():
        arrived.set_result(response)
