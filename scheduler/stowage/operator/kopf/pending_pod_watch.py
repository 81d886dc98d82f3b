"""Kopf runs the watch of the pending pods of our profiles; the pods do not pass through it.

Kopf discovers the resource, lists, watches and resumes. The middleware of its session handles lists
itself and passes them on without items, with the resource version from which Kopf watches. It also
handles the lines of a watch, each decoded once, and passes on bookmarks in their place. So Kopf's
handler gets no pods.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from typing import Any, cast

import aiohttp
import msgspec

from stowage.api.decoding.decode import WatchError
from stowage.api.objects.meta import ListMeta
from stowage.api.objects.pod import Pod
from stowage.operator.client.connection import Connection
from stowage.operator.client.list_pages import decode_page
from stowage.operator.client.watch_lines import WatchLines
from stowage.operator.clock import Clock
from stowage.operator.kopf.runner import KopfRunner, WatchSpec
from stowage.operator.kopf.settings import pod_watching_settings, select_pods
from stowage.operator.watch.pending_pods import BOOKMARK, PendingPods, pending_pods_selector

PODS_PATH = "/api/v1/pods"
BOOKMARK_INTERVAL_S = 1.0
"""Kopf gets a bookmark this often while events arrive."""


class PendingPodWatch:
    """Watches the pending pods with a Kopf of its own.

    Args:
        connection: Makes Kopf's HTTP sessions.
        pods: Receives lists and events.
        scheduler_names: Scheduler names of all profiles.
        after_start: Called after each start of Kopf, which replaces the signal handlers.
        clock: Time, sleep and jitter.
    """

    def __init__(
        self,
        connection: Connection,
        pods: PendingPods,
        scheduler_names: Collection[str],
        after_start: Callable[[], None],
        clock: Clock,
    ) -> None:
        self._pods = pods
        self._monotonic = clock.monotonic
        self._scheduler_names = frozenset(scheduler_names)
        self._settings = pod_watching_settings(
            pending_pods_selector(scheduler_names), clock.jitter, connection.timeouts
        )
        spec = WatchSpec("pods", self._settings, _ignore_event, self._intercept)
        self._runner = KopfRunner(connection, spec, after_start, clock)

    async def run(self) -> None:
        """Watch until cancelled."""
        await self._runner.run()

    def select(self, scheduler_names: Collection[str]) -> None:
        """Watch the pods of these profiles from now on; pods of new profiles need another list."""
        if self._scheduler_names == frozenset(scheduler_names):
            return
        self._scheduler_names = frozenset(scheduler_names)
        self._pods.select(scheduler_names)
        select_pods(self._settings, pending_pods_selector(scheduler_names))
        self._runner.restart()

    def reconnect(self, unresponsive_since: float | None) -> None:
        """List again if Kopf's requests fail, or if its watch has had no data since then."""
        is_idle = (
            unresponsive_since is not None and self._pods.last_activity_at < unresponsive_since
        )
        if self._runner.has_failing_requests or is_idle:
            self._runner.restart()

    async def _intercept(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        response = await handler(request)
        if not request.url.path.endswith(PODS_PATH) or not response.ok:
            return response
        query = request.url.query
        if "watch" in query:
            pods = self._pods
            pods.note_activity()
            content = HandledLines(response.content, pods, self._monotonic)
            response.content = cast("aiohttp.StreamReader", content)
        else:
            body = await response.content.read()
            page = await decode_page(Pod, body)
            metadata = self._pods.handle_page(page, body, is_first="continue" not in query)
            emptied = EmptyListBody(response.content, metadata)
            response.content = cast("aiohttp.StreamReader", emptied)
        return response


def _ignore_event(_event_type: str | None, _raw: dict[str, Any]) -> None:
    """Kopf gets bookmarks only."""


class EmptyListBody:
    """The body of a list that was handled already: its metadata without items."""

    def __init__(self, content: aiohttp.StreamReader, metadata: ListMeta) -> None:
        self._content = content
        self._body = msgspec.json.encode({"metadata": metadata, "items": []})

    def __getattr__(self, name: str) -> Any:
        return getattr(self._content, name)

    async def read(self) -> bytes:
        """The whole body."""
        return self._body


class HandledLines:
    """The body of a watch of which Kopf reads only bookmarks; the events are handled here.

    A bookmark advances Kopf's resource version, so that Kopf resumes after the event, and ends the
    silence after which Kopf watches again. Kopf needs one now and then: if it resumes before the
    last event, `PendingPods` ignores what is repeated.

    Args:
        content: The body as it arrives.
        pods: Handles the lines.
        monotonic: Returns monotonic seconds.
    """

    def __init__(
        self, content: aiohttp.StreamReader, pods: PendingPods, monotonic: Callable[[], float]
    ) -> None:
        self._content = content
        self._pods = pods
        self._monotonic = monotonic
        self._resource_version = ""
        self._lines = WatchLines()
        self._marked_at = -BOOKMARK_INTERVAL_S

    def __getattr__(self, name: str) -> Any:
        return getattr(self._content, name)

    def iter_chunked(self, _size: int) -> AsyncIterator[bytes]:
        """Bookmarks, at most one in `BOOKMARK_INTERVAL_S`, and errors."""
        return self._handled()

    async def _handled(self) -> AsyncIterator[bytes]:
        while True:
            # A task of its own: Kopf's eight coroutines above this one do not run for each event.
            # It reads nothing while Kopf handles what it has got, and ends with Kopf's request.
            reading = asyncio.create_task(self._read(), name="pending pods")
            try:
                handled = await reading
            finally:
                reading.cancel()
            if not handled:
                return
            yield handled

    async def _read(self) -> bytes:
        """Read until Kopf needs a bookmark or an error; empty at the end of the body."""
        while chunk := await self._content.readany():
            lines = self._lines.complete(chunk)
            if not lines:
                continue
            self._pods.note_activity()
            errors = self._handle(lines)
            now = self._monotonic()
            if errors or now - self._marked_at >= BOOKMARK_INTERVAL_S:
                self._marked_at = now
                version = self._resource_version
                metadata = {"resourceVersion": version} if version else {}
                return _line(BOOKMARK, {"metadata": metadata}) + errors
        return b""

    def _handle(self, lines: list[bytes]) -> bytes:
        """Handle lines; returns the errors among them."""
        errors = []
        for line in lines:
            handled = self._pods.handle_line(line)
            if isinstance(handled, WatchError):
                errors.append(_line("ERROR", handled))
            else:
                self._resource_version = handled or self._resource_version
        return b"".join(errors)


def _line(event_type: str, content: Any) -> bytes:
    return msgspec.json.encode({"type": event_type, "object": content}) + b"\n"
