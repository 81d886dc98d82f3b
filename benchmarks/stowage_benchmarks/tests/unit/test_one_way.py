"""A way fails in one direction only, and loses what was sent meanwhile."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from simcluster import write_kubeconfig
from stowage_benchmarks.chaos.cluster import REPLICAS, kubeconfig_of
from stowage_benchmarks.chaos.history import PASSED_AT
from stowage_benchmarks.chaos.one_way import TO_REPLICA, TO_SERVER, Pulse, Way, Ways, stamped

# The aborted connections are collected after their loop.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

WAIT_S = 20.0
GONE = (ConnectionError, asyncio.IncompleteReadError)


class Echo:
    """A server that answers each line with itself, and remembers what it got."""

    def __init__(self) -> None:
        self.got: list[bytes] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer until the client closes."""
        while line := await reader.readline():
            self.got.append(line)
            writer.write(line)
        writer.close()

    async def has_got(self, line: bytes) -> None:
        """Return once a line has arrived."""
        async with asyncio.timeout(WAIT_S):
            while line not in self.got:  # noqa: ASYNC110 - the server does not notify
                await asyncio.sleep(0.01)


@asynccontextmanager
async def _way() -> AsyncIterator[tuple[Echo, Way]]:
    echo = Echo()
    server = await asyncio.start_server(echo.serve, "127.0.0.1", 0)
    way = Way("127.0.0.1", server.sockets[0].getsockname()[1])
    await way.open()
    yield echo, way
    await way.close()
    server.close()


async def _has_lost(way: Way) -> None:
    """Return once something was lost."""
    async with asyncio.timeout(WAIT_S):
        while not way.has_lost:  # noqa: ASYNC110 - the proxy does not notify
            await asyncio.sleep(0.01)


async def _connect(way: Way) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", way.port)


async def _answer(way: Way, line: bytes) -> bytes:
    reader, writer = await _connect(way)
    writer.write(line)
    async with asyncio.timeout(WAIT_S):
        found = await reader.readline()
    writer.close()
    return found


async def test_requests_arrive_and_answers_do_not() -> None:
    async with _way() as (echo, way):
        reader, writer = await _connect(way)
        writer.write(b"before\n")
        assert await reader.readline() == b"before\n"
        way.cut(TO_REPLICA)
        writer.write(b"lost\n")
        await echo.has_got(b"lost\n")
        await _has_lost(way)
        way.mend()
        with pytest.raises(GONE):
            await asyncio.wait_for(reader.readexactly(1), WAIT_S)
        writer.close()
        assert await _answer(way, b"after\n") == b"after\n"


async def test_requests_do_not_arrive_not_even_late() -> None:
    async with _way() as (echo, way):
        reader, writer = await _connect(way)
        way.cut(TO_SERVER)
        writer.write(b"lost\n")
        await writer.drain()
        await _has_lost(way)
        way.mend()
        with pytest.raises(GONE):
            await asyncio.wait_for(reader.readexactly(1), WAIT_S)
        writer.close()
        assert await _answer(way, b"after\n") == b"after\n"
        assert echo.got == [b"after\n"]


def test_a_request_gets_the_time_when_it_passed_and_nothing_else_is_changed() -> None:
    head = b"PATCH /api/v1/namespaces/default/pods/p/status HTTP/1.1\r\n"
    rest = b"Host: h\r\nContent-Length: 2\r\n\r\n{}"
    assert stamped(head + rest, 12.5) == head + f"{PASSED_AT}: 12.500000\r\n".encode() + rest
    for part_of_a_body in (rest, b"PATCH /of/a/body", b""):
        assert stamped(part_of_a_body, 12.5) == part_of_a_body


def test_what_waited_for_a_stalled_loop_gets_the_time_before_the_stall() -> None:
    now = [100.0]
    pulse = Pulse(lambda: now[0])
    now[0] = 103.0
    assert pulse.passed_at() == 100.0
    pulse.beat()
    now[0] = 103.01
    assert pulse.passed_at() == 100.0


def test_without_a_stall_a_request_gets_the_present_time() -> None:
    now = [100.0]
    pulse = Pulse(lambda: now[0])
    for at in (100.02, 100.06, 103.0, 103.02, 103.05, 103.08, 103.15):
        now[0] = at
        pulse.beat()
    now[0] = 103.17
    assert pulse.passed_at() == 103.17


async def test_the_time_is_that_of_this_machine() -> None:
    begin = time.monotonic()
    async with _way() as (echo, way):
        assert await _answer(way, b"GET / HTTP/1.1\r\n") == b"GET / HTTP/1.1\r\n"
        await echo.has_got(b"GET / HTTP/1.1\r\n")
        (passed_at,) = [float(line.split()[1]) for line in echo.got[1:]]
        assert begin - 1e-6 <= passed_at <= time.monotonic()


async def test_a_way_can_be_closed_after_its_connections_were_cancelled() -> None:
    """As when SIGTERM ends a run: all tasks are cancelled before the way is closed."""
    async with _way() as (_, way):
        assert await _answer(way, b"first\n") == b"first\n"
        reader, writer = await _connect(way)
        writer.write(b"second\n")
        assert await reader.readline() == b"second\n"
        serving = [
            task
            for task in asyncio.all_tasks()
            if "Way._serve" in getattr(task.get_coro(), "__qualname__", "")
        ]
        assert serving
        for task in serving:
            task.cancel()
        async with asyncio.timeout(WAIT_S):
            await way.close()
        writer.close()


async def test_every_replica_gets_a_way_of_its_own(tmp_path: Path) -> None:
    for name in REPLICAS:
        write_kubeconfig(kubeconfig_of(tmp_path, name), "http://127.0.0.1:1")
    ways = Ways()
    await ways.open(tmp_path)
    texts = {kubeconfig_of(tmp_path, name).read_text() for name in REPLICAS}
    await ways.close()
    assert len(texts) == len(REPLICAS)
    assert not any("127.0.0.1:1\n" in text for text in texts)
