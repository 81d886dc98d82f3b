"""A proxy between a scheduler and its API server that loses, delays, corrupts and cuts messages.

It implements the part of HTTP that it needs: heads, lengths and chunks. It is independent of both
sides. The server has answered every request that the proxy loses.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from random import Random
from urllib.parse import urlsplit

_GONE = (ConnectionError, asyncio.IncompleteReadError, TimeoutError)
_READ_LIMIT = 2**24
_STATUSES = (b"429 Too Many Requests", b"500 X", b"503 X", b"504 X")


@dataclass(frozen=True)
class Rates:
    """The probability of each fault for a request, or for a chunk of a watch.

    Attributes:
        lost: The server has answered, and the connection is reset before the answer.
        lost_binding: The same, for a Binding.
        refused: The proxy answers 429, 500, 503 or 504 without asking the server.
        spoilt: The server has answered, and the client gets 504.
        delayed: The request or the answer is delayed by up to `longest_delay_s`.
        cut: The stream ends in the middle of a chunk.
    """

    lost: float = 0.03
    lost_binding: float = 0.25
    refused: float = 0.05
    spoilt: float = 0.03
    delayed: float = 0.08
    longest_delay_s: float = 3.0
    cut: float = 0.003


@dataclass(frozen=True)
class _Head:
    lines: bytes
    length: int
    is_chunked: bool

    @property
    def first(self) -> str:
        return self.lines.partition(b"\r\n")[0].decode()


class LossyProxy:
    """Forwards requests, with one server connection for each client connection.

    Args:
        server: URL of the API server; plain HTTP.
        random: Draws the faults.

    Attributes:
        rates: The probabilities of faults; None means no faults.
        hits: How often each fault happened.
    """

    def __init__(self, server: str, random: Random) -> None:
        self.rates: Rates | None = None
        self.hits: Counter[str] = Counter()
        self._host, self._port = urlsplit(server).hostname, urlsplit(server).port
        self._random = random
        self._listening: asyncio.Server | None = None
        self._own_port = 0
        self._open: set[asyncio.StreamWriter] = set()
        self._serving: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        """The URL of the proxy."""
        return f"http://127.0.0.1:{self._own_port}"

    async def start(self) -> None:
        """Listen, always on the same port."""
        self._listening = await asyncio.start_server(
            self._accept, "127.0.0.1", self._own_port, limit=_READ_LIMIT
        )
        self._own_port = self._listening.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Refuse connections and reset open ones."""
        if self._listening is not None:
            self._listening.close()
        for writer in tuple(self._open):
            writer.transport.abort()

    async def be_away(self, seconds: float) -> None:
        """Refuse connections for a while."""
        self.hits["away"] += 1
        await self.stop()
        await asyncio.sleep(seconds)
        await self.start()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        # The loop keeps no reference to the task.
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        upstream: asyncio.StreamWriter | None = None
        with suppress(*_GONE):
            answers, upstream = await asyncio.open_connection(
                self._host, self._port, limit=_READ_LIMIT
            )
            while True:
                head = await _read_head(reader)
                body = await reader.readexactly(head.length)
                await self._pass(head, body, _Way(answers, upstream, writer))
        for each in (writer, upstream):
            if each is not None:
                each.transport.abort()
        self._open.discard(writer)

    async def _pass(self, head: _Head, body: bytes, way: _Way) -> None:
        """Forward one request and its answer.

        Raises:
            ConnectionError: The request was lost.
        """
        is_binding = head.first.startswith("POST") and "/binding " in head.first
        rates = self.rates
        if rates is not None and self._happens("refused", rates.refused):
            status = self._random.choice(_STATUSES)
            way.client.write(
                b"HTTP/1.1 " + status + b"\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n"
            )
            return
        await self._delay(rates)
        way.server.write(head.lines + body)
        answer = await _read_head(way.answers)
        if answer.is_chunked and "watch=" in head.first:
            await self._stream(answer, way)
            return
        content = await _read_body(answer, way.answers)
        await self._delay(rates)
        if rates is not None:
            lost = rates.lost_binding if is_binding else rates.lost
            if self._happens("binding lost" if is_binding else "lost", lost):
                raise ConnectionResetError
            if self._happens("spoilt", rates.spoilt):
                way.client.write(b"HTTP/1.1 504 X\r\nContent-Length: 0\r\n\r\n")
                return
        way.client.write(answer.lines + content)

    async def _stream(self, head: _Head, way: _Way) -> None:
        way.client.write(head.lines)
        while True:
            chunk = await _read_chunk(way.answers)
            if self.rates is not None and self._happens("cut", self.rates.cut):
                way.client.write(chunk[: len(chunk) // 2])
                await way.client.drain()
                raise ConnectionResetError
            way.client.write(chunk)
            await way.client.drain()
            if chunk == b"0\r\n\r\n":
                return

    async def _delay(self, rates: Rates | None) -> None:
        if rates is not None and self._happens("delayed", rates.delayed / 2):
            await asyncio.sleep(self._random.random() * rates.longest_delay_s)

    def _happens(self, name: str, rate: float) -> bool:
        if self._random.random() >= rate:
            return False
        self.hits[name] += 1
        return True


@dataclass(frozen=True)
class _Way:
    answers: asyncio.StreamReader
    server: asyncio.StreamWriter
    client: asyncio.StreamWriter


async def _read_head(reader: asyncio.StreamReader) -> _Head:
    lines = await reader.readuntil(b"\r\n\r\n")
    fields = dict(
        line.lower().partition(b":")[::2] for line in lines.split(b"\r\n")[1:] if b":" in line
    )
    length = int(fields.get(b"content-length", b"0"))
    return _Head(lines, length, b"chunked" in fields.get(b"transfer-encoding", b""))


async def _read_body(head: _Head, reader: asyncio.StreamReader) -> bytes:
    if not head.is_chunked:
        return await reader.readexactly(head.length)
    chunks: list[bytes] = []
    while not chunks or chunks[-1] != b"0\r\n\r\n":
        chunks.append(await _read_chunk(reader))
    return b"".join(chunks)


async def _read_chunk(reader: asyncio.StreamReader) -> bytes:
    size = await reader.readuntil(b"\r\n")
    return size + await reader.readexactly(int(size.partition(b";")[0], 16) + 2)


@asynccontextmanager
async def lossy_proxy(server: str, seed: int) -> AsyncIterator[LossyProxy]:
    """A proxy before an API server, initially without faults."""
    proxy = LossyProxy(server, Random(f"{seed} proxy"))
    await proxy.start()
    try:
        yield proxy
    finally:
        await proxy.stop()
