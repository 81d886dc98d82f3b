"""The settings of a kubeconfig apply to every request."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType

import aiohttp
import pytest
import yaml
from aiohttp import web
from kubernetes.aio.config import ConfigException
from structlog.testing import capture_logs

from simcluster.tests.support.timeouts import WAIT_TIMEOUT_S, wait_until
from stowage.operator.client.connection import connect
from stowage.operator.client.direct_writes import Write
from tests.support.integration.authority import Authority

Handler = Callable[[web.BaseRequest], Awaitable[web.Response]]


async def test_certificates_are_checked_for_the_tls_server_name_of_the_kubeconfig(
    tmp_path: Path,
) -> None:
    seen: list[str | None] = []

    async def record_server_name(
        request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        response = await handler(request)
        seen.append(request.server_hostname)
        return response

    async with _hello_server() as address:
        cluster = {"server": f"http://{address}", "tls-server-name": "inner"}
        assert await _answer(_kubeconfig(tmp_path, cluster), [record_server_name]) == "hello"
    assert seen == ["inner"]


async def test_a_certificate_authority_that_go_accepts_is_trusted(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    async with _hello_server(authority.server_context()) as address:
        cluster = {"server": f"https://{address}", "certificate-authority": str(authority.file)}
        assert await _answer(_kubeconfig(tmp_path, cluster)) == "hello"


async def test_an_unknown_certificate_authority_is_not_trusted(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    authority, other = Authority(tmp_path), Authority(tmp_path / "other")
    async with _hello_server(authority.server_context()) as address:
        cluster = {"server": f"https://{address}", "certificate-authority": str(other.file)}
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await _answer(_kubeconfig(tmp_path, cluster))


async def test_a_certificate_with_another_name_is_not_trusted(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    async with _hello_server(authority.server_context()) as address:
        cluster = {
            "server": f"https://{address}",
            "certificate-authority": str(authority.file),
            "tls-server-name": "other.example",
        }
        with pytest.raises(aiohttp.ClientConnectorCertificateError, match=r"other\.example"):
            await _answer(_kubeconfig(tmp_path, cluster))


async def test_a_replaced_certificate_authority_file_is_reread(tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    old, new = Authority(tmp_path), Authority(tmp_path / "new")
    async with _hello_server(new.server_context()) as address:
        cluster = {"server": f"https://{address}", "certificate-authority": str(old.file)}
        connection = await connect(_kubeconfig(tmp_path, cluster))
        try:
            with capture_logs() as lines:
                await connection.renew()
            assert lines == []
            with pytest.raises(aiohttp.ClientConnectorCertificateError):
                await connection.session.get(connection.server)
            (tmp_path / "third").mkdir()
            old.file.write_bytes(Authority(tmp_path / "third").file.read_bytes())
            await connection.renew()
            with pytest.raises(aiohttp.ClientConnectorCertificateError):
                await connection.session.get(connection.server)
            old.file.write_bytes(b"a part of")
            with pytest.raises(OSError, match="no certificate"):
                await connection.renew()
            old.file.write_bytes(new.file.read_bytes())
            with capture_logs() as lines:
                await connection.renew()
                await connection.renew()
            assert lines == [{"event": "certificates reloaded", "log_level": "info"}]
            async with connection.session.get(connection.server) as response:
                assert await response.text() == "hello"
        finally:
            await connection.close()


async def _answer(kubeconfig: str, middlewares: Sequence[aiohttp.ClientMiddlewareType] = ()) -> str:
    connection = await connect(kubeconfig)
    try:
        async with connection.new_session(middlewares).get(connection.server) as response:
            return await response.text()
    finally:
        await connection.close()


async def _hello(_request: web.BaseRequest) -> web.Response:
    return web.Response(text="hello")


@asynccontextmanager
async def _hello_server(
    tls: ssl.SSLContext | None = None, answer: Handler = _hello
) -> AsyncIterator[str]:
    runner = web.ServerRunner(web.Server(answer))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    try:
        yield f"127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def _kubeconfig(
    folder: Path,
    cluster: dict[str, str],
    user: Mapping[str, str] = MappingProxyType({"token": "t"}),
) -> str:
    path = folder / "kubeconfig"
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": cluster}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "c",
        "users": [{"name": "u", "user": dict(user)}],
    }
    path.write_text(yaml.safe_dump(config))
    return str(path)


async def test_idle_connections_can_be_dropped(tmp_path: Path) -> None:
    transports: list[object] = []

    async def answer(request: web.BaseRequest) -> web.Response:
        transports.append(request.transport)
        return web.Response(text="hello")

    async with _hello_server(answer=answer) as address:
        connection = await connect(_kubeconfig(tmp_path, {"server": f"http://{address}"}))
        for _ in range(2):
            async with connection.session.get(connection.server) as response:
                await response.text()
        connection.drop_idle()
        async with connection.session.get(connection.server) as response:
            await response.text()
        await connection.close()
    first, second, third = transports
    assert first is second
    assert second is not third


async def test_an_unreadable_kubeconfig_leaves_the_earlier_credentials_in_use(
    tmp_path: Path,
) -> None:
    token = tmp_path / "token"
    token.write_text("first")
    kubeconfig = _kubeconfig(tmp_path, {"server": "http://127.0.0.1:1"}, {"tokenFile": str(token)})
    connection = await connect(kubeconfig)
    token.unlink()
    await connection.reload(0)
    assert connection.generation == 0
    token.write_text("second")
    await connection.reload(0)
    assert connection.session.headers["Authorization"] == "Bearer second"
    await connection.close()


async def test_new_credentials_are_used_by_writes_without_the_session_too(tmp_path: Path) -> None:
    tokens: list[str] = []

    async def answer(request: web.BaseRequest) -> web.Response:
        tokens.append(request.headers["Authorization"])
        return web.Response(text="hello")

    token = tmp_path / "token"
    token.write_text("old")
    write = Write("POST", "/", b"{}", "application/json", lambda: None)
    async with _hello_server(answer=answer) as address:
        server = {"server": f"http://{address}"}
        connection = await connect(_kubeconfig(tmp_path, server, {"tokenFile": str(token)}))
        for text in ("first", "second"):
            token.write_text(text)
            await connection.renew()
            assert connection.direct_writes is not None
            timeout = aiohttp.ClientTimeout(WAIT_TIMEOUT_S)
            assert (await connection.direct_writes.send(write, timeout)).status == 200
        await connection.close()
    assert tokens == ["Bearer first", "Bearer second"]


async def test_a_closed_connection_leaves_no_socket_open(tmp_path: Path) -> None:
    transports: list[asyncio.Transport] = []

    async def answer(request: web.BaseRequest) -> web.Response:
        assert request.transport is not None
        transports.append(request.transport)
        return web.Response(text="hello")

    async with _hello_server(answer=answer) as address:
        connection = await connect(_kubeconfig(tmp_path, {"server": f"http://{address}"}))
        async with connection.session.get(connection.server) as response:
            await response.text()
        await connection.close()
        await wait_until(transports[0].is_closing)


async def test_a_server_elsewhere_is_reached_through_the_proxy_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    async def answer(request: web.BaseRequest) -> web.Response:
        asked.append(request.raw_path)
        return web.Response(text="hello")

    kubeconfig = _kubeconfig(tmp_path, {"server": "http://cluster.invalid:8080"})
    async with _hello_server(answer=answer) as address:
        monkeypatch.setenv("HTTP_PROXY", f"http://{address}")
        assert await _answer(kubeconfig) == "hello"
        connection = await connect(kubeconfig)
        assert connection.direct_writes is None
        await connection.close()
    assert asked == ["http://cluster.invalid:8080"]


async def test_tls_goes_through_the_proxy_of_the_environment_to_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = Authority(tmp_path)
    async with _hello_server(authority.server_context()) as address, _tunnel(address) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy)
        cluster = {
            "server": "https://cluster.invalid:6443",
            "certificate-authority": str(authority.file),
            "tls-server-name": "127.0.0.1",
        }
        assert await _answer(_kubeconfig(tmp_path, cluster)) == "hello"


@asynccontextmanager
async def _tunnel(address: str) -> AsyncIterator[str]:
    """A proxy whose tunnels all lead to one server."""
    copying: list[asyncio.Task[None]] = []

    async def copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        while data := await source.read(2**16):
            target.write(data)
        target.close()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"CONNECT cluster.invalid:6443 ")
        host, _, port = address.partition(":")
        server_reader, server_writer = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        copying.append(asyncio.create_task(copy(reader, server_writer)))
        copying.append(asyncio.create_task(copy(server_reader, writer)))

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        await asyncio.wait_for(asyncio.gather(*copying), WAIT_TIMEOUT_S)
        server.close()


@pytest.mark.parametrize("source", ["proxy-url", "HTTP_PROXY"])
async def test_a_proxy_of_socks_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    cluster = {"server": "http://cluster.invalid:8080"}
    if source == "proxy-url":
        cluster["proxy-url"] = "socks5://127.0.0.1:1080"
    else:
        monkeypatch.setenv("HTTP_PROXY", "socks5://127.0.0.1:1080")
    with pytest.raises(ConfigException, match=r"the proxy is 'socks5://127\.0\.0\.1:1080', exp"):
        await connect(_kubeconfig(tmp_path, cluster))


@pytest.mark.parametrize("setting", ["tls-server-name", "proxy-url", ""])
async def test_only_a_plain_connection_writes_without_the_session(
    tmp_path: Path, setting: str
) -> None:
    cluster = {"server": "http://127.0.0.1:1"}
    if setting:
        cluster[setting] = "http://127.0.0.1:2" if setting == "proxy-url" else "inner"
    connection = await connect(_kubeconfig(tmp_path, cluster))
    try:
        assert (connection.direct_writes is None) == bool(setting)
    finally:
        await connection.close()
