"""Writes without the session of aiohttp: what is sent, what comes back, and what goes wrong."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing, suppress

import aiohttp
import pytest
import uvloop

from stowage.operator.client import direct_writes
from stowage.operator.client.direct_writes import Answer, DirectWrites, Write
from stowage.operator.client.gated_client import LeaseNotHeldError

TIMEOUT = aiohttp.ClientTimeout(total=30, sock_connect=5)
CREATED = (
    b"HTTP/1.1 201 Created\r\nContent-Type: application/json; a=b\r\nContent-Length: 2\r\n\r\n{}"
)


class _Server:
    """Answers each request with the next of its answers; closes the connection instead of b""."""

    def __init__(self, *answers: bytes) -> None:
        self.requests: list[bytes] = []
        self.connections: list[asyncio.Event] = []
        self.ports: list[int] = []
        self.has_request = asyncio.Event()
        self._answers = list(answers)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        closed = asyncio.Event()
        self.connections.append(closed)
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while answer := await self._answer(reader):
                self.ports.append(writer.get_extra_info("peername")[1])
                writer.write(answer)
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
        closed.set()

    async def _answer(self, reader: asyncio.StreamReader) -> bytes:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r")[0])
        self.requests.append(head + await reader.readexactly(length))
        self.has_request.set()
        return self._answers.pop(0) if self._answers else b""


@asynccontextmanager
async def _writes(
    server: _Server, prefix: str = "", headers: dict[str, str] | None = None
) -> AsyncIterator[DirectWrites]:
    listener = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    host, port = listener.sockets[0].getsockname()
    connector = aiohttp.TCPConnector(limit=0)
    try:
        writes = DirectWrites(connector, f"http://{host}:{port}{prefix}", headers or {}, 2**16)
        with closing(writes):
            yield writes
    finally:
        await connector.close()
        listener.close()
        for closed in server.connections:
            await closed.wait()


def _post(path: str = "/x", may_be_sent: Callable[[], None] = lambda: None) -> Write:
    return Write("POST", path, b'{"a":1}', "application/json", may_be_sent)


async def test_a_write_has_the_path_the_headers_and_the_body() -> None:
    server = _Server(CREATED)
    async with _writes(server, "/clusters/%7Ec", {"Authorization": "Bearer t"}) as writes:
        assert await writes.send(_post("/api/v1/pods"), TIMEOUT) == Answer(
            201, "application/json", None, b"{}"
        )
    (request,) = server.requests
    line, *headers = request.decode().split("\r\n")
    assert line == "POST /clusters/%7Ec/api/v1/pods HTTP/1.1"
    assert headers[0].startswith("Host: 127.0.0.1:")
    assert {"Authorization: Bearer t", "Content-Type: application/json"} < set(headers)
    assert headers[-3:] == ["Content-Length: 7", "", '{"a":1}']


async def test_writes_use_one_connection_after_the_other_and_new_headers() -> None:
    server = _Server(CREATED, CREATED)
    async with _writes(server, headers={"Authorization": "Bearer old"}) as writes:
        await writes.send(_post(), TIMEOUT)
        writes.use_headers({"Authorization": "Bearer new"})
        await writes.send(_post(), TIMEOUT)
    assert len(server.connections) == 1
    assert b"Bearer old" in server.requests[0]
    assert b"Bearer new" in server.requests[1]


async def test_lone_writes_use_one_connection_after_writes_at_once_have_opened_several() -> None:
    server = _Server(*[CREATED] * 7)
    async with _writes(server) as writes:
        await asyncio.gather(*(writes.send(_post(), TIMEOUT) for _ in range(4)))
        num_opened = len(server.connections)
        used = {await _port_used(server, writes) for _ in range(3)}
    assert len(server.connections) == num_opened == 4
    assert len(used) == 1


async def _port_used(server: _Server, writes: DirectWrites) -> int:
    await writes.send(_post(), TIMEOUT)
    return server.ports[-1]


@pytest.mark.parametrize("end", ["dropped", "expired", "closed"])
async def test_a_connection_that_has_ended_is_not_used_again(
    end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    closing = CREATED.replace(b"Content-Length", b"Connection: close\r\nContent-Length")
    server = _Server(closing if end == "closed" else CREATED, CREATED)
    if end == "expired":
        monkeypatch.setattr(direct_writes, "KEEPALIVE_S", -1.0)
    async with _writes(server) as writes:
        await writes.send(_post(), TIMEOUT)
        if end == "dropped":
            writes.drop_idle()
        await writes.send(_post(), TIMEOUT)
    assert len(server.connections) == 2


async def test_a_refusal_has_its_status_and_retry_after() -> None:
    refused = b"HTTP/1.1 429 Too Many\r\nRetry-After: 7\r\nContent-Length: 4\r\n\r\nwait"
    async with _writes(_Server(refused)) as writes:
        assert await writes.send(_post(), TIMEOUT) == Answer(429, "", "7", b"wait")


async def test_an_interim_answer_is_not_the_answer() -> None:
    async with _writes(_Server(b"HTTP/1.1 103 Early Hints\r\n\r\n" + CREATED)) as writes:
        assert (await writes.send(_post(), TIMEOUT)).status == 201


async def test_nothing_is_sent_without_the_lease() -> None:
    server = _Server(CREATED)

    def refuse() -> None:
        raise LeaseNotHeldError

    async with _writes(server) as writes:
        with pytest.raises(LeaseNotHeldError):
            await writes.send(_post("/first", refuse), TIMEOUT)
        await writes.send(_post("/second"), TIMEOUT)
    assert [request.split()[1] for request in server.requests] == [b"/second"]


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_write_has_left_this_process_in_the_turn_of_its_last_check(
    new_loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    """Nothing of the client can hold it back after the lease was checked."""
    received: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        # The kernel connects; nobody accepts or reads until the next turn of the loop.
        listener.setblocking(False)

        def receive() -> None:
            accepted, _ = listener.accept()
            with accepted:
                accepted.setblocking(False)
                received.append(accepted.recv(2**16))

        def last_check() -> None:
            asyncio.get_running_loop().call_soon(receive)

        async def send() -> None:
            connector = aiohttp.TCPConnector(limit=0)
            url = f"http://127.0.0.1:{listener.getsockname()[1]}"
            writes = DirectWrites(connector, url, {}, 2**16)
            with pytest.raises((aiohttp.ClientError, OSError)):
                await writes.send(_post("/x", last_check), TIMEOUT)
            await connector.close()

        with asyncio.Runner(loop_factory=new_loop) as runner:
            runner.run(send())
    (request,) = received
    assert request.startswith(b"POST /x HTTP/1.1\r\n")
    assert request.endswith(b'{"a":1}')


HALF = b"HTTP/1.1 201 Created\r\nContent-Length: 9\r\n\r\n{}"


@pytest.mark.parametrize("answer", [b"", HALF, b"no HTTP\r\n\r\n"])
async def test_a_lost_answer_is_an_error_and_its_connection_is_not_used_again(
    answer: bytes,
) -> None:
    server = _Server(answer)
    async with _writes(server) as writes:
        with pytest.raises((aiohttp.ClientError, TimeoutError)):
            await writes.send(_post(), aiohttp.ClientTimeout(total=0.2, sock_connect=5))
        with pytest.raises(aiohttp.ClientError):
            await writes.send(_post(), TIMEOUT)
    assert len(server.connections) == 2


async def test_a_server_that_cannot_be_reached_was_never_reached() -> None:
    connector = aiohttp.TCPConnector()
    writes = DirectWrites(connector, "http://127.0.0.1:1", {}, 2**16)
    with pytest.raises(aiohttp.ClientConnectorError):
        await writes.send(_post(), TIMEOUT)
    await connector.close()


async def test_a_cancelled_write_closes_its_connection() -> None:
    server = _Server(HALF)
    async with _writes(server) as writes:
        sending = asyncio.create_task(writes.send(_post(), TIMEOUT))
        await server.has_request.wait()
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending


@pytest.mark.parametrize("path", ["/a b", "/a\r\nX: y", "/ä"])
async def test_a_path_that_is_not_encoded_is_refused(path: str) -> None:
    server = _Server(CREATED)
    async with _writes(server) as writes:
        with pytest.raises(aiohttp.InvalidURL):
            await writes.send(_post(path), TIMEOUT)
    assert server.requests == []


async def test_a_header_with_a_line_break_is_refused() -> None:
    with pytest.raises(ValueError, match="Authorization"):
        async with _writes(_Server(), headers={"Authorization": "Bearer a\nb"}):
            pass


async def test_no_connection_stays_open_after_the_end() -> None:
    server = _Server(CREATED)
    async with _writes(server) as writes:
        await writes.send(_post(), TIMEOUT)
        writes.close()
        async with asyncio.timeout(30):
            await server.connections[0].wait()


async def test_a_connection_that_takes_too_long_is_an_error_with_the_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def never(*_arguments: object) -> None:
        raise TimeoutError

    connector = aiohttp.TCPConnector()
    monkeypatch.setattr(connector, "connect", never)
    writes = DirectWrites(connector, "http://127.0.0.1:1", {}, 2**16)
    with pytest.raises(
        aiohttp.ConnectionTimeoutError, match=r"^Connection timeout to host http://127\.0\.0\.1:1"
    ):
        await writes.send(_post(), TIMEOUT)
    await connector.close()
