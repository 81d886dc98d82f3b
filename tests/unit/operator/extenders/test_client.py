"""The addresses of extenders, and whose certificates are trusted."""

from __future__ import annotations

import asyncio
import ssl
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from stowage.api.config.loading import Extender
from stowage.api.config.types import ExtenderTLSConfig
from stowage.operator.extenders.client import ExtenderClient, ExtenderError, tls_context


@pytest.mark.parametrize("prefix", ["http://x", "HTTP://x"])
def test_an_extender_without_tls_needs_no_context(prefix: str) -> None:
    assert tls_context(Extender(url_prefix=prefix)) is True


@pytest.mark.parametrize("prefix", ["https://x", "HTTPS://x"])
def test_an_extender_with_tls_is_verified(prefix: str) -> None:
    context = tls_context(Extender(url_prefix=prefix))
    assert isinstance(context, ssl.SSLContext)
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname


def test_https_without_a_ca_trusts_any_server() -> None:
    context = tls_context(Extender(url_prefix="http://x", enable_https=True))
    assert isinstance(context, ssl.SSLContext)
    assert context.verify_mode is ssl.CERT_NONE


async def test_an_extender_that_cannot_be_reached_is_named_with_the_verb() -> None:
    client = ExtenderClient(Extender(url_prefix="http://127.0.0.1:1/EX/"))
    with pytest.raises(
        ExtenderError, match=r'^extender "http://127\.0\.0\.1:1/EX/filter": '
    ) as error:
        await client.send("filter", b"{}")
    assert not error.value.may_have_acted
    assert client.num_failures == 1
    await client.close()


@pytest.mark.parametrize(
    ("tls", "name"),
    [
        (None, None),
        (ExtenderTLSConfig(insecure=True), None),
        (ExtenderTLSConfig(insecure=True, server_name="extender.example"), "extender.example"),
    ],
)
async def test_the_certificate_must_have_the_name_of_the_host_or_the_configured_one(
    tls: ExtenderTLSConfig | None, name: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected: list[str | None] = []

    def post(_session: aiohttp.ClientSession, _url: str, **options: Any) -> None:
        expected.append(options["server_hostname"])
        raise aiohttp.ClientConnectionError

    monkeypatch.setattr(aiohttp.ClientSession, "post", post)
    client = ExtenderClient(Extender(url_prefix="https://x", tls_config=tls))
    with pytest.raises(ExtenderError):
        await client.send("filter", b"{}")
    await client.close()
    assert expected == [name]


async def test_an_extender_that_closes_the_connection_may_have_acted() -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    client = ExtenderClient(Extender(url_prefix=f"http://127.0.0.1:{port}"))
    async with server:
        with pytest.raises(ExtenderError) as error:
            await client.send("bind", b"{}")
        await client.close()
    assert error.value.may_have_acted is True


def test_a_failure_may_have_acted_unless_it_is_known_not_to_have() -> None:
    client = ExtenderClient(Extender(url_prefix="http://x"))
    assert client.failure("no answer").may_have_acted
    assert not client.failure("no connection", may_have_acted=False).may_have_acted
    assert client.num_failures == 2


async def test_an_answer_may_be_as_long_as_the_maximum_but_no_longer() -> None:
    async def answer(_request: web.Request) -> web.Response:
        return web.Response(body=b"x" * 1000)

    application = web.Application()
    application.add_routes([web.post("/filter", answer)])
    async with TestServer(application) as server:
        config = Extender(url_prefix=f"http://127.0.0.1:{server.port}")
        enough, short = ExtenderClient(config, 1000), ExtenderClient(config, 999)
        assert await enough.send("filter", b"{}") == b"x" * 1000
        with pytest.raises(ExtenderError, match=r'/filter": an answer of more than 999 bytes$'):
            await short.send("filter", b"{}")
        assert (enough.num_failures, short.num_failures) == (0, 1)
        await enough.close()
        await short.close()


async def test_a_compressed_answer_was_not_asked_for_and_is_an_error() -> None:
    seen: list[dict[str, str]] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append(dict(request.headers))
        return web.Response(body=b"{}", headers={"Content-Encoding": "br"})

    application = web.Application()
    application.add_routes([web.post("/filter", answer)])
    async with TestServer(application) as server:
        client = ExtenderClient(Extender(url_prefix=f"http://127.0.0.1:{server.port}"))
        with pytest.raises(ExtenderError, match='an answer encoded as "br", which was not asked'):
            await client.send("filter", b"{}")
        await client.close()
    assert seen[0]["Content-Type"] == "application/json"
    assert seen[0]["Accept-Encoding"] == "identity"


@pytest.mark.parametrize("status", [201, 302, 404, 500])
async def test_an_answer_with_another_code_than_200_is_an_error_with_the_code(status: int) -> None:
    async def answer(_request: web.Request) -> web.Response:
        return web.Response(status=status, headers={"Location": "/elsewhere"})

    application = web.Application()
    application.add_routes([web.post("/filter", answer)])
    async with TestServer(application) as server:
        url = f"http://127.0.0.1:{server.port}"
        client = ExtenderClient(Extender(url_prefix=url))
        with pytest.raises(ExtenderError) as error:
            await client.send("filter", b"{}")
        await client.close()
    assert str(error.value) == (f"failed filter with extender at URL {url}/filter, code {status}")
    assert error.value.may_have_acted


async def test_cookies_of_an_extender_are_not_sent_back() -> None:
    seen: list[str | None] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append(request.headers.get("Cookie"))
        return web.Response(body=b"{}", headers={"Set-Cookie": "session=1"})

    application = web.Application()
    application.add_routes([web.post("/filter", answer)])
    async with TestServer(application) as server:
        client = ExtenderClient(Extender(url_prefix=f"http://localhost:{server.port}"))
        for _ in range(2):
            await client.send("filter", b"{}")
        await client.close()
    assert seen == [None, None]
