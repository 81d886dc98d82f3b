"""HTTP endpoints for fault injection, under a path that no Kubernetes client uses."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar

import msgspec
from aiohttp import web

from simcluster.apiserver import errors
from simcluster.apiserver.messages import Answer
from simcluster.faults.faults import Faults, parse_rule
from simcluster.store.store import Backup, encode
from simcluster.store.watch import WatcherRegistry

T = TypeVar("T")

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

    def back_up(self) -> Backup:
        """All objects as they are now."""
        ...

    async def restore(self, backup: Backup, away_s: float, bump: int) -> None:
        """Stop, go back to a backup, and listen again after a while."""
        ...


class FaultEndpoints:
    """Adds, lists and clears faults of one server."""

    def __init__(self, server: FaultyServer) -> None:
        self._server = server
        self._absence: asyncio.Task[None] | None = None
        self._backup: Backup | None = None

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
        if action == "back-up":
            self._backup = self._server.back_up()
            return _ok(revision=self._backup.revision)
        if action == "restore":
            return self._restore(body)
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
        seconds = _read(body, _Absence).seconds
        self._absence = asyncio.create_task(_soon(lambda: self._server.be_away(seconds)))
        return _ok()

    def _restore(self, body: bytes) -> Answer:
        backup, asked = self._backup, _read(body, _Restore)
        if backup is None:
            raise errors.bad_request("there is no backup: POST back-up before")
        restore = self._server.restore
        self._absence = asyncio.create_task(
            _soon(lambda: restore(backup, asked.seconds, asked.bump))
        )
        return _ok(revision=backup.revision + asked.bump)


class _Absence(msgspec.Struct):
    seconds: float


class _Restore(msgspec.Struct):
    seconds: float = 0.0
    bump: int = 0


def _read(body: bytes, type_: type[T]) -> T:
    try:
        return msgspec.json.decode(body or b"{}", type=type_)
    except msgspec.DecodeError as error:
        raise errors.bad_request(str(error)) from error


async def _soon(work: Callable[[], Awaitable[None]]) -> None:
    await asyncio.sleep(0.05)  # the answer to this request is sent first
    await work()


def _ok(**fields: Any) -> Answer:
    return Answer(200, encode(fields))
