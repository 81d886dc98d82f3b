"""A cheap HTTP client, so that the server is what is measured.

Requests go out on kept connections, the next one when the last is answered; watches and lists are
counted, not decoded.
"""

from __future__ import annotations

import asyncio
import http.client
import threading
import time
from collections.abc import Iterable, Iterator
from functools import partial
from typing import NamedTuple, cast

_HEAD_END = b"\r\n\r\n"
_READ_BYTES = 1 << 20
_JSON = "application/json"


class Address(NamedTuple):
    """Address of the server, and the token to send."""

    host: str
    port: int
    token: str = ""


class LoadError(Exception):
    """A request was refused."""


def request_bytes(
    address: Address, method: str, path: str, body: bytes = b"", content_type: str = _JSON
) -> bytes:
    """A whole HTTP/1.1 request."""
    head = [f"{method} {path} HTTP/1.1", f"Host: {address.host}", f"Accept: {_JSON}"]
    if address.token:
        head.append(f"Authorization: Bearer {address.token}")
    if body:
        head += [f"Content-Type: {content_type}", f"Content-Length: {len(body)}"]
    return "\r\n".join(head).encode() + _HEAD_END + body


class _Connection(asyncio.Protocol):
    """Sends one request after the other from an iterator shared with other connections."""

    def __init__(self, requests: Iterator[bytes], done: asyncio.Future[None]) -> None:
        self._requests = requests
        self._done = done
        self._received = b""
        self._transport: asyncio.Transport | None = None
        self.answered = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._send_next()

    def _send_next(self) -> None:
        request = next(self._requests, None)
        if request is not None and self._transport is not None:
            self._transport.write(request)
            return
        self._finish(None)

    def _finish(self, error: BaseException | None) -> None:
        if self._transport is not None:
            self._transport.close()
        if not self._done.done():
            if error is None:
                self._done.set_result(None)
            else:
                self._done.set_exception(error)

    def data_received(self, data: bytes) -> None:
        self._received += data
        end = self._received.find(_HEAD_END)
        if end < 0:
            return
        head = self._received[:end].lower()
        length = head.partition(b"content-length:")[2].split(b"\r\n", 1)[0]
        total = end + len(_HEAD_END) + int(length or b"0")
        if len(self._received) < total:
            return
        answer, self._received = self._received[:total], self._received[total:]
        if answer[9:10] != b"2":
            self._finish(LoadError(answer[:400].decode(errors="replace")))
            return
        self.answered += 1
        self._send_next()

    def connection_lost(self, exc: Exception | None) -> None:
        self._finish(exc or LoadError("the server closed a connection"))


def _same(connection: _Connection) -> _Connection:
    return connection


async def send_all(address: Address, requests: Iterable[bytes], connections: int = 32) -> int:
    """Send requests over several connections; returns the number of answers.

    Raises:
        LoadError: one was refused.
        OSError: the server is not there.
    """
    loop = asyncio.get_running_loop()
    shared = iter(requests)
    open_: list[_Connection] = []
    waiting: list[asyncio.Future[None]] = []
    for _ in range(connections):
        done: asyncio.Future[None] = loop.create_future()
        connection = _Connection(shared, done)
        await loop.create_connection(partial(_same, connection), *address[:2])
        open_.append(connection)
        waiting.append(done)
    await asyncio.gather(*waiting)
    return sum(connection.answered for connection in open_)


async def _open(address: Address, path: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection(*address[:2], limit=_READ_BYTES)
    writer.write(request_bytes(address, "GET", path))
    head = await reader.readuntil(_HEAD_END)
    if head[9:12] != b"200":
        raise LoadError(head.decode(errors="replace"))
    return reader, writer


async def count_events(
    address: Address, path: str, expected: int, opened: asyncio.Event | None = None
) -> float:
    """Read a watch up to a number of events; returns the seconds from first to last byte.

    Raises:
        LoadError: the watch was refused or ended before.
    """
    reader, writer = await _open(address, path)
    if opened is not None:
        opened.set()
    seen, last, began = 0, b"", 0.0
    try:
        while seen < expected:
            data = await reader.read(_READ_BYTES)
            if not data:
                raise LoadError(f"{path} ended after {seen} events of {expected}")
            began = began or time.monotonic()
            # A line ends an event; the framing of chunks ends with carriage return and line feed.
            joined = last + data
            seen += data.count(b"\n") - joined.count(b"\r\n")
            last = data[-1:]
    finally:
        writer.close()
    return max(time.monotonic() - began, 1e-6)


async def read_list(address: Address, path: str) -> int:
    """Read a chunked list; returns its size in bytes.

    Raises:
        LoadError: it was refused, or cut off.
    """
    reader, writer = await _open(address, path)
    size, tail = 0, b""
    try:
        while not tail.endswith(b"0\r\n\r\n"):
            data = await reader.read(_READ_BYTES)
            if not data:
                raise LoadError(f"{path} was cut off after {size} bytes")
            size += len(data)
            tail = (tail + data)[-8:]
    finally:
        writer.close()
    return size


class LongestWait:
    """Sends a small request again and again in a thread, and keeps the longest response time.

    Args:
        address: Of the server.
        path: Path of the request.
    """

    def __init__(self, address: Address, path: str) -> None:
        self.seconds = 0.0
        self._address = address
        self._path = path
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._ask, daemon=True)

    def __enter__(self) -> LongestWait:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _ask(self) -> None:
        host, port, token = self._address
        connection = http.client.HTTPConnection(host, port, timeout=60)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        while not self._is_over.wait(0.002):
            began = time.monotonic()
            connection.request("GET", self._path, headers=headers)
            connection.getresponse().read()
            self.seconds = max(self.seconds, time.monotonic() - began)
        connection.close()
