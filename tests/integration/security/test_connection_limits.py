"""The HTTPS server limits the connections of hostile clients."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from simcluster.tests.support.timeouts import WAIT_TIMEOUT_S
from stowage.operator.decisions.records import DecisionIds
from stowage.operator.decisions.store import DecisionStore
from stowage.operator.serving.connection_limits import ConnectionLimits
from stowage.operator.serving.delegated_access import AccessOptions, DelegatedAccess
from stowage.operator.serving.health import Checks
from stowage.operator.serving.server import Content, Server, ServingOptions
from stowage.operator.serving.tls_options import CIPHER_SUITES, TlsOptions
from tests.support.fake_api import FakeApiClient, FakeTime
from tests.support.integration.authority import Authority

Connected = tuple[asyncio.StreamReader, asyncio.StreamWriter]
CLIENTS: list[Connected] = []


@pytest.fixture(autouse=True)
async def _close_clients() -> AsyncIterator[None]:
    yield
    while CLIENTS:
        _, writer = CLIENTS.pop()
        writer.transport.abort()
        with suppress(OSError):
            await writer.wait_closed()


@asynccontextmanager
async def serving(
    client: FakeApiClient | None = None, limits: ConnectionLimits | None = None, **tls: Any
) -> AsyncIterator[Server]:
    content = Content(
        metrics=lambda: b"m 1\n",
        resource_metrics=lambda: b"",
        configz=dict,
        dump=lambda: {"nodes": {}},
        decisions=DecisionStore(DecisionIds("p")),
        checks=Checks(health={}, live={}, ready={}, ready_notes=list),
    )
    access = DelegatedAccess(
        client or FakeApiClient(post=[{"status": {"allowed": False}}]),
        AccessOptions(),
        FakeTime().monotonic,
    )
    options = ServingOptions(bind_address="127.0.0.1", port=0, tls=TlsOptions(**tls))
    server = Server(options, content, access, limits)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


def client_context(change: Callable[[ssl.SSLContext], object] | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if change is not None:
        change(context)
    return context


async def connect(server: Server, context: ssl.SSLContext | None = None) -> Connected:
    client = await asyncio.open_connection(
        "127.0.0.1", server.port, ssl=context or client_context(), limit=2**20
    )
    CLIENTS.append(client)
    return client


async def ask(connected: Connected, path: str, head: str = "", method: str = "GET") -> bytes:
    """Send a request; returns the first line of the answer."""
    reader, writer = connected
    writer.write(f"{method} {path} HTTP/1.1\r\nHost: x\r\n{head}\r\n".encode())
    await writer.drain()
    return await asyncio.wait_for(reader.readline(), WAIT_TIMEOUT_S)


async def is_closed(connected: Connected) -> bool:
    try:
        return await asyncio.wait_for(connected[0].read(), WAIT_TIMEOUT_S) == b""
    except OSError:
        return True


async def connect_with_retries(server: Server) -> Connected:
    """Connect; tries again when the server closes the connection during the TLS handshake."""
    while True:
        with suppress(OSError):
            return await connect(server)


async def is_answered(server: Server) -> bool:
    """Whether the server answers; false if it closed the connection before the request."""
    try:
        return await ask(await connect_with_retries(server), "/healthz") == b"HTTP/1.1 200 OK\r\n"
    except OSError:
        return False


async def test_a_connection_with_an_incomplete_request_is_closed() -> None:
    async with serving(limits=ConnectionLimits(max_idle_s=0.05)) as server:
        slow = await connect_with_retries(server)
        slow[1].write(b"GET /healthz HTTP/1.1\r\nX-Slow: ")
        assert await is_closed(slow)
        while not await is_answered(server):
            pass


async def test_an_idle_connection_is_closed() -> None:
    async with serving(limits=ConnectionLimits(max_idle_s=0.05)) as server:
        assert await is_closed(await connect_with_retries(server))


async def test_the_oldest_idle_connections_are_closed_at_the_connection_limit() -> None:
    async with serving(limits=ConnectionLimits(max_connections=3)) as server:
        idle = [await connect(server) for _ in range(6)]
        assert await ask(await connect(server), "/healthz") == b"HTTP/1.1 200 OK\r\n"
        assert [await is_closed(each) for each in idle[:4]] == [True] * 4


async def test_a_request_head_of_one_megabyte_is_refused() -> None:
    async with serving() as server:
        answer = await ask(await connect(server), "/healthz", f"X-Large: {'x' * 2**20}\r\n")
        assert b" 400 " in answer


async def test_the_server_answers_without_reading_the_request_body() -> None:
    async with serving() as server:
        head = f"Content-Length: {2**40}\r\n"
        client = await connect(server)
        assert b" 200 " in await ask(client, "/healthz", head)
        assert b" 405 " in await ask(await connect(server), "/healthz", head, "POST")


async def test_anonymous_clients_can_read_only_the_health_paths() -> None:
    async with serving() as server:
        paths = {route.resource.canonical for route in server.app.router.routes()}  # type: ignore[union-attr]
        answers = {path: await ask(await connect(server), path) for path in paths}
        opened = {path for path, answer in answers.items() if b" 403 " not in answer}
        assert opened == {"/healthz", "/livez", "/readyz"}
        assert {"/metrics", "/metrics/resources", "/configz", "/debug/queue", "/version"} <= paths


async def test_requests_are_refused_while_the_api_server_is_unreachable() -> None:
    async with serving(FakeApiClient(post=[ConnectionResetError()])) as server:
        assert b" 500 " in await ask(await connect(server), "/metrics")
        token = "Authorization: Bearer t\r\n"
        assert b" 401 " in await ask(await connect(server), "/metrics", token)


async def test_tls_versions_below_the_minimum_are_refused() -> None:
    def old(context: ssl.SSLContext) -> None:
        context.maximum_version = ssl.TLSVersion.TLSv1_2

    async with serving(min_version="VersionTLS13") as server:
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await connect(server, client_context(old))
        assert b" 200 " in await ask(await connect(server), "/healthz")


async def test_only_the_configured_cipher_suites_are_accepted() -> None:
    def old(context: ssl.SSLContext) -> None:
        context.maximum_version = ssl.TLSVersion.TLSv1_2

    suite = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"
    async with serving(cipher_suites=(suite, "TLS_AES_128_GCM_SHA256")) as server:
        connected = await connect(server, client_context(old))
        assert connected[1].get_extra_info("cipher")[0] == CIPHER_SUITES[suite]

        def other(context: ssl.SSLContext) -> None:
            old(context)
            context.set_ciphers("ECDHE-ECDSA-CHACHA20-POLY1305")

        with pytest.raises((ssl.SSLError, ConnectionError)):
            await connect(server, client_context(other))


def test_openssl_knows_every_cipher_suite() -> None:
    for suite in CIPHER_SUITES:
        TlsOptions(cipher_suites=(suite,)).context()


async def test_a_client_certificate_authenticates_the_user(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    file = authority.issue_client("prometheus", "monitoring", "ops")
    client = FakeApiClient(post=[{"status": {"allowed": True}}])
    async with serving(client, client_ca_file=authority.file) as server:
        context = client_context(lambda each: each.load_cert_chain(file))
        assert b" 200 " in await ask(await connect(server, context), "/metrics")
    reviews = [request.body["spec"] for request in client.requests]
    assert [(spec["user"], spec["groups"]) for spec in reviews] == [
        ("prometheus", ["monitoring", "ops", "system:authenticated"])
    ]


async def test_a_client_without_certificate_is_anonymous(tmp_path: Path) -> None:
    client = FakeApiClient(post=[{"status": {"allowed": False}}])
    async with serving(client, client_ca_file=Authority(tmp_path).file) as server:
        assert b" 403 " in await ask(await connect(server), "/metrics")
    (request,) = client.requests
    assert request.body["spec"]["user"] == "system:anonymous"


async def test_a_client_certificate_of_another_authority_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    file = Authority(tmp_path / "other").issue_client("admin", "system:masters")
    async with serving(client_ca_file=Authority(tmp_path).file) as server:
        context = client_context(lambda each: each.load_cert_chain(file))
        try:
            answer = await ask(await connect(server, context), "/metrics")
        except (ssl.SSLError, ConnectionError):
            answer = b""
        assert answer == b""
