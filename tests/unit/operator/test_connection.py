"""What a kubeconfig says reaches every request."""

from __future__ import annotations

from pathlib import Path

import aiohttp
import yaml
from aiohttp import web

from scheduler.operator.connection import connect


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

    app = web.Application()
    app.router.add_get("/", _hello)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    cluster = {"server": f"http://127.0.0.1:{runner.addresses[0][1]}", "tls-server-name": "inner"}
    connection = await connect(_kubeconfig(tmp_path, cluster))
    try:
        async with connection.new_session([look]).get(connection.server) as response:
            assert await response.text() == "hello"
    finally:
        await connection.close()
        await runner.cleanup()
    assert seen == ["inner"]


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
