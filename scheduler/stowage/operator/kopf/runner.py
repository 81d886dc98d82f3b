"""Runs a Kopf that watches one resource, and starts it again whenever it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import aiohttp
import kopf
import msgspec
import structlog
from kopf._core.engines.peering import Identity

from stowage.operator.client.api_client import LOST_ANSWER_ERRORS, is_api_answer
from stowage.operator.client.api_error import error_from_answer
from stowage.operator.client.backoff import Backoff
from stowage.operator.client.connection import Connection
from stowage.operator.clock import Clock
from stowage.operator.kopf.settings import NoMemory

STOP_TIMEOUT_S = 5.0
STABLE_AFTER_S = 60.0
"""After this time without a failure, the next failure starts with the shortest backoff again."""
FIRST_LOGIN_PAUSE_S = 0.1
"""First pause between two logins: Kopf logs in again after each 401 without any delay."""
_IDENTITY = Identity("stowage")
"""Kopf's name among its peers, which `standalone` lets it not have.

Without one Kopf asks for the name of the user, and fails in a container: its user is a number.
"""

log = structlog.get_logger("stowage.operator.kopf.runner")


class WatchSpec(msgspec.Struct, frozen=True):
    """The watch that a Kopf runs.

    Attributes:
        resource: Plural name of the resource in the core group, e.g. ``pods``.
        settings: Kopf's settings, with the field selector.
        handle_event: Called with each watch event, and (type None) with each object of a list.
        middleware: Middleware of Kopf's HTTP session.
        namespace: The only namespace to watch; None watches all, which needs cluster-wide rights.
    """

    resource: str
    settings: kopf.OperatorSettings
    handle_event: Callable[[str | None, dict[str, Any]], None]
    middleware: aiohttp.ClientMiddlewareType
    namespace: str | None = None


class KopfRunner:
    """Runs Kopf until cancelled.

    Kopf treats every HTTP response as the API server's. So the session turns responses of others
    (a login page, a redirect to one) into connection errors. It does the same with a 429, after a
    bounded pause: Kopf itself would wait for as long as Retry-After says.

    Args:
        connection: Makes Kopf's HTTP sessions.
        spec: What Kopf watches.
        after_start: Called after each start of Kopf, which replaces the signal handlers.
        clock: Time, sleep and jitter.
    """

    def __init__(
        self,
        connection: Connection,
        spec: WatchSpec,
        after_start: Callable[[], None],
        clock: Clock,
    ) -> None:
        self._connection = connection
        self._spec = spec
        self._after_start = after_start
        self._clock = clock
        self._is_first_login = True
        self._has_failing_requests = False
        self._has_requested = False
        self._requests: set[asyncio.Task[Any]] = set()
        self._restart = asyncio.Event()
        self._logins = Backoff(clock.jitter, FIRST_LOGIN_PAUSE_S, connection.timeouts.max_backoff_s)
        self._logged_in_at = -STABLE_AFTER_S
        self._registry = kopf.OperatorRegistry()
        kopf.on.login(registry=self._registry)(self.login)
        kopf.on.event("", "v1", spec.resource, registry=self._registry)(self._take_event)

    async def run(self) -> None:
        """Watch until cancelled; the log of outages says why Kopf ends in one."""
        outages = self._connection.outages
        backoff = Backoff(self._clock.jitter, 0.5, self._connection.timeouts.max_backoff_s)
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
                # Kopf leaves its discovery running, whose requests would fail without a session.
                errors = await _stop({*tasks, *self._requests})
            if self._restart.is_set():
                log.info("watching again on request", resource=self._spec.resource)
                backoff.reset()
                continue
            if not outages.is_failing:
                log.warning("kopf ended, starting it again", errors=errors)
            if asyncio.get_running_loop().time() - began > STABLE_AFTER_S:
                backoff.reset()
            await self._pause(backoff.next_delay())

    async def _until_idle(self) -> None:
        """Return if Kopf has not requested its resource within the timeout of a request.

        Kopf discovers the served resources once and accepts whatever answer it gets.
        """
        self._has_requested = False
        await self._clock.sleep(self._connection.timeouts.request_s)
        if self._has_requested:
            await asyncio.Event().wait()
        if not self._connection.outages.is_failing:
            log.warning("kopf does not watch", resource=self._spec.resource)

    def restart(self) -> None:
        """Start Kopf again, with a new list and the current settings."""
        self._logins.reset()
        self._restart.set()

    @property
    def has_failing_requests(self) -> bool:
        """Whether the last request was refused or got no answer."""
        return self._has_failing_requests

    async def _pause(self, seconds: float) -> None:
        """Wait for that long or until `restart`."""
        waits = [
            asyncio.ensure_future(self._clock.sleep(seconds)),
            asyncio.create_task(self._restart.wait()),
        ]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()

    async def _spawn(self) -> list[asyncio.Task[Any]]:
        namespace = self._spec.namespace
        # With a named namespace, Kopf requests nothing but the resource in it.
        tasks = await kopf.spawn_tasks(
            registry=self._registry,
            settings=self._spec.settings,
            clusterwide=namespace is None,
            namespaces=() if namespace is None else (namespace,),
            standalone=True,
            memories=NoMemory(),
            identity=_IDENTITY,
        )
        return list(tasks)

    async def login(self, **_kwargs: Any) -> kopf.AiohttpSession:
        """Make the HTTP session that Kopf uses until the next login."""
        if not self._is_first_login:
            # Kopf logs in again after a 401.
            await self._pause_between_logins()
            await self._connection.reload(self._connection.generation)
        self._is_first_login = False
        self._logged_in_at = asyncio.get_running_loop().time()
        middlewares = (self._spec.middleware, self._check_answer)
        session = self._connection.new_session(middlewares=middlewares)
        return kopf.AiohttpSession(server=self._connection.server, aiohttp_session=session)

    async def _pause_between_logins(self) -> None:
        if asyncio.get_running_loop().time() - self._logged_in_at > STABLE_AFTER_S:
            self._logins.reset()
        await self._clock.sleep(self._logins.next_delay())

    async def _check_answer(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        """Pass on answers of the API server; raise connection errors for all others."""
        self._has_failing_requests = True
        self._has_requested |= request.url.path.endswith(f"/{self._spec.resource}")
        outages = self._connection.outages
        try:
            response = await self._open_in_time(request, handler)
        except LOST_ANSWER_ERRORS as lost:
            outages.note_failure(lost)
            raise
        if response.status == 429 or not is_api_answer(response):
            error = error_from_answer(response.status, b"", response.headers.get("Retry-After"))
            outages.note_failure(error)
            response.close()
            await self._clock.sleep(error.retry_after or 0.0)
            raise aiohttp.ClientConnectionError(f"no answer of an API server: {error}")
        if response.ok:
            outages.note_answer()
        self._has_failing_requests = not response.ok
        return response

    async def _open_in_time(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        """Limit the time until a watch starts; Kopf limits the time between two events only."""
        is_watch = "watch" in request.url.query
        limit_s = self._connection.timeouts.request_s if is_watch else None
        with self._until_stopped():
            async with asyncio.timeout(limit_s):
                return await handler(request)

    @contextmanager
    def _until_stopped(self) -> Iterator[None]:
        """Let the end of Kopf cancel the current task."""
        task = cast("asyncio.Task[Any]", asyncio.current_task())
        self._requests.add(task)
        try:
            yield
        finally:
            self._requests.discard(task)

    async def _take_event(self, event: Any, **_kwargs: Any) -> None:
        self._spec.handle_event(event["type"], event["object"])


async def _stop(tasks: Iterable[asyncio.Task[Any]]) -> list[str]:
    """Cancel Kopf's tasks; returns the errors of those that had ended before."""
    tasks = list(tasks)
    ended = [task for task in tasks if task.done()]
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks, timeout=STOP_TIMEOUT_S)
    return [repr(task.exception()) for task in ended if not task.cancelled()]
