"""HTTP endpoints for fault injection, under a path that no Kubernetes client uses."""

import asyncio
from typing import Any, Protocol

import msgspec
from aiohttp import web

from simcluster.apiserver import errors
from simcluster.apiserver.messages import Answer
from simcluster.faults.faults import Faults, parse_rule
from simcluster.store.store import encode
from simcluster.store.watch import WatcherRegistry

FAULTS_PATH = "/stowage/faults"


class FaultyServer(Protocol):
    """The part of the server that the endpoints use."""

    faults: Faults
    watchers: WatcherRegistry

    async def be_away(self, seconds: float) -> None:
        """Stop listening for a while."""
        ...

    def forget_history(self) -> None:
        """Drop the watch history."""
        ...


class FaultEndpoints:
    """Adds, lists and clears faults of one server."""

    def __init__(self, server: FaultyServer) -> None:
        self._server = server
        self._absence: asyncio.Task[None] | None = None

    async def handle(self, request: web.BaseRequest, path: str) -> Answer:
        """Answer a request below :data:`FAULTS_PATH`.

        Raises:
            ApiError: 400 or 404.
        """
        action = path.removeprefix(FAULTS_PATH).strip("/")
        body = await request.read()
        if not action:
            return self._rules(request.method, body)
        if request.method != "POST":
            raise errors.method_not_allowed()
        if action == "drop-watches":
            return _ok(closed=self._server.watchers.close_all())
        if action == "forget-history":
            self._server.forget_history()
            return _ok()
        if action == "away":
            return self._go_away(body)
        raise errors.unknown_path()

    def _rules(self, method: str, body: bytes) -> Answer:
        faults = self._server.faults
        if method == "POST":
            faults.add(parse_rule(body))
        elif method == "DELETE":
            faults.clear()
        elif method != "GET":
            raise errors.method_not_allowed()
        return _ok(rules=faults.rules, hits=faults.hits, hits_by_name=faults.hits_by_name)

    def _go_away(self, body: bytes) -> Answer:
        try:
            seconds = float(msgspec.json.decode(body)["seconds"])
        except (msgspec.DecodeError, KeyError, TypeError, ValueError) as error:
            raise errors.bad_request('expected {"seconds": number}') from error
        self._absence = asyncio.create_task(self._leave(seconds))
        return _ok()

    async def _leave(self, seconds: float) -> None:
        await asyncio.sleep(0.05)  # the answer to this request is sent first
        await self._server.be_away(seconds)


def _ok(**fields: Any) -> Answer:
    return Answer(200, encode(fields))
