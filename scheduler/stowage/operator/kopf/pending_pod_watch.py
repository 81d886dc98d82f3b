"""Kopf watches the pending pods of our profiles.

The middleware of Kopf's session handles lists itself and passes them on without items, with the
resource version from which Kopf watches. It also handles the DELETED lines of a watch, nearly all
of them about pods that this scheduler has bound, and replaces them by bookmarks. Kopf's handlers
get the ADDED and MODIFIED events.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable, Collection
from typing import Any, Literal, cast

import aiohttp
import msgspec

from stowage.api.objects.meta import ListMeta
from stowage.operator.client.connection import Connection
from stowage.operator.client.watch_lines import complete_lines
from stowage.operator.clock import Clock
from stowage.operator.kopf.runner import KopfRunner, WatchSpec
from stowage.operator.kopf.settings import pod_watching_settings, select_pods
from stowage.operator.watch.pending_pods import PendingPods, pending_pods_selector

PODS_PATH = "/api/v1/pods"


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
        self._scheduler_names = frozenset(scheduler_names)
        self._settings = pod_watching_settings(
            pending_pods_selector(scheduler_names), clock.jitter, connection.timeouts
        )
        spec = WatchSpec("pods", self._settings, pods.handle_event, self._intercept)
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
            content = DeletedEventFilter(
                response.content, pods.handle_removal, pods.note_activity, pods.handle_invalid_line
            )
            response.content = cast("aiohttp.StreamReader", content)
        else:
            body = await response.content.read()
            metadata = self._pods.handle_page(body, is_first="continue" not in query)
            emptied = EmptyListBody(response.content, metadata)
            response.content = cast("aiohttp.StreamReader", emptied)
        return response


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    uid: str
    resource_version: str


class _Pod(msgspec.Struct, frozen=True):
    metadata: _Metadata
    spec: dict[str, msgspec.Raw]


class _PodEvent(msgspec.Struct, frozen=True):
    type: Literal["ADDED", "MODIFIED", "DELETED"]
    object: _Pod


_POD_EVENT_DECODER = msgspec.json.Decoder(_PodEvent)
_STRIDE = 2048
_NEIGHBOURING_DIGITS = re.compile(rb"[0-9]{2}")
_OBJECT_EVENTS = ("ADDED", "MODIFIED", "DELETED")
_REQUIRED_METADATA = ("name", "uid", "resourceVersion")


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


class DeletedEventFilter:
    """The body of a watch with bookmarks in place of DELETED events and of invalid lines.

    A bookmark advances Kopf's resource version, so that Kopf resumes after it.

    Args:
        content: The body as it arrives.
        handle_removal: Called with the UID of each deleted pod.
        note_activity: Called for each piece of data.
        handle_invalid_line: Called with each invalid line; returns its resource version.
    """

    def __init__(
        self,
        content: aiohttp.StreamReader,
        handle_removal: Callable[[str], None],
        note_activity: Callable[[], None] = lambda: None,
        handle_invalid_line: Callable[[bytes], str] = lambda _line: "",
    ) -> None:
        self._content = content
        self._handle_removal = handle_removal
        self._note_activity = note_activity
        self._handle_invalid_line = handle_invalid_line

    def __getattr__(self, name: str) -> Any:
        return getattr(self._content, name)

    def iter_chunked(self, _size: int) -> AsyncIterator[bytes]:
        """The filtered data in chunks of complete lines."""
        return self._filtered()

    async def _filtered(self) -> AsyncIterator[bytes]:
        async for lines in complete_lines(self._content.iter_any()):
            self._note_activity()
            yield b"".join([self._rewritten(line) + b"\n" for line in lines])

    def _rewritten(self, line: bytes) -> bytes:
        event = _decode_pod_event(line)
        is_surely_readable = event is not None and _is_surely_readable(line)
        if not is_surely_readable and not _is_readable(line):
            return _bookmark(self._handle_invalid_line(line))
        if event is None or event.type != "DELETED":
            return line
        self._handle_removal(event.object.metadata.uid)
        return _bookmark(event.object.metadata.resource_version)


def _decode_pod_event(line: bytes) -> _PodEvent | None:
    try:
        return _POD_EVENT_DECODER.decode(line)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None


def _is_surely_readable(line: bytes) -> bool:
    """A cheap test that is true only if Python's `json` can read a line that msgspec has decoded.

    msgspec skips the contents of unused strings and accepts numbers of any length. Python refuses
    invalid UTF-8 and numbers of more than 4,300 digits; such a number covers two positions of the
    stride.
    """
    return line.isascii() and not _NEIGHBOURING_DIGITS.search(line[::_STRIDE])


def _is_readable(line: bytes) -> bool:
    """Whether Kopf and its handler can read the line; a line they cannot read ends the watch."""
    try:
        event: Any = json.loads(line)
    except (ValueError, RecursionError):
        return False
    if not isinstance(event, dict) or not isinstance(event.get("object"), dict):
        return False
    if event.get("type") not in _OBJECT_EVENTS:
        return True
    metadata, spec = event["object"].get("metadata"), event["object"].get("spec")
    return (
        isinstance(metadata, dict)
        and isinstance(spec, dict)
        and all(isinstance(metadata.get(key), str) for key in _REQUIRED_METADATA)
    )


def _bookmark(resource_version: str) -> bytes:
    metadata = {"resourceVersion": resource_version} if resource_version else {}
    return msgspec.json.encode({"type": "BOOKMARK", "object": {"metadata": metadata}})
