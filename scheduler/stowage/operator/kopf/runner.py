"""Kopf in our loop, watching one resource, started again whenever it ends.

Kopf (``kopf.spawn_tasks``, not ``kopf.operator``) runs in our loop, because ``kopf.operator`` ends
by cancelling every task younger than itself, ours among them. It never writes: no finalizers, no
annotations, no peering, no Kubernetes events.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

import aiohttp
import kopf
import msgspec
import structlog

from stowage.operator.client.api_client import is_api_answer
from stowage.operator.client.api_error import error_from_answer
from stowage.operator.client.backoff import Backoff, Jitter, Sleep
from stowage.operator.client.connection import Connection
from stowage.operator.kopf.settings import NoMemory

STOP_TIMEOUT_S = 5.0
WELL_AFTER_S = 60.0
"""Kopf that ran for so long was well: what ends it then is a new trouble."""
FIRST_LOGIN_PAUSE_S = 0.1
"""Kopf asks for other credentials after each 401, and would at once, and again."""

log = structlog.get_logger("stowage.operator.kopf.runner")


class Watched(msgspec.Struct, frozen=True):
    """What Kopf is to watch, and for whom.

    Attributes:
        resource: Plural, of the core group, e.g. ``pods``.
        settings: With the field selector.
        handle_event: Takes each watch event as it comes, and (type None) each object of a list.
        middleware: Of the session that Kopf gets.
        namespace: The only one; None watches all, and needs the right to.
    """

    resource: str
    settings: kopf.OperatorSettings
    handle_event: Callable[[str | None, dict[str, Any]], None]
    middleware: aiohttp.ClientMiddlewareType
    namespace: str | None = None


class KopfRunner:
    """Runs Kopf, and runs it again should it end.

    Kopf takes what comes for an answer of the API server. So answers that are none (a login page, a
    redirect to one) reach it as connections that broke, and so does a 429, once its time is over:
    Kopf would wait as long as the server asks, be it for hours.

    Args:
        connection: Kopf gets sessions of its own from it.
        watched: What it watches.
        after_start: Called each time Kopf has started; it takes over the process's signal handlers.
        jitter: Random numbers in 0..1.
        sleep: Waits that many seconds.
    """

    def __init__(
        self,
        connection: Connection,
        watched: Watched,
        after_start: Callable[[], None],
        jitter: Jitter,
        sleep: Sleep,
    ) -> None:
        self._connection = connection
        self._watched = watched
        self._after_start = after_start
        self._jitter = jitter
        self._sleep = sleep
        self._is_first_login = True
        self._is_in_trouble = False
        self._has_asked = False
        self._restart = asyncio.Event()
        self._logins = Backoff(jitter, FIRST_LOGIN_PAUSE_S, connection.timeouts.max_backoff_s)
        self._logged_in_at = -WELL_AFTER_S
        self._registry = kopf.OperatorRegistry()
        kopf.on.login(registry=self._registry)(self._login)
        kopf.on.event("", "v1", watched.resource, registry=self._registry)(self._take_event)

    async def run(self) -> None:
        """Watch until cancelled."""
        backoff = Backoff(self._jitter, 0.5, self._connection.timeouts.max_backoff_s)
        while True:
            self._restart.clear()
            tasks = await self._spawn()
            self._after_start()
            began = asyncio.get_running_loop().time()
            restart = asyncio.create_task(self._restart.wait())
            idleness = asyncio.create_task(self._until_idle())
            try:
                await asyncio.wait([*tasks, restart, idleness], return_when=asyncio.FIRST_COMPLETED)
            finally:
                restart.cancel()
                idleness.cancel()
                errors = await _stop(tasks)
            if self._restart.is_set():
                log.info("watching anew, as asked", resource=self._watched.resource)
                backoff.reset()
                continue
            log.warning("kopf ended, starting it again", errors=errors)
            if asyncio.get_running_loop().time() - began > WELL_AFTER_S:
                backoff.reset()
            await self._pause(backoff.next_delay())

    async def _until_idle(self) -> None:
        """Return once Kopf has had the time to ask for what it is to watch, and has not.

        It looks once which resources there are, and believes whatever answer it gets.
        """
        self._has_asked = False
        await self._sleep(self._connection.timeouts.request_s)
        if self._has_asked:
            await asyncio.Event().wait()
        log.warning("kopf does not watch", resource=self._watched.resource)

    def restart(self) -> None:
        """Begin with a new list, and with what the settings say now."""
        self._logins.reset()
        self._restart.set()

    @property
    def has_failing_requests(self) -> bool:
        """Whether the last request was not answered, or refused."""
        return self._is_in_trouble

    async def _pause(self, seconds: float) -> None:
        """Wait that long, or until asked to begin anew."""
        waits = [
            asyncio.ensure_future(self._sleep(seconds)),
            asyncio.create_task(self._restart.wait()),
        ]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()

    async def _spawn(self) -> list[asyncio.Task[Any]]:
        namespace = self._watched.namespace
        # Of a namespace that is named Kopf asks nothing but the resource in it.
        tasks = await kopf.spawn_tasks(
            registry=self._registry,
            settings=self._watched.settings,
            clusterwide=namespace is None,
            namespaces=() if namespace is None else (namespace,),
            standalone=True,
            memories=NoMemory(),
        )
        return list(tasks)

    async def _login(self, **_kwargs: Any) -> kopf.AiohttpSession:
        if not self._is_first_login:
            # Kopf logs in again after a 401.
            await self._pause_between_logins()
            await self._connection.reload(self._connection.generation)
        self._is_first_login = False
        self._logged_in_at = asyncio.get_running_loop().time()
        middlewares = (self._watched.middleware, self._answered)
        session = self._connection.new_session(middlewares=middlewares)
        return kopf.AiohttpSession(server=self._connection.server, aiohttp_session=session)

    async def _pause_between_logins(self) -> None:
        if asyncio.get_running_loop().time() - self._logged_in_at > WELL_AFTER_S:
            self._logins.reset()
        await self._sleep(self._logins.next_delay())

    async def _answered(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        """Pass on what the API server says, and nobody else."""
        self._is_in_trouble = True
        self._has_asked |= request.url.path.endswith(f"/{self._watched.resource}")
        response = await self._opened_in_time(request, handler)
        if response.status == 429 or not is_api_answer(response):
            error = error_from_answer(response.status, b"", response.headers.get("Retry-After"))
            response.close()
            await self._sleep(error.retry_after or 0.0)
            raise aiohttp.ClientConnectionError(f"no answer of an API server: {error}")
        self._is_in_trouble = not response.ok
        return response

    async def _opened_in_time(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        """Wait for the start of a watch as for any answer; Kopf would as long as for an event."""
        is_watch = "watch" in request.url.query
        limit_s = self._connection.timeouts.request_s if is_watch else None
        async with asyncio.timeout(limit_s):
            return await handler(request)

    async def _take_event(self, event: Any, **_kwargs: Any) -> None:
        self._watched.handle_event(event["type"], event["object"])


async def _stop(tasks: Iterable[asyncio.Task[Any]]) -> list[str]:
    """Cancel Kopf's tasks and say what made any of them end by itself."""
    tasks = list(tasks)
    ended = [task for task in tasks if task.done()]
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks, timeout=STOP_TIMEOUT_S)
    return [repr(task.exception()) for task in ended if not task.cancelled()]
