"""Kopf, embedded: watches our pending pods and turns them into events.

Kopf (``kopf.spawn_tasks``, not ``kopf.operator``) runs in our loop, because ``kopf.operator`` ends
by cancelling every task younger than itself, ours among them. It never writes: no finalizers, no
annotations, no peering, no Kubernetes events.

The session we give it reads along. Its lists tell which pods vanished while nobody watched. Of its
watch, the lines about pods that left, nearly all bound by ourselves, are taken out and become
bookmarks: Kopf would spend 0.3 ms on each to tell a handler what is known already.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterable
from typing import Any, cast

import aiohttp
import kopf
import msgspec
import structlog

from scheduler.operator.backoff import Backoff, Jitter, Sleep
from scheduler.operator.connection import Connection
from scheduler.operator.kopf_settings import NoMemories, pod_watching_settings
from scheduler.operator.pending_pods import PendingPods, pending_pods_selector
from scheduler.operator.reflector import complete_lines

PODS_PATH = "/api/v1/pods"
STOP_TIMEOUT_S = 5.0

log = structlog.get_logger("scheduler.operator.kopf_watch")


class PendingPodWatch:
    """Runs Kopf, and runs it again should it end.

    Args:
        connection: Kopf gets sessions of its own from it.
        pods: Where its events and lists go.
        scheduler_names: Of all profiles.
        after_start: Called each time Kopf has started; it takes over the process's signal handlers.
        jitter: Random numbers in 0..1.
        sleep: Waits that many seconds.
    """

    def __init__(
        self,
        connection: Connection,
        pods: PendingPods,
        scheduler_names: Collection[str],
        after_start: Callable[[], None],
        jitter: Jitter,
        sleep: Sleep,
    ) -> None:
        self._connection = connection
        self._pods = pods
        self._after_start = after_start
        self._jitter = jitter
        self._sleep = sleep
        self._is_first_login = True
        self._settings = pod_watching_settings(pending_pods_selector(scheduler_names), jitter)
        self._registry = kopf.OperatorRegistry()
        kopf.on.login(registry=self._registry)(self._login)
        kopf.on.event("", "v1", "pods", registry=self._registry)(self._take_event)

    async def run(self) -> None:
        """Watch until cancelled."""
        backoff = Backoff(self._jitter, initial_s=0.5)
        while True:
            tasks = await kopf.spawn_tasks(
                registry=self._registry,
                settings=self._settings,
                clusterwide=True,
                standalone=True,
                memories=NoMemories(),
            )
            self._after_start()
            try:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            finally:
                errors = await _stop(tasks)
            log.warning("kopf ended, starting it again", errors=errors)
            await self._sleep(backoff.next_delay())

    async def _login(self, **_kwargs: Any) -> kopf.AiohttpSession:
        if not self._is_first_login:
            # Kopf logs in again after a 401.
            await self._connection.reload(self._connection.generation)
        self._is_first_login = False
        session = self._connection.new_session(middlewares=(self._read_lists_along,))
        return kopf.AiohttpSession(server=self._connection.server, aiohttp_session=session)

    async def _take_event(self, event: Any, **_kwargs: Any) -> None:
        self._pods.take_event(event["type"], event["object"])

    async def _read_lists_along(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        response = await handler(request)
        if not request.url.path.endswith(PODS_PATH) or not response.ok:
            return response
        query = request.url.query
        if "watch" in query:
            content = DepartureFilter(response.content, self._pods.take_departure)
            response.content = cast("aiohttp.StreamReader", content)
        else:
            # The body stays in the response, where Kopf finds it.
            self._pods.take_page(await response.read(), is_first="continue" not in query)
        return response


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    uid: str
    resource_version: str


class _Headed(msgspec.Struct, frozen=True):
    metadata: _Metadata


class _Departure(msgspec.Struct, frozen=True):
    object: _Headed


_DEPARTURE_DECODER = msgspec.json.Decoder(_Departure)
_DEPARTURE_START = b'{"type":"DELETED"'


class DepartureFilter:
    """The body of a watch in which departures are bookmarks; else as the reader it wraps.

    A bookmark still moves Kopf's resource version, so it resumes where the stream broke off.
    """

    def __init__(self, content: aiohttp.StreamReader, take: Callable[[str], None]) -> None:
        self._content = content
        self._take = take

    def __getattr__(self, name: str) -> Any:
        return getattr(self._content, name)

    def iter_chunked(self, _size: int) -> AsyncIterator[bytes]:
        """The chunks as they come, cut at line ends."""
        return self._filtered()

    async def _filtered(self) -> AsyncIterator[bytes]:
        async for lines in complete_lines(self._content.iter_any()):
            yield b"".join([self._rewritten(line) + b"\n" for line in lines])

    def _rewritten(self, line: bytes) -> bytes:
        if not line.startswith(_DEPARTURE_START):
            return line
        metadata = _DEPARTURE_DECODER.decode(line).object.metadata
        self._take(metadata.uid)
        bookmark = {"metadata": {"resourceVersion": metadata.resource_version}}
        return msgspec.json.encode({"type": "BOOKMARK", "object": bookmark})


async def _stop(tasks: Iterable[asyncio.Task[Any]]) -> list[str]:
    """Cancel Kopf's tasks and say what made any of them end by itself."""
    tasks = list(tasks)
    ended = [task for task in tasks if task.done()]
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks, timeout=STOP_TIMEOUT_S)
    return [repr(task.exception()) for task in ended if not task.cancelled()]
