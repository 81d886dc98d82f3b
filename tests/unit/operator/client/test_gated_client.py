"""The client sends no write without the lease, not even one that waited or was connecting."""

from __future__ import annotations

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from stowage.operator.client.api_client import ApiClient, Request, SentRequest
from stowage.operator.client.gated_client import GatedClient, LeaseNotHeldError
from stowage.operator.client.outage_log import OutageLog
from stowage.operator.client.rate_limit import TokenBucket
from stowage.operator.client.timeouts import Timeouts
from tests.support.fake_api import FakeTime


class _Connection:
    """A connection that most tests do not use: they record requests before these reach it."""

    generation = 0
    direct_writes = None
    timeouts = Timeouts()
    outages = OutageLog("example")

    def __init__(
        self, server: str = "http://example", session: aiohttp.ClientSession | None = None
    ) -> None:
        self.server = server
        self.session = session


@pytest.fixture
def sent_methods(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    methods: list[str] = []

    async def send(_self: ApiClient, request: Request) -> bytes:
        methods.append(request.method)
        return b"{}"

    monkeypatch.setattr(ApiClient, "_request_once", send)
    return methods


def _client(may_write: bool, bucket: TokenBucket | None = None) -> GatedClient:
    return GatedClient(_Connection(), lambda: may_write, bucket)  # type: ignore[arg-type]


async def test_reads_and_writes_are_sent_with_the_lease(sent_methods: list[str]) -> None:
    client = _client(may_write=True)
    await client.get("/x")
    await client.post("/x", b"")
    assert sent_methods == ["GET", "POST"]


async def test_only_reads_are_sent_without_the_lease(sent_methods: list[str]) -> None:
    client = _client(may_write=False)
    await client.get("/x")
    for write in (client.post, client.put, client.patch):
        with pytest.raises(LeaseNotHeldError, match="does not hold the lease"):
            await write("/x", b"")
    assert sent_methods == ["GET"]


async def test_a_lease_lost_while_waiting_for_the_rate_limit_stops_the_write(
    sent_methods: list[str],
) -> None:
    time = FakeTime()
    client = GatedClient(
        _Connection(),  # type: ignore[arg-type]
        lambda: time.now < 1000.1,
        TokenBucket(1, 1, time.clock),
    )
    await client.post("/x", b"")
    with pytest.raises(LeaseNotHeldError):
        await client.post("/x", b"")
    assert sent_methods == ["POST"]


async def test_the_wait_for_the_rate_limit_and_the_size_of_the_body_are_observed() -> None:
    time = FakeTime()
    delays: list[tuple[str, float]] = []
    requests: list[SentRequest] = []
    async with TestServer(_echo()) as server, aiohttp.ClientSession() as session:
        client = GatedClient(
            _Connection(str(server.make_url("")).rstrip("/"), session),  # type: ignore[arg-type]
            lambda: True,
            TokenBucket(1, 1, time.clock),
            requests.append,
            lambda method, delay_s: delays.append((method, delay_s)),
        )
        await client.post("/x", b"12345")
        await client.post("/x", b"123456789")
    assert delays == [("POST", 0.0), ("POST", 1.0)]
    assert [(sent.num_sent, sent.num_received) for sent in requests] == [(5, 2), (9, 2)]
    assert [sent.code for sent in requests] == ["200", "200"]


def _echo() -> web.Application:
    async def answer(_request: web.Request) -> web.Response:
        return web.json_response({})

    app = web.Application()
    app.router.add_post("/x", answer)
    return app


async def test_a_request_without_the_lease_is_not_retried() -> None:
    assert not LeaseNotHeldError().is_transient


async def test_not_even_headers_are_sent_if_the_lease_is_lost_while_connecting() -> None:
    arrived: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        arrived.append(await request.text())
        return web.json_response({})

    app = web.Application()
    app.router.add_post("/x", answer)
    # The client checks the lease twice: first early, then just before it sends the bytes.
    answers = iter([True, True, True, False])
    async with TestServer(app) as server, aiohttp.ClientSession() as session:
        connection = _Connection(str(server.make_url("")).rstrip("/"), session)
        client = GatedClient(connection, lambda: next(answers))  # type: ignore[arg-type]
        await client.post("/x", b"first")
        with pytest.raises(aiohttp.ClientConnectionError, match="LeaseNotHeld"):
            await client.post("/x", b"second")
    assert arrived == ["first"]


def test_a_write_without_the_lease_has_no_status_of_the_server() -> None:
    error = LeaseNotHeldError()
    assert (error.status, error.reason) == (0, "LeaseNotHeld")
    assert "does not hold the lease any more" in str(error)
