"""The network between a process and its extenders: the real client over a simulated session."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Any, cast

import aiohttp
from aiohttp.client_reqrep import ConnectionKey

from stowage.api.config.loading import Extender
from stowage.operator.extenders.client import DEFAULT_TIMEOUT_S, ExtenderClient
from tests.simulation.extender_servers import ExtenderResponse, ExtenderServer
from tests.simulation.network import Network, written
from tests.simulation.server import Json

SLOW_S = (0.2, 4.0)


class VirtualExtenderClient(ExtenderClient):
    """The real client with a simulated session."""

    def __init__(
        self, config: Extender, process: str, network: Network, servers: dict[str, ExtenderServer]
    ) -> None:
        super().__init__(config)
        timeout_s = config.http_timeout or DEFAULT_TIMEOUT_S
        session = _Session(process, network, servers[config.url_prefix], timeout_s)
        self._opened = cast("aiohttp.ClientSession", session)


def make_servers(extenders: list[Json], network: Network) -> dict[str, ExtenderServer]:
    """A server for each extender, by URL."""
    return {config["urlPrefix"]: ExtenderServer(config, network) for config in extenders}


class _Session:
    """The part of ``aiohttp.ClientSession`` that the client uses; it ends with its process."""

    def __init__(
        self, process: str, network: Network, server: ExtenderServer, timeout_s: float
    ) -> None:
        self.process = process
        self.network = network
        self.server = server
        self.timeout_s = timeout_s

    def post(self, url: str, *, data: Any, **_options: Any) -> _Request:
        """Send a request."""
        return _Request(self, url.rpartition("/")[2], data)

    async def close(self) -> None:
        """Do nothing: no connection stays open."""


class _Request:
    """A request in flight; the extender handles it even if the process ends."""

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
            if network.injects("extender_refused"):
                key = ConnectionKey(self._session.server.name, 80, False, True, None, None, None)
                raise aiohttp.ClientConnectorError(key, ConnectionRefusedError("refused"))
            body = await written(self._data)
            if self._verb == "bind":
                network.note_write(self._session.process, "/extender/bind", b"")
            arrived: asyncio.Future[_Response] = network.loop.create_future()
            if not network.injects("extender_lost"):
                network.loop.call_outside(network.delay(), self._deliver_request, body, arrived)
            return await arrived

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        return

    def _deliver_request(self, body: bytes, arrived: asyncio.Future[_Response]) -> None:
        """Let the request arrive at the extender."""
        network = self._network
        hook = network.take_write_hook("POST", f"/extender/{self._verb}")
        if hook is not None and hook.is_before:
            hook.run()
        answer = self._session.server.answer(
            self._verb,
            body,
            self._session.timeout_s,
            is_awaited=network.loop.time() <= self._deadline,
        )
        if hook is not None and not hook.is_before:
            hook.run()
        if answer is None:
            return
        slow_s = network.between(*SLOW_S) if network.injects("extender_slow") else 0.0
        response = _Response(answer, self._deadline)
        response.is_torn = network.injects("extender_torn")
        response.is_endless = network.injects("extender_hung")
        if not (response.is_endless and network.choose((True, False))):
            network.loop.call_outside(
                network.delay() + slow_s, _deliver_response, arrived, response
            )


class _Response:
    """The part of ``aiohttp.ClientResponse`` that the client uses.

    Attributes:
        is_torn: Whether the connection is reset in the middle.
        is_endless: Whether the rest of the body never comes.
    """

    def __init__(self, answer: ExtenderResponse, deadline: float) -> None:
        self.status = answer.status
        self.headers: dict[str, str] = {}
        self.is_torn = False
        self.is_endless = False
        self._body = answer.body
        self._deadline = deadline

    @property
    def content(self) -> _Response:
        """The body as a stream."""
        return self

    async def iter_any(self) -> AsyncIterator[bytes]:
        """Yield chunks as they arrive.

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


def _deliver_response(arrived: asyncio.Future[_Response], response: _Response) -> None:
    # The waiting task may have been cancelled.
    if not arrived.done():
        arrived.set_result(response)
