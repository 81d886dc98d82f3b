"""A console on a port, and a client that asks it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from stowage.console.clusters.source import ClusterSource
from stowage.console.serving.forked import ChildProcesses
from stowage.console.serving.questions import Questions
from stowage.console.serving.server import ConsoleServer
from stowage.console.stream.hub import Hub

TOKEN = "secret-token"


class ConsoleClient:
    """Asks a console over HTTP.

    Args:
        session: Connections.
        server: The server.
        hub: Its stream.
    """

    def __init__(self, session: aiohttp.ClientSession, server: ConsoleServer, hub: Hub) -> None:
        self.session = session
        self.server = server
        self.hub = hub

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server.port}{path}"

    async def get(self, path: str, want: int = 200) -> Any:
        """The answer to a question with the token."""
        async with self.session.get(self.url(path), headers=bearer()) as response:
            assert response.status == want, await response.text()
            return await response.json()

    async def post(self, path: str, body: object, want: int = 200) -> Any:
        """The answer to a question with a body."""
        async with self.session.post(self.url(path), headers=bearer(), json=body) as response:
            assert response.status == want, await response.text()
            return await response.json()

    async def status(
        self, path: str, method: str = "GET", token: str = TOKEN, **headers: str
    ) -> int:
        """The status of an answer; redirects are not followed."""
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.session.request(
            method, self.url(path), headers=bearer(token) | fields, allow_redirects=False
        ) as response:
            return response.status


def bearer(token: str = TOKEN) -> dict[str, str]:
    """The header of a script."""
    return {"Authorization": f"Bearer {token}"} if token else {}


@asynccontextmanager
async def console_of(
    source: ClusterSource, static: Path | None = None
) -> AsyncIterator[ConsoleClient]:
    """Serve a source until the context ends."""
    hub = Hub("e")
    questions = Questions(source, ChildProcesses(), lambda: hub.announced)
    server = ConsoleServer(questions, hub, TOKEN, static or Path("/nonexistent"))
    await server.start(0)
    try:
        jar = aiohttp.CookieJar(unsafe=True)  # else it keeps no cookies of 127.0.0.1
        async with aiohttp.ClientSession(cookie_jar=jar) as session:
            yield ConsoleClient(session, server, hub)
    finally:
        await server.stop()
