"""A network between a replica and the API server that can fail in one direction.

Each replica has a way of its own: a TCP proxy. While a direction is cut, nothing passes in it and
both ends keep their connections: requests arrive and are not answered, or do not arrive at all.
When the cut ends, the connections on which something was lost are reset, as by a router that has
forgotten them; so no request arrives long after it was sent.

A way writes into each request when it passed (`PASSED_AT`). A server that is busy accepts and reads
requests seconds later, and what a replica sent in time must not count as sent late. Nor must what
waited because this process stood still: it gets the time before that, see `Pulse`.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from stowage_benchmarks.chaos.cluster import REPLICAS, kubeconfig_of
from stowage_benchmarks.chaos.history import PASSED_AT

TO_SERVER, TO_REPLICA = "to the server", "to the replica"
_CHUNK = 256 * 1024
_BEAT_S = 0.02
_STALL_S = 0.1
#: HTTP/1.1 clients send a request when the one before it is answered, so it begins a chunk.
_REQUEST_LINE = re.compile(rb"(?:GET|POST|PUT|PATCH|DELETE) /\S* HTTP/1\.1\r\n")


class Pulse:
    """Knows when the event loop stood still, and since when what it reads then may have waited.

    Args:
        monotonic: Returns monotonic seconds.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._beat_at = monotonic()
        self._stood_from = self._stood_until = 0.0

    async def run(self) -> None:
        """Beat until cancelled."""
        while True:
            self.beat()
            await asyncio.sleep(_BEAT_S)

    def beat(self) -> None:
        """Note that the loop runs now."""
        now = self._monotonic()
        if now - self._beat_at > _STALL_S:
            self._stood_from, self._stood_until = self._beat_at, now
        self._beat_at = now

    def passed_at(self) -> float:
        """Since when data that is read now may have been here, within `_STALL_S`."""
        now = self._monotonic()
        if now - self._beat_at > _STALL_S:
            return self._beat_at
        # The first beat after a stall may come before the data that waited.
        return self._stood_from if now - self._stood_until < _STALL_S else now


class Way:
    """The way of one replica.

    Args:
        host: Of the API server.
        port: Of the API server.

    Attributes:
        port: Where the replica connects.
    """

    def __init__(self, host: str, port: int) -> None:
        self.port = 0
        self._to = host, port
        self._server: asyncio.Server | None = None
        self._pulse = Pulse(time.monotonic)
        self._beating: asyncio.Task[None] | None = None
        self._cut = ""
        self._lossy: set[asyncio.StreamWriter] = set()
        self._open: set[asyncio.StreamWriter] = set()

    @property
    def has_lost(self) -> bool:
        """Whether something was lost since the last time that it was mended."""
        return bool(self._lossy)

    async def open(self) -> None:
        """Listen on a free port."""
        self._beating = asyncio.create_task(self._pulse.run(), name="pulse")
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=256)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Close all connections."""
        if self._beating is not None:
            self._beating.cancel()
        if self._server is not None:
            self._server.close()
        self.mend()
        while self._open:
            for writer in tuple(self._open):
                writer.transport.abort()
            await asyncio.sleep(0)

    def cut(self, direction: str) -> None:
        """Lose everything in one direction from now on."""
        self._cut = direction

    def mend(self) -> None:
        """Let everything pass again, over new connections where something was lost."""
        self._cut = ""
        for writer in tuple(self._lossy):
            writer.transport.abort()
        self._lossy.clear()

    async def _serve(self, near: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        self._open.add(back)
        try:
            with suppress(OSError):
                far, forth = await asyncio.open_connection(*self._to)
                pumps = [
                    asyncio.create_task(self._pump(near, forth, back, TO_SERVER)),
                    asyncio.create_task(self._pump(far, back, back, TO_REPLICA)),
                ]
                try:
                    await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for each in pumps:
                        each.cancel()
                    forth.transport.abort()
        finally:
            # Cancelled, too: `close` waits for the last one.
            self._lossy.discard(back)
            self._open.discard(back)
            back.transport.abort()

    async def _pump(
        self,
        source: asyncio.StreamReader,
        sink: asyncio.StreamWriter,
        back: asyncio.StreamWriter,
        direction: str,
    ) -> None:
        """Pass bytes on until an end closes; those of a cut direction are lost."""
        with suppress(OSError):
            while data := await source.read(_CHUNK):
                if self._cut == direction or back in self._lossy:
                    self._lossy.add(back)
                    continue
                sink.write(
                    stamped(data, self._pulse.passed_at()) if direction == TO_SERVER else data
                )
                await sink.drain()
            while back in self._lossy:  # noqa: ASYNC110 - the other end must not notice
                await asyncio.sleep(0.1)


def stamped(data: bytes, now: float) -> bytes:
    """Bytes on their way to the server, with the time in the head of the request they begin."""
    line = _REQUEST_LINE.match(data)
    if line is None:
        return data
    return b"%s%s: %.6f\r\n%s" % (line[0], PASSED_AT.encode(), now, data[line.end() :])


class Ways:
    """The ways of all replicas."""

    def __init__(self) -> None:
        self._by_replica: dict[str, Way] = {}

    async def open(self, directory: Path) -> None:
        """Open a way for each replica, and lead its kubeconfig to it."""
        for name in REPLICAS:
            path = kubeconfig_of(directory, name)
            text = path.read_text()
            url = next(word for word in text.split() if word.strip("\"',").startswith("http"))
            server = urlsplit(url.strip("\"',"))
            way = Way(server.hostname or "", server.port or 0)
            await way.open()
            path.write_text(text.replace(f":{server.port}", f":{way.port}"))
            self._by_replica[name] = way

    async def close(self) -> None:
        """Close all ways."""
        for way in self._by_replica.values():
            await way.close()

    async def cut_for(self, replica: str, direction: str, seconds: float) -> None:
        """Cut one direction of a replica's way for a while."""
        way = self._by_replica[replica]
        way.cut(direction)
        try:
            await asyncio.sleep(seconds)
        finally:
            way.mend()
