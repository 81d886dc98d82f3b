"""Requests to an extender: time limit, TLS, and errors that name it."""

from __future__ import annotations

import asyncio
import gzip
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import RawTestServer, TestServer

from simcluster.ports import reserved_port
from simcluster.tests.support.api_servers import self_signed_certificate
from stowage.api.config.loading import Extender
from stowage.api.config.types import ExtenderTLSConfig
from stowage.api.values.duration import Duration
from stowage.operator.extenders.client import ExtenderClient, ExtenderError
from tests.support.integration.authority import Authority


async def _echo(request: web.Request) -> web.Response:
    return web.Response(body=request.path.encode() + b" " + await request.read())


async def _redirect(_request: web.Request) -> web.Response:
    return web.Response(status=307, headers={"Location": "/scheduler/echo"})


async def _fail(_request: web.Request) -> web.Response:
    return web.Response(status=503)


async def _hang(_request: web.Request) -> web.Response:
    await asyncio.Event().wait()
    raise web.HTTPOk


async def _flood(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    with suppress(ConnectionError):
        while True:
            await response.write(b"x" * 65_536)
    return response


async def _compressed(_request: web.Request) -> web.Response:
    """A body of 16 MiB that compresses to a thousandth."""
    body = gzip.compress(b" " * 2**24)
    return web.Response(body=body, headers={"Content-Encoding": "gzip"})


@asynccontextmanager
async def _server(tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_post("/scheduler/echo", _echo)
    app.router.add_post("/scheduler/fail", _fail)
    app.router.add_post("/scheduler/redirect", _redirect)
    app.router.add_post("/scheduler/hang", _hang)
    app.router.add_post("/scheduler/flood", _flood)
    app.router.add_post("/scheduler/compressed", _compressed)
    server = TestServer(app, scheme="http" if tls is None else "https")
    await server.start_server(ssl=tls, shutdown_timeout=0.0)
    try:
        yield str(server.make_url("/scheduler"))
    finally:
        await server.close()


async def _send(url: str, verb: str = "echo", **config: Any) -> bytes:
    client = ExtenderClient(Extender(url_prefix=url, **config))
    try:
        return await client.send(verb, b"hello")
    finally:
        await client.close()


@pytest.mark.parametrize("end", ["", "/", "//"])
async def test_the_url_is_the_prefix_and_the_verb(end: str) -> None:
    async with _server() as url:
        assert await _send(url + end) == b"/scheduler/echo hello"


async def test_a_status_other_than_200_is_an_error_with_kube_schedulers_text() -> None:
    async with _server() as url:
        with pytest.raises(ExtenderError) as failure:
            await _send(url, "fail")
    text = f"failed fail with extender at URL {url}/fail, code 503"
    assert (str(failure.value), failure.value.may_have_acted) == (text, True)


async def test_a_request_fails_when_the_extender_does_not_answer_in_time() -> None:
    async with _server() as url:
        with pytest.raises(ExtenderError) as failure:
            await _send(url, "hang", http_timeout=Duration(0.05))
    text = f'extender "{url}/hang": no answer within 0.05 s'
    assert (str(failure.value), failure.value.may_have_acted) == (text, True)


async def test_a_compressed_answer_is_refused() -> None:
    async with _server() as url:
        with pytest.raises(ExtenderError, match='an answer encoded as "gzip", which was not asked'):
            await _send(url, "compressed")


@pytest.mark.parametrize("verb", ["flood", "echo"])
async def test_an_answer_above_the_size_limit_is_refused(verb: str) -> None:
    async with _server() as url:
        client = ExtenderClient(Extender(url_prefix=url), max_answer_bytes=10)
        with pytest.raises(ExtenderError) as failure:
            await client.send(verb, b"hello")
        await client.close()
    text = f'extender "{url}/{verb}": an answer of more than 10 bytes'
    assert (str(failure.value), failure.value.may_have_acted) == (text, True)
    assert client.num_failures == 1


@pytest.mark.parametrize("verb", ["fail", "hang", "echo"])
async def test_a_password_in_the_url_is_in_no_error(verb: str) -> None:
    async with _server() as url:
        secret = url.replace("http://", "http://user:canary@")
        client = ExtenderClient(
            Extender(url_prefix=secret, http_timeout=Duration(0.2)), max_answer_bytes=4
        )
        with pytest.raises(ExtenderError) as failure:
            await client.send(verb, b"hello")
        await client.close()
    assert "canary" not in f"{failure.value} {client.name}"


async def test_a_request_is_not_sent_when_the_lease_is_lost_before_the_connection_is_ready() -> (
    None
):
    async with _server() as url:
        client = ExtenderClient(Extender(url_prefix=url))
        assert await client.send("echo", b"hello", lambda: True) == b"/scheduler/echo hello"
        with pytest.raises(ExtenderError, match="LeaseNotHeld"):
            await client.send("echo", b"hello", lambda: False)
        await client.close()


async def test_only_failed_requests_are_counted_as_failures() -> None:
    async with _server() as url:
        client = ExtenderClient(Extender(url_prefix=url))
        for verb in ("echo", "fail", "fail"):
            with suppress(ExtenderError):
                await client.send(verb, b"hello")
        await client.close()
    assert client.num_failures == 2
    with reserved_port() as port, suppress(ExtenderError):
        gone = ExtenderClient(Extender(url_prefix=f"http://127.0.0.1:{port}"))
        await gone.send("echo", b"hello")
    await gone.close()
    assert gone.num_failures == 1


async def test_an_unreachable_extender_has_not_acted() -> None:
    with reserved_port() as port:
        url = f"http://127.0.0.1:{port}"
        expected = f'extender "{url}/echo": Cannot connect'
        with pytest.raises(ExtenderError, match=expected) as failure:
            await _send(url)
    assert not failure.value.may_have_acted


async def test_an_extender_elsewhere_is_reached_through_the_proxy_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def answer(request: web.BaseRequest) -> web.Response:
        return web.Response(text=request.raw_path)

    async with RawTestServer(answer) as proxy:
        monkeypatch.setenv("HTTP_PROXY", str(proxy.make_url("/")))
        assert await _send("http://extender.invalid:80/v1") == b"http://extender.invalid/v1/echo"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A self-signed certificate for 127.0.0.1, and its key."""
    return self_signed_certificate(tmp_path_factory.mktemp("tls"))


def _server_tls(certificate: tuple[Path, Path]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    return context


def _tls(**fields: Any) -> dict[str, Any]:
    return {"enable_https": True, "tls_config": ExtenderTLSConfig(**fields)}


async def test_https_trusts_the_configured_certificate_authority(
    certificate: tuple[Path, Path],
) -> None:
    path, data = certificate[0], certificate[0].read_bytes()
    async with _server(_server_tls(certificate)) as url:
        assert await _send(url, **_tls(ca_file=str(path)))
        assert await _send(url, **_tls(ca_data=data, ca_file="/nonexistent"))


async def test_a_certificate_authority_that_go_accepts_is_trusted(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    async with _server(authority.server_context()) as url:
        assert await _send(url, **_tls(ca_file=str(authority.file)))


async def test_https_without_a_certificate_authority_trusts_any_server(
    certificate: tuple[Path, Path],
) -> None:
    async with _server(_server_tls(certificate)) as url:
        assert await _send(url, enable_https=True)
        assert await _send(url, tls_config=ExtenderTLSConfig(insecure=True))


async def test_a_self_signed_server_is_not_trusted_by_default(
    certificate: tuple[Path, Path],
) -> None:
    async with _server(_server_tls(certificate)) as url:
        with pytest.raises(ExtenderError, match="certificate"):
            await _send(url)


async def test_the_server_certificate_must_have_the_configured_name(
    certificate: tuple[Path, Path],
) -> None:
    async with _server(_server_tls(certificate)) as url:
        with pytest.raises(ExtenderError, match=r"extender\.example\.com"):
            await _send(
                url, **_tls(ca_file=str(certificate[0]), server_name="extender.example.com")
            )


@pytest.mark.parametrize("as_data", [False, True])
async def test_a_client_certificate_is_presented(
    certificate: tuple[Path, Path], as_data: bool
) -> None:
    context = _server_tls(certificate)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(certificate[0])
    cert, key = certificate
    shown: dict[str, Any] = (
        {"cert_data": cert.read_bytes(), "key_data": key.read_bytes()}
        if as_data
        else {"cert_file": str(cert), "key_file": str(key)}
    )
    async with _server(context) as url:
        assert await _send(url, **_tls(ca_file=str(cert), **shown))


def test_an_unusable_certificate_authority_is_refused_when_the_client_is_created(
    tmp_path: Path,
) -> None:
    for fields in ({"ca_file": str(tmp_path / "absent")}, {"ca_data": b"no certificate"}):
        with pytest.raises(OSError):  # noqa: PT011 - the text is OpenSSL's
            ExtenderClient(Extender(url_prefix="https://x", **_tls(**fields)))


async def test_a_redirect_is_not_followed() -> None:
    """The pod would go to a server that nobody configured."""
    async with _server() as url:
        with pytest.raises(ExtenderError, match="code 307"):
            await _send(url, "redirect")
