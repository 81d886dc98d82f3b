"""What lies between a process and its extenders: the product's client over a simulated session."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Any, cast

import aiohttp
from aiohttp.client_reqrep import ConnectionKey

from stowage.api.config.loading import Extender
from stowage.operator.extenders.client import DEFAULT_TIMEOUT_S, ExtenderClient
from tests.simulation.extender_servers import ExtenderServer, Said
from tests.simulation.network import Network, written
from tests.simulation.server import Json

SLOW_S = (0.2, 4.0)


class VirtualExtenderClient(ExtenderClient):
    """The client as it is, whose session is simulated."""

    def __init__(
        self, config: Extender, process: str, network: Network, servers: dict[str, ExtenderServer]
    ) -> None:
        super().__init__(config)
        timeout_s = config.http_timeout or DEFAULT_TIMEOUT_S
        session = _Session(process, network, servers[config.url_prefix], timeout_s)
        self._opened = cast("aiohttp.ClientSession", session)


def make_servers(extenders: list[Json], network: Network) -> dict[str, ExtenderServer]:
    """A server for each, by URL."""
    return {config["urlPrefix"]: ExtenderServer(config, network) for config in extenders}


class _Session:
    """As much of ``aiohttp.ClientSession`` as the client uses; it is gone with its process."""

    def __init__(
        self, process: str, network: Network, server: ExtenderServer, timeout_s: float
    ) -> None:
        self.process = process
        self.network = network
        self.server = server
        self.timeout_s = timeout_s

    def post(self, url: str, *, data: Any, **_options: Any) -> _Request:
        """Send a question."""
        return _Request(self, url.rpartition("/")[2], data)

    async def close(self) -> None:
        """Nothing is open."""


class _Request:
    """A question on its way; the extender goes on whatever becomes of the process."""

    def __init__(self, session: _Session, verb: str, data: Any) -> None:
        self._session = session
        self._network = session.network
        self._verb = verb
        self._data = data
        self._deadline = 0.0

    async def __aenter__(self) -> _Response:
        network = self._network
        self._deadline = network.loop.time() + self._session.timeout_s
        async with asyncio.timeout_at(self._deadline):
            await asyncio.sleep(network.delay())
            if network.strikes("extender_refused"):
                key = ConnectionKey(self._session.server.name, 80, False, True, None, None, None)
                raise aiohttp.ClientConnectorError(key, ConnectionRefusedError("refused"))
            body = await written(self._data)
            if self._verb == "bind":
                network.note_write(self._session.process, "/extender/bind")
            arrived: asyncio.Future[_Response] = network.loop.create_future()
            if not network.strikes("extender_lost"):
                network.loop.call_outside(network.delay(), self._reach, body, arrived)
            return await arrived

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        return

    def _reach(self, body: bytes, arrived: asyncio.Future[_Response]) -> None:
        """The question is with the extender."""
        network = self._network
        ambush = network.take_ambush("POST", f"/extender/{self._verb}")
        if ambush is not None and ambush.is_before:
            ambush.strike()
        said = self._session.server.answer(
            self._verb,
            body,
            self._session.timeout_s,
            is_awaited=network.loop.time() <= self._deadline,
        )
        if ambush is not None and not ambush.is_before:
            ambush.strike()
        if said is None:
            return
        slow_s = network.between(*SLOW_S) if network.strikes("extender_slow") else 0.0
        response = _Response(said, self._deadline)
        response.is_torn = network.strikes("extender_torn")
        response.is_endless = network.strikes("extender_hung")
        if not (response.is_endless and network.any_of((True, False))):
            network.loop.call_outside(network.delay() + slow_s, _arrive, arrived, response)


class _Response:
    """As much of ``aiohttp.ClientResponse`` as the client uses.

    Attributes:
        is_torn: Whether the connection is reset in the middle.
        is_endless: Whether the rest of the body never comes.
    """

    def __init__(self, said: Said, deadline: float) -> None:
        self.status = said.status
        self.headers: dict[str, str] = {}
        self.is_torn = False
        self.is_endless = False
        self._body = said.body
        self._deadline = deadline

    @property
    def content(self) -> _Response:
        """The body."""
        return self

    async def iter_any(self) -> AsyncIterator[bytes]:
        """Chunks as they come.

        Raises:
            aiohttp.ClientPayloadError: the connection was reset before all of it was there.
            TimeoutError: the rest did not come in time.
        """
        half = len(self._body) // 2
        yield self._body[:half]
        if self.is_torn:
            raise aiohttp.ClientPayloadError("Response payload is not completed")
        if self.is_endless:
            async with asyncio.timeout_at(self._deadline):
                await asyncio.Event().wait()
        yield self._body[half:]


def _arrive(arrived: asyncio.Future[_Response], response: _Response) -> None:
    # Who waited may have given up.
    if not arrived.done():
        arrived.set_result(response)
