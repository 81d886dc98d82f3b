"""What a kubeconfig says reaches every request."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
import yaml
from aiohttp import web

from scheduler.operator.connection import connect
from tests.support.authority import Authority


async def test_the_tls_server_name_of_a_kubeconfig_is_what_certificates_are_checked_for(
    tmp_path: Path,
) -> None:
    seen: list[str | None] = []

    async def look(
        request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        response = await handler(request)
        seen.append(request.server_hostname)
        return response

    async with _hello_server() as address:
        cluster = {"server": f"http://{address}", "tls-server-name": "inner"}
        assert await _answer(_kubeconfig(tmp_path, cluster), [look]) == "hello"
    assert seen == ["inner"]


async def test_an_authority_is_trusted_that_go_would_trust(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    async with _hello_server(authority.server_context()) as address:
        cluster = {"server": f"https://{address}", "certificate-authority": str(authority.file)}
        assert await _answer(_kubeconfig(tmp_path, cluster)) == "hello"


async def test_an_unknown_authority_is_not_trusted(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    authority, other = Authority(tmp_path), Authority(tmp_path / "other")
    async with _hello_server(authority.server_context()) as address:
        cluster = {"server": f"https://{address}", "certificate-authority": str(other.file)}
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await _answer(_kubeconfig(tmp_path, cluster))


async def _answer(kubeconfig: str, middlewares: Sequence[aiohttp.ClientMiddlewareType] = ()) -> str:
    connection = await connect(kubeconfig)
    try:
        async with connection.new_session(middlewares).get(connection.server) as response:
            return await response.text()
    finally:
        await connection.close()


@asynccontextmanager
async def _hello_server(tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_get("/", _hello)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    try:
        yield f"127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def _hello(_request: web.Request) -> web.Response:
    return web.Response(text="hello")


def _kubeconfig(folder: Path, cluster: dict[str, str]) -> str:
    path = folder / "kubeconfig"
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": cluster}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "c",
        "users": [{"name": "u", "user": {"token": "t"}}],
    }
    path.write_text(yaml.safe_dump(config))
    return str(path)
